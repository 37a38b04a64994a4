// All devices as a table: the content of the map, for keyboards and screen readers.

import { empty, deviceLink, nameText, nodeLink, stateBadge } from "../parts.js";
import { sortedBy } from "../order.js";
import { listView, Table } from "../table.js";

// An update of a long table takes at most this part of the time, however often devices change.
const SHARE = 0.2;
const MANY = 5000;

/** @typedef {import("../map/fleet.js").Device} Device */

/** @param {import("../page.js").Context} context */
export function devicesView({ store, announce }) {
  const table = new Table(
    "Devices",
    [
      { key: "name", title: "Device", cell: (/** @type {Device} */ each) => deviceLink(each.id, each.name), class: "wide" },
      { key: "state", title: "State", cell: (/** @type {Device} */ each) => stateBadge(each.state, each.level), isChoice: true },
      { key: "level", title: "Used", cell: (/** @type {Device} */ each) => (each.level < 0 ? "–" : `${each.level}%`), class: "number" },
      { key: "node", title: "Node", cell: (/** @type {Device} */ each) => nodeOf(store, each) },
      { key: "model", title: "Model", cell: (/** @type {Device} */ each) => each.model || "–", class: "name", isChoice: true },
      { key: "counterSet", title: "Part of", cell: (/** @type {Device} */ each) => each.counterSet || "–" },
      { key: "driver", title: "Driver", cell: (/** @type {Device} */ each) => nameText(each.driver), isChoice: true },
      { key: "pool", title: "Pool", cell: (/** @type {Device} */ each) => each.pool, class: "name" },
    ],
    (each) => each.id,
  );
  const view = listView({
    title: "Devices",
    table,
    nothing: empty("No devices: no driver has published devices yet."),
    rows: sortedDevices(store),
    text: (each) => each.id,
    announce,
  });
  let isWaiting = false;
  let took = 0;
  const again = () => {
    isWaiting = false;
    const began = performance.now();
    view.update();
    took = performance.now() - began;
  };
  return {
    ...view,
    update: (/** @type {Set<string>} */ parts) => {
      if (!parts.has("fleet") || isWaiting) return;
      if ((store.fleet?.devices.size ?? 0) < MANY) return again();
      isWaiting = true;
      setTimeout(again, took / SHARE);
    },
  };
}

/** A link, unless the devices are of several nodes. @param {import("../store.js").Store} store @param {Device} device */
function nodeOf(store, device) {
  if (!device.node) return "–";
  return store.fleet?.nodes.get(device.node)?.ready === null ? device.node : nodeLink(device.node);
}

/** By node and name, put in order again only when devices came or went. */
function sortedDevices(/** @type {import("../store.js").Store} */ store) {
  /** @type {[import("../map/fleet.js").Fleet | null, number, Device[]]} */
  let [of, arrangement, sorted] = [null, 0, []];
  return () => {
    const { fleet } = store;
    if (fleet && (of !== fleet || arrangement !== fleet.arrangement)) {
      [of, arrangement] = [fleet, fleet.arrangement];
      sorted = sortedBy([...fleet.devices.values()], (each) => `${each.node}\n${each.pool}\n${each.name}`);
    }
    return fleet && sorted;
  };
}
