// Nodes: the list, and one node with its labels, taints, resources, pods, and devices.

import { age } from "../ages.js";
import { path } from "../api.js";
import { h } from "../dom.js";
import { sortedBy } from "../order.js";
import {
  badge, conditions, detailView, empty, facts, heading, meter, nodeLink, noDetails, objectLink, section,
  stateBadge,
} from "../parts.js";
import { to } from "../routes.js";
import { listView, Table } from "../table.js";
import { yamlPart } from "../yaml.js";

const USED = new Set(["allocated", "prepared", "shared", "conflict"]);

/** @param {any} node */
function stateOf(node) {
  return [node.ready === false ? "not ready" : "", node.cordoned ? "cordoned" : ""].filter(Boolean).join(", ") || "ready";
}

/** @param {any} node */
function nodeBadge(node) {
  return badge(stateOf(node), node.ready === false ? "bad" : node.cordoned ? "near" : "good");
}

/** @param {import("../page.js").Context} context */
export function nodesView({ store, announce }) {
  const table = new Table(
    "Nodes",
    [
      { key: "name", title: "Node", cell: (node) => nodeLink(node.name), class: "wide" },
      { key: "state", title: "State", cell: nodeBadge, value: stateOf, isChoice: true },
      { key: "zone", title: "Zone", cell: (node) => node.zone || "–", isChoice: true },
      { key: "instanceType", title: "Instance type", cell: (node) => node.instanceType || "–", class: "name", isChoice: true },
      { key: "devices", title: "Devices", cell: (node) => node.devices, class: "number" },
      { key: "used", title: "In use", cell: (node) => node.used, class: "number" },
    ],
    (node) => node.name,
  );
  return listView({
    title: "Nodes",
    table,
    nothing: empty("No nodes."),
    rows: () => (store.fleet ? nodeRows(store.fleet) : null),
    announce,
  });
}

/** @param {import("../map/fleet.js").Fleet} fleet */
function nodeRows(fleet) {
  // How many devices are free at the same time is known for each model only.
  /** @type {Map<string, {devices: number, used: number}>} */
  const counts = new Map();
  for (const { node, state } of fleet.devices.values()) {
    let count = counts.get(node);
    if (!count) counts.set(node, (count = { devices: 0, used: 0 }));
    count.devices++;
    if (USED.has(state)) count.used++;
  }
  // Devices of several nodes, or of none, are on no Node.
  const nodes = [...fleet.nodes.values()].filter((each) => each.ready !== null);
  const rows = nodes.map((each) => ({ ...each, ...(counts.get(each.name) ?? { devices: 0, used: 0 }) }));
  return sortedBy(rows, (each) => each.name);
}

/** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
export function nodeView({ store }, route) {
  const [name = ""] = route.names;
  const pods = podTable();
  return detailView({
    path: `nodes/${path(name)}`,
    parts: ["fleet", "pods"],
    past: () => noDetails(store),
    below: yamlPart("node", [name]),
    show: (node) => [
      heading(`Node ${name}`, nodeBadge(node), h("a", { href: to("fleet", [], { node: name }) }, "Show on the map")),
      facts([
        ["zone", node.zone],
        ["instance type", node.instanceType],
        ["age", age(node.created)],
      ]),
      section("Devices", devices(node)),
      section("Resources", resources(node.resources)),
      node.taints.length ? section("Taints", taints(node.taints)) : null,
      section("Pods", pods(node.pods)),
      section("Conditions", conditions(node.conditions)),
      section("Labels", facts(Object.entries(node.labels))),
    ],
  });
}

/** @param {any} node */
function devices(node) {
  if (!node.devices.length) return empty("No devices on this node.");
  const rows = node.devices.map((/** @type {any} */ each) =>
    h(
      "li",
      null,
      h("a", { href: to("devices", [], { filter: `node:${node.name}`, ...(each.model ? { model: each.model } : { driver: each.driver }) }), class: "name" }, each.model || each.driver),
      h("span", { title: "Devices that can be allocated at the same time" }, `${each.freeIsAtLeast ? "≥ " : ""}${each.free} free at the same time`),
      h("span", { class: "quiet" }, "States:"),
      Object.entries(each.states).map(([state, count]) => h("span", { class: "of-state" }, `${count} `, stateBadge(state))),
    ),
  );
  return h("ul", { class: "partitions" }, rows);
}

/** @param {any[]} resources */
function resources(resources) {
  if (!resources.length) return empty("The node has no status.allocatable.");
  return h(
    "div",
    { class: "meters" },
    resources.map((each) => meter(each.resource, each.requestedPercent, `${each.requested} of ${each.allocatable} requested`)),
  );
}

/** @param {any[]} taints */
function taints(taints) {
  const text = (/** @type {any} */ each) => `${each.key}${each.value ? `=${each.value}` : ""}:${each.effect}`;
  return h("ul", { class: "plain" }, taints.map((each) => h("li", null, h("code", null, text(each)), each.since ? [" since ", age(each.since)] : null)));
}

/** A table of the pods of a node, which stays when its rows change. */
function podTable() {
  const table = new Table(
    "Pods of the node",
    [
      { key: "name", title: "Pod", cell: (pod) => objectLink("pods", pod.namespace, pod.name), class: "wide" },
      { key: "phase", title: "Phase", cell: (pod) => pod.phase },
      { key: "claims", title: "Claims", cell: (pod) => pod.claims.length || "–", value: (pod) => pod.claims.length, class: "number" },
      { key: "age", title: "Age", cell: (pod) => age(pod.created), value: (pod) => -Date.parse(pod.created) },
    ],
    (pod) => `${pod.namespace}/${pod.name}`,
  );
  return (/** @type {any[]} */ rows) => {
    if (!rows.length) return empty("No pods on this node.");
    table.show(sortedBy(rows, (pod) => `${pod.namespace}/${pod.name}`));
    return table.kept();
  };
}
