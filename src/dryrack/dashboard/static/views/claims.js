// Claims: the list, and the way of one from its requests to its devices and pods.

import { age } from "../ages.js";
import { path } from "../api.js";
import { h } from "../dom.js";
import {
  badge, conditions, detailView, deviceLink, empty, facts, heading, nodeLink, noDetails, objectLink, section,
  stateBadge, whyLink,
} from "../parts.js";
import { picture } from "../picture.js";
import { nameOf } from "../store.js";
import { listView, namespaceChoice, Table } from "../table.js";
import { yamlPart } from "../yaml.js";

const TONES = { pending: "bad", allocated: "near", reserved: "good", deleting: "near" };

/** @param {string} state */
function claimBadge(state) {
  return badge(state, TONES[/** @type {keyof typeof TONES} */ (state)] ?? "");
}

/** @param {import("../page.js").Context} context */
export function claimsView({ store, announce }) {
  const table = new Table(
    "Claims",
    [
      { key: "name", title: "Claim", cell: (claim) => objectLink("claims", claim.namespace, claim.name), value: nameOf, class: "wide" },
      namespaceChoice(),
      { key: "state", title: "State", cell: (claim) => claimBadge(claim.state), isChoice: true },
      { key: "requests", title: "Requests", cell: requests, value: (claim) => Object.values(claim.requests).join(" "), class: "text" },
      { key: "devices", title: "Devices", cell: devices, value: (claim) => claim.devices.length, class: "text" },
      { key: "node", title: "Node", cell: (claim) => (claim.node ? nodeLink(claim.node) : "–") },
      { key: "pods", title: "Pods", cell: (claim) => pods(claim), value: (claim) => claim.pods.join(" ") },
      { key: "age", title: "Age", cell: (claim) => age(claim.created), value: (claim) => -Date.parse(claim.created) },
    ],
    nameOf,
  );
  return listView({
    title: "Claims",
    table,
    nothing: empty("No ResourceClaims yet."),
    rows: () => (store.isComplete ? store.sorted("claims") : null),
    text: (claim) => claim.devices.join(" "),
    announce,
  });
}

/** @param {any} claim */
function requests(claim) {
  return Object.entries(claim.requests).map(([name, what]) => h("div", null, h("code", null, name), ` ${what}`));
}

/** @param {any} claim */
function devices(claim) {
  if (!claim.devices.length) return "–";
  const few = claim.devices.slice(0, 3).map((/** @type {string} */ id) => h("div", null, deviceLink(id)));
  return [few, claim.devices.length > 3 ? h("div", { class: "quiet" }, `and ${claim.devices.length - 3} more`) : null];
}

/** @param {any} claim */
function pods(claim) {
  if (!claim.pods.length) return "–";
  const few = claim.pods.slice(0, 3).map((/** @type {string} */ name) => h("div", null, objectLink("pods", claim.namespace, name)));
  return [few, claim.pods.length > 3 ? h("div", { class: "quiet" }, `and ${claim.pods.length - 3} more`) : null];
}

/** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
export function claimView({ store }, route) {
  const [namespace, name] = route.names;
  return detailView({
    path: `claims/${path(namespace, name ?? "")}`,
    parts: ["claims", "pods", "fleet"],
    past: () => noDetails(store),
    below: yamlPart("claim", [namespace, name ?? ""]),
    show: (claim) => [
      heading(`Claim ${namespace}/${name}`, claimBadge(claim.state), whyLink("claim", namespace, name, "Why, and try a change")),
      facts([
        ["node", claim.node ? nodeLink(claim.node) : ""],
        ["age", age(claim.created)],
        ["allocated", claim.allocated ? [age(claim.allocated), " ago"] : ""],
        ["owner", owner(namespace, claim.owner)],
      ]),
      section("From request to pod", way(claim)),
      constraints(claim.constraints),
      passedOver(claim.passedOver, claim.passedOverOmitted),
      configs(claim.config),
      claim.conditions.length ? section("Conditions", conditions(claim.conditions)) : null,
    ],
  });
}

/** @param {string} namespace @param {any} owner */
function owner(namespace, owner) {
  if (!owner) return "";
  return owner.kind === "Pod" ? ["Pod ", objectLink("pods", namespace, owner.name)] : `${owner.kind} ${owner.name}`;
}

/** @param {any[]} configs */
function configs(configs) {
  if (!configs.length) return null;
  const rows = configs.map((each) =>
    h(
      "li",
      { class: "card" },
      h(
        "p",
        { class: "lead" },
        h("b", { class: "name" }, each.driver),
        badge(each.source === "FromClass" ? "from the class" : "from the claim"),
        h("span", { class: "quiet" }, each.requests.length ? `for ${each.requests.join(", ")}` : "for all requests"),
      ),
      h("pre", null, JSON.stringify(each.parameters, null, 2)),
    ),
  );
  return section("Configuration for drivers", h("ul", { class: "plain" }, rows));
}

/** @param {any} claim */
function way(claim) {
  const asked = claim.requests.flatMap((/** @type {any} */ request) => request.ways.map((/** @type {any} */ each) => wayBox(request, each)));
  const found = claim.requests.flatMap((/** @type {any} */ request) => request.devices.map(deviceBox));
  const users = claim.users.map(podBox);
  const lines = [
    ...claim.requests.flatMap((/** @type {any} */ request) => {
      const taken = request.ways.find((/** @type {any} */ each) => each.isTaken) ?? request.ways[0];
      return request.devices.map((/** @type {any} */ each) => ({ from: wayKey(request, taken), to: deviceKey(each) }));
    }),
    ...found.flatMap((/** @type {any} */ device) => users.map((/** @type {any} */ user) => ({ from: device.key, to: user.key }))),
  ];
  return picture("Requests, their devices, and the pods that use them", [
    { title: "Requests", boxes: asked, nothing: "The claim has no requests." },
    { title: "Devices", boxes: unique(found), nothing: "None yet." },
    { title: "Pods", boxes: users, nothing: "No pod uses the claim." },
  ], lines);
}

/** @param {any[]} boxes */
function unique(boxes) {
  return [...new Map(boxes.map((each) => [each.key, each])).values()];
}

/** @param {any} request @param {any} way */
const wayKey = (request, way) => `request ${request.name}/${way.name}`;
/** @param {any} device */
const deviceKey = (device) => `device ${device.driver}/${device.pool}/${device.device}`;

/** @param {any} toleration */
function tolerationText({ key, operator, value, effect }) {
  const taint = key ? (operator === "Exists" || !value ? key : `${key}=${value}`) : "all taints";
  return effect ? `${taint}:${effect}` : taint;
}

/** @param {any} request @param {any} way */
function wayBox(request, way) {
  const isAlternative = request.ways.length > 1;
  const count = way.mode === "All" ? "all" : way.count;
  return {
    key: wayKey(request, way),
    tone: way.isTaken ? "taken" : way.isPassedOver ? "passed" : "",
    content: [
      h("b", null, isAlternative ? `${request.name}/${way.name}` : request.name),
      h("div", null, `${count} × ${way.class}`),
      way.selectors.map((/** @type {string} */ each) => h("code", { class: "expression" }, each)),
      Object.entries(way.capacity).map(([name, amount]) => h("div", { class: "quiet" }, `${name} ${amount}`)),
      way.tolerations.map((/** @type {any} */ each) => h("div", { class: "quiet" }, `tolerates ${tolerationText(each)}`)),
      way.adminAccess ? badge("admin access", "near") : null,
      isAlternative && way.isTaken ? badge("taken", "good") : null,
      way.isPassedOver ? badge("skipped", "near") : null,
    ],
  };
}

/** @param {any} device */
function deviceBox(device) {
  return {
    key: deviceKey(device),
    tone: "taken",
    content: [
      h("div", null, deviceLink(`${device.driver}/${device.pool}/${device.device}`, device.device)),
      h("div", { class: "quiet" }, device.model),
      h("div", { class: "quiet" }, device.node),
      device.state ? stateBadge(device.state) : null,
    ],
  };
}

/** @param {any} pod */
function podBox(pod) {
  return {
    key: `pod ${nameOf(pod)}`,
    tone: pod.pending ? "" : "taken",
    content: [
      objectLink("pods", pod.namespace, pod.name),
      h("div", { class: "quiet" }, `${pod.phase}${pod.node ? ` on ${pod.node}` : ""}`),
    ],
  };
}

/** @param {any[]} constraints */
function constraints(constraints) {
  if (!constraints.length) return null;
  const rows = constraints.map((each) => {
    const values = Object.entries(each.values).map(([device, value]) =>
      h("div", { class: "quiet" }, `${device.split("/").pop()}: ${value ?? "no value"}`),
    );
    const what = each.kind === "match" ? "is the same for all" : "is different for each";
    const of = each.requests.length ? ` of ${each.requests.join(", ")}` : "";
    return h("li", null, h("code", null, each.attribute), ` ${what}${of}`, values);
  });
  return section("Constraints on its devices", h("ul", { class: "plain" }, rows));
}

/**
 * @param {any[]} passed
 * @param {number} omitted
 */
function passedOver(passed, omitted) {
  if (!passed.length) return null;
  const rows = passed.map((each) =>
    h(
      "li",
      null,
      stateBadge(each.state),
      deviceLink(`${each.driver}/${each.pool}/${each.device}`),
      each.claims.length ? h("span", { class: "quiet" }, `allocated to claim ${each.claims.join(", ")}`) : null,
    ),
  );
  if (omitted) rows.push(h("li", { class: "quiet" }, `and ${omitted} more`));
  return section("Skipped devices", h("ul", { class: "partitions" }, rows));
}
