// One device: its health, the claims that use it, its attributes, and its partitions.

import { age } from "../ages.js";
import { path } from "../api.js";
import { h } from "../dom.js";
import { badge, deviceLink, detailView, facts, meter, nodeLink, objectLink, objectName, stateBadge } from "../parts.js";

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
      ["slice", device.slices.map((/** @type {string} */ each, /** @type {number} */ n) => [n ? ", " : "", objectName("slice", "", each)])],
      ["sharing", device.sharesCapacity ? "several claims can share its capacity" : ""],
    ]),
    health(device),
    holders(device),
    taints(device.taintsOf),
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

/** What kubelets report. @param {any} device */
function health(device) {
  if (!device.health.length) return null;
  const rows = device.health.map((/** @type {any} */ each) => {
    const [namespace, name] = each.pod.split("/");
    return h("li", null, badge("Unhealthy", "bad"), ` ${each.message || "The kubelet gives no message."} `, h("span", { class: "quiet" }, "reported in the status of pod ", objectLink("pods", namespace, name)));
  });
  return h("div", null, h("h3", null, "Health"), h("ul", { class: "plain" }, rows));
}

/** @param {any[]} taints */
function taints(taints) {
  if (!taints.length) return null;
  const rows = taints.map((each) =>
    h(
      "li",
      null,
      h("code", { class: "name" }, `${each.key}${each.value ? `=${each.value}` : ""}:${each.effect}`),
      each.since ? [" since ", age(each.since)] : null,
      each.rule ? h("div", { class: "quiet" }, "added by DeviceTaintRule ", objectName("taint-rule", "", each.rule)) : null,
    ),
  );
  return h("div", null, h("h3", null, "Taints"), h("ul", { class: "plain" }, rows));
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
