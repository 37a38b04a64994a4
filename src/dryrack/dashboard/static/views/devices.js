// All devices as a table: the same as the map, for keys, screen readers and whoever likes lists.

import { empty, deviceLink, listView, nameText, nodeLink, stateBadge, Table } from "../parts.js";

// A table of many devices is filtered anew this often at most, however often one of them changes.
const AGAIN_MS = 250;
const MANY = 5000;
const order = new Intl.Collator("en", { numeric: true }).compare;

/** @typedef {import("../map/fleet.js").Device} Device */

/** @param {import("../page.js").Context} context */
export function devicesView({ store, announce }) {
  const table = new Table(
    "Devices",
    [
      { title: "Device", cell: (/** @type {Device} */ each) => deviceLink(each.id, each.name), class: "wide" },
      { title: "State", cell: (/** @type {Device} */ each) => stateBadge(each.state, each.level) },
      { title: "Used", cell: (/** @type {Device} */ each) => (each.level < 0 ? "–" : `${each.level}%`), class: "number" },
      { title: "Node", cell: (/** @type {Device} */ each) => (each.node ? nodeLink(each.node) : "–") },
      { title: "Model", cell: (/** @type {Device} */ each) => each.model || "–", class: "name" },
      { title: "Part of", cell: (/** @type {Device} */ each) => each.counterSet || "–" },
      { title: "Driver", cell: (/** @type {Device} */ each) => nameText(each.driver) },
      { title: "Pool", cell: (/** @type {Device} */ each) => each.pool, class: "name" },
    ],
    (each) => each.id,
  );
  const view = listView({
    title: "Devices",
    table,
    nothing: empty("No devices: no driver has published devices yet."),
    rows: sortedDevices(store),
    text: (each) => `${each.id} ${each.state} ${each.node} ${each.model} ${each.counterSet}`,
    announce,
  });
  let isWaiting = false;
  const again = () => {
    isWaiting = false;
    view.update();
  };
  return {
    element: view.element,
    update: (/** @type {Set<string>} */ parts) => {
      if (!parts.has("fleet") || isWaiting) return;
      if ((store.fleet?.devices.size ?? 0) < MANY) return again();
      isWaiting = true;
      setTimeout(again, AGAIN_MS);
    },
    themeChanged: () => table.themeChanged(),
  };
}

/** By node and name, put in order again only when devices came or went. */
function sortedDevices(/** @type {import("../store.js").Store} */ store) {
  /** @type {[import("../map/fleet.js").Fleet | null, number, Device[]]} */
  let [of, arrangement, sorted] = [null, 0, []];
  return () => {
    const { fleet } = store;
    if (fleet && (of !== fleet || arrangement !== fleet.arrangement)) {
      [of, arrangement] = [fleet, fleet.arrangement];
      sorted = [...fleet.devices.values()].sort(
        (a, b) => order(a.node, b.node) || order(a.pool, b.pool) || order(a.name, b.name),
      );
    }
    return fleet && sorted;
  };
}
