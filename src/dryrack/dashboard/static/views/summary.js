// What is free by model: the cards above the map.

import { h, sync } from "../dom.js";
import { classOf } from "../map/paint.js";

/** The states that a bar shows, as parts of all devices. */
const ORDER = [
  ...["prepared", "allocated", "conflict", "shared", "blocked", "tainted", "unhealthy"],
  ...["cordoned", "not ready", "no node", "incomplete"],
  "free",
];

/** @param {HTMLElement} list @param {any[]} summary */
export function summaryCards(list, summary) {
  sync(list, summary, (each) => `${each.driver}\n${each.model}`, card);
}

/** @param {any} model */
function card(model) {
  const percent = Math.round(model.fragmentation * 100);
  return h(
    "li",
    { class: "card" },
    h("p", { class: "model", title: `${model.model} of ${model.driver}` }, model.model || model.driver),
    h(
      "p",
      { class: "figures" },
      h("b", { title: "Devices that can be allocated at the same time" }, `${model.freeIsAtLeast ? "≥ " : ""}${model.free.toLocaleString("en")}`),
      ` of ${model.devices.toLocaleString("en")} free`,
    ),
    bar(model),
    h(
      "p",
      { class: "quiet" },
      h(
        "span",
        { title: "The largest number of free devices on one node" },
        `${model.largestFreeOnOneNode} on one node`,
      ),
      h(
        "span",
        { title: "The share of the free devices that is on nodes where other devices of the model are in use" },
        `${percent}% fragmented`,
      ),
    ),
  );
}

/** @param {any} model */
function bar(model) {
  const parts = ORDER.filter((state) => model.states[state]);
  const text = parts.map((state) => `${model.states[state]} ${state}`).join(", ");
  return h(
    "div",
    { class: "states", role: "img", "aria-label": text, title: text },
    parts.map((state) =>
      h("span", { class: `of-${classOf(state)}`, style: { "flex-grow": model.states[state] } }),
    ),
  );
}
