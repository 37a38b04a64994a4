// What is free by model: the cards above the map. A card is a filter.

import { h, sync } from "../dom.js";
import { classOf } from "../map/paint.js";
import { toggleParameter } from "../routes.js";

/** The states that a bar shows, as parts of all devices. */
const ORDER = [
  ...["prepared", "allocated", "conflict", "shared", "blocked", "tainted", "unhealthy"],
  ...["cordoned", "not ready", "no node", "incomplete"],
  "free",
];

/**
 * Shows a card for each model, accelerators first.
 * @param {HTMLElement} list @param {any[]} summary @param {string[]} auxiliary drivers
 * @param {string[]} chosen models of the filter
 */
export function summaryCards(list, summary, auxiliary, chosen) {
  const rank = (/** @type {any} */ each) => (auxiliary.includes(each.driver) ? 1 : 0);
  const cards = summary
    .map((each) => ({ ...each, isChosen: chosen.includes(each.model || each.driver) }))
    .sort((a, b) => rank(a) - rank(b));
  sync(list, cards, (each) => `${each.driver}\n${each.model}`, card);
}

/** @param {any} model */
function card(model) {
  const percent = Math.round(model.fragmentation * 100);
  const name = model.model || model.driver;
  return h(
    "li",
    { class: "card" },
    h(
      "button",
      {
        type: "button",
        class: "model",
        title: `${model.model} of ${model.driver}: show only these devices`,
        "aria-pressed": String(model.isChosen),
        onclick: () => toggleParameter("model", name),
      },
      name,
    ),
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
