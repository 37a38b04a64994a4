// ResourceSlices as they are published.

import { badge, clock, empty, nameText, nodeLink, Table } from "../parts.js";
import { askedList } from "./asked.js";

export function slicesView() {
  const table = new Table(
    "Slices",
    [
      { title: "Slice", cell: (each) => each.name, class: "wide name" },
      { title: "Driver", cell: (each) => nameText(each.driver) },
      { title: "Pool", cell: (each) => each.pool, class: "name" },
      { title: "Generation", cell: (each) => each.generation, class: "number" },
      { title: "State", cell: state },
      { title: "Node", cell: (each) => (each.node ? nodeLink(each.node) : "–") },
      { title: "Devices", cell: (each) => each.devices, class: "number" },
      { title: "Tainted", cell: (each) => each.tainted || "–", class: "number" },
      { title: "Counter sets", cell: (each) => each.counterSets.length || "–", class: "number" },
      { title: "Since", cell: (each) => clock(each.created) },
    ],
    (each) => each.name,
  );
  return askedList("slices", {
    title: "Slices",
    table,
    nothing: empty("No ResourceSlices: no driver has published devices yet."),
    text: (/** @type {any} */ each) => `${each.name} ${each.driver} ${each.pool} ${each.node}`,
  });
}

/** @param {any} slice */
function state(slice) {
  if (!slice.isCurrent) return badge("superseded", "near");
  if (!slice.isPoolComplete) return badge(`pool incomplete, needs ${slice.sliceCount}`, "bad");
  return badge("current", "good");
}
