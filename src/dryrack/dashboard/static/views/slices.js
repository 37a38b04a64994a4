// ResourceSlices, as drivers publish them.

import { age } from "../ages.js";
import { badge, empty, nameText, nodeLink, objectName } from "../parts.js";
import { Table } from "../table.js";
import { askedList } from "./asked.js";

export function slicesView() {
  const table = new Table(
    "Slices",
    [
      { key: "name", title: "Slice", cell: (each) => objectName("slice", "", each.name), class: "wide name" },
      { key: "driver", title: "Driver", cell: (each) => nameText(each.driver), isChoice: true },
      { key: "pool", title: "Pool", cell: (each) => each.pool, class: "name" },
      { key: "generation", title: "Generation", cell: (each) => each.generation, class: "number" },
      { key: "state", title: "State", cell: state, value: stateOf, isChoice: true },
      { key: "node", title: "Node", cell: (each) => (each.isOfNode ? nodeLink(each.node) : each.node) },
      { key: "devices", title: "Devices", cell: (each) => each.devices, class: "number" },
      { key: "tainted", title: "Tainted", cell: (each) => each.tainted || "–", class: "number" },
      {
        key: "counterSets",
        title: "Counter sets",
        cell: (each) => each.counterSets.length || "–",
        value: (each) => each.counterSets.length,
        class: "number",
      },
      { key: "age", title: "Age", cell: (each) => age(each.created), value: (each) => -Date.parse(each.created) },
    ],
    (each) => each.name,
  );
  return askedList("slices", {
    title: "Slices",
    table,
    nothing: empty("No ResourceSlices: no driver has published devices yet."),
  });
}

/** @type {{[state: string]: string}} */
const TONES = { current: "good", superseded: "near", "pool incomplete": "bad" };

/** @param {any} slice */
function state(slice) {
  const name = stateOf(slice);
  const text = name === "pool incomplete" ? `${name}, needs ${slice.sliceCount}` : name;
  return badge(text, TONES[name]);
}

/** @param {any} slice */
function stateOf(slice) {
  if (!slice.isCurrent) return "superseded";
  return slice.isPoolComplete ? "current" : "pool incomplete";
}
