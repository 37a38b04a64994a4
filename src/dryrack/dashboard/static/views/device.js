// One device: who has it, what it is, and what is inside it.

import { path } from "../api.js";
import { h } from "../dom.js";
import { deviceLink, detailView, facts, meter, nodeLink, objectLink, stateBadge } from "../parts.js";

/**
 * @param {import("../store.js").Store} store
 * @param {[string, string, string]} names driver, pool, device
 * @param {() => void} close
 */
export function devicePanel(store, names, close) {
  const button = h(
    "button",
    { type: "button", class: "icon close", "aria-label": "Close (Esc)", title: "Close (Esc)", onclick: close },
    "×",
  );
  const view = detailView({
    path: `devices/${path(...names)}`,
    parts: ["fleet", "claims"],
    show: (device) => device_(device),
    past: () => (store.past ? pastDevice(store, names.join("/")) : null),
  });
  const element = h("div", { class: "device" }, button, h("h2", { class: "name" }, names[2]), view.element);
  return { ...view, element };
}

/** What the history knows of a device. @param {import("../store.js").Store} store @param {string} id */
function pastDevice(store, id) {
  const device = store.fleet?.devices.get(id);
  if (!device) return [h("p", null, "The device did not exist at this moment.")];
  const claims = store.sorted("claims").filter((each) => each.devices.includes(id));
  return [
    h("p", { class: "lead" }, stateBadge(device.state)),
    facts([
      ["node", device.node ? nodeLink(device.node) : "–"],
      ["model", device.model],
      ["driver", device.driver],
      ["pool", device.pool],
    ]),
    holders({ claims: claims.map((each) => ({ claim: `${each.namespace}/${each.name}`, pods: each.pods.map((/** @type {string} */ pod) => `${each.namespace}/${pod}`) })) }),
    h("p", { class: "quiet" }, "The history has no attributes, capacities, or taints."),
  ];
}

/** @param {any} device */
function device_(device) {
  return [
    h("p", { class: "lead" }, stateBadge(device.state)),
    facts([
      ["node", device.node ? nodeLink(device.node) : "–"],
      ["model", device.model],
      ["driver", device.driver],
      ["pool", `${device.pool}, generation ${device.generation}`],
      ["slice", device.slices.join(", ")],
      ["sharing", device.sharesCapacity ? "several claims can share its capacity" : ""],
    ]),
    holders(device),
    taints(device.taints ?? []),
    capacity(device),
    ...device.counters.map((/** @type {any} */ each) => counterSet(device, each)),
    attributes(device.attributes),
  ];
}

/** @param {any} device */
function holders(device) {
  if (!device.claims.length) return null;
  const items = device.claims.map((/** @type {any} */ each) => {
    const [namespace, name] = each.claim.split("/");
    const pods = each.pods.map((/** @type {string} */ pod) => {
      const [of, bare] = pod.split("/");
      return h("li", null, "pod ", objectLink("pods", of, bare));
    });
    return h("li", null, "claim ", objectLink("claims", namespace, name), pods.length ? h("ul", null, pods) : null);
  });
  return [h("h3", null, "Used by"), h("ul", { class: "plain" }, items)];
}

/** @param {any[]} taints */
function taints(taints) {
  if (!taints.length) return null;
  const text = (/** @type {any} */ each) =>
    typeof each === "string" ? each : `${each.key}${each.value ? `=${each.value}` : ""}:${each.effect}`;
  return h("div", null, h("h3", null, "Taints"), h("ul", { class: "plain" }, taints.map((each) => h("li", { class: "name" }, text(each)))));
}

/** @param {any} device */
function capacity(device) {
  const names = Object.keys(device.capacity);
  if (!names.length) return null;
  const plain = names.filter((name) => !device.levels[name]);
  const rows = names
    .filter((name) => device.levels[name])
    .map((name) => {
      const level = device.levels[name];
      return meter(name, level.usedPercent, `${level.used} of ${level.total} used`);
    });
  return h("div", null, h("h3", null, "Capacity"), rows, facts(plain.map((name) => [name, device.capacity[name]])));
}

/** The physical device that a partition is a part of. @param {any} device @param {any} set */
function counterSet(device, set) {
  const meters = Object.entries(set.counters).map(([name, level]) =>
    meter(name, level.usedPercent, `${level.used} of ${level.total} used`),
  );
  const parts = set.partitions.map((/** @type {any} */ each) =>
    h(
      "li",
      { "aria-current": each.device === device.device ? "true" : null },
      stateBadge(each.state),
      deviceLink(`${device.driver}/${device.pool}/${each.device}`, each.device),
      h("span", { class: "quiet" }, Object.entries(each.takes).map(([name, amount]) => `${name} ${amount}`).join(", ")),
    ),
  );
  return h(
    "div",
    null,
    h("h3", null, `Counters of ${set.name}`),
    meters,
    h("h3", null, `Devices that share ${set.name}`),
    h("ul", { class: "partitions" }, parts),
  );
}

/** @param {{[name: string]: any}} attributes */
function attributes(attributes) {
  const pairs = Object.entries(attributes).sort(([a], [b]) => a.localeCompare(b));
  if (!pairs.length) return null;
  return h("div", null, h("h3", null, "Attributes"), facts(pairs.map(([name, value]) => [name, String(value)])));
}
