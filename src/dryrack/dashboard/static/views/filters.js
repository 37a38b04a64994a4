// The filters of the map: a field that offers values, and a button for each one that is set.

import { fill, h } from "../dom.js";
import { FILTERS, toggleParameter } from "../routes.js";
import { valuesOf } from "../map/style.js";

/** The cards and the legend set the other filters. */
const OFFERED = FILTERS.filter((each) => !["model", "state"].includes(each));
const OFFERS_MAX = 1000;

export class FilterField {
  /** @param {(text: string) => void} announce */
  constructor(announce) {
    this.announce = announce;
    /** @type {Map<string, [string, string]>} */
    this._offers = new Map();
    this.offers = h("datalist", { id: "filter-values" });
    this.input = h("input", {
      type: "search",
      list: "filter-values",
      placeholder: "Filter",
      "aria-label": `Filter by ${OFFERED.join(", ")}`,
      // Collecting the values of 80,000 devices takes a moment, so it is done when the list opens.
      onfocus: () => this._refresh(),
      onchange: () => this._choose(),
    });
    this.set = h("ul", { class: "set-filters", "aria-label": "Filters" });
    this.element = h("div", { class: "filter-field" }, this.input, this.offers, this.set);
    /** @type {() => {fleet: import("../map/fleet.js").Fleet | null, owners: import("../map/owners.js").Owners}} */
    this.world = () => { throw new Error("the view sets it"); };
  }

  _refresh() {
    const { fleet, owners } = this.world();
    if (!fleet) return;
    this._offers.clear();
    for (const name of OFFERED) {
      /** @type {Set<string>} */
      const values = new Set();
      for (const device of fleet.devices.values()) {
        for (const value of valuesOf(name, device, fleet, owners)) if (value) values.add(value);
      }
      const sorted = [...values].sort().slice(0, OFFERS_MAX);
      for (const value of sorted) this._offers.set(`${name}: ${value}`, [name, value]);
    }
    fill(this.offers, [...this._offers.keys()].map((value) => h("option", { value })));
  }

  _choose() {
    const text = this.input.value.trim();
    const offer = this._offers.get(text) ?? [...this._offers].find(([, [, value]]) => value === text)?.[1];
    if (offer) {
      this.input.value = "";
      toggleParameter(...offer);
    } else if (text) this.announce(`No ${OFFERED.join(", ")} is named ${text}`);
  }

  /** @param {{[name: string]: string[]}} filters */
  show(filters) {
    const pairs = Object.entries(filters).flatMap(([name, values]) => values.map((value) => [name, value]));
    const items = pairs.map(([name, value]) =>
      h(
        "li",
        null,
        h(
          "button",
          { type: "button", "aria-label": `Remove the filter ${name} ${value}`, onclick: () => toggleParameter(name, value) },
          `${name}: ${value} ×`,
        ),
      ),
    );
    fill(this.set, items);
    this.set.hidden = !items.length;
  }
}
