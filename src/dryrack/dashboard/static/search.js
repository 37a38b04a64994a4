// The search field: nodes, devices, pods, claims and gangs by any part of their names.

import { fill, h } from "./dom.js";
import { to, toDevice } from "./routes.js";
import { nameOf } from "./store.js";

const RESULTS_MAX = 12;

/** @typedef {{kind: string, name: string, address: string}} Result */

/**
 * @param {import("./store.js").Store} store
 * @param {string} text
 * @returns {Result[]}
 */
export function results(store, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  /** @type {Result[]} */
  const found = [];
  if (!words.length) return found;
  const matches = (/** @type {string} */ name) => {
    const low = name.toLowerCase();
    return words.every((word) => low.includes(word));
  };
  for (const [kind, name, address] of candidates(store)) {
    if (matches(name)) found.push({ kind, name, address: address() });
    if (found.length >= RESULTS_MAX) break;
  }
  return found;
}

/**
 * @param {import("./store.js").Store} store
 * @returns {Generator<[string, string, () => string]>}
 */
function* candidates(store) {
  for (const name of store.fleet?.nodes.keys() ?? []) {
    yield ["node", name, () => to("fleet", [], { node: name })];
  }
  for (const each of store.lists.pods.values()) {
    yield ["pod", nameOf(each), () => to("pods", [each.namespace, each.name])];
  }
  for (const each of store.lists.claims.values()) {
    yield ["claim", nameOf(each), () => to("claims", [each.namespace, each.name])];
  }
  for (const each of store.lists.gangs.values()) {
    yield ["gang", nameOf(each), () => to("gangs", [each.namespace, each.name])];
  }
  for (const each of store.fleet?.devices.values() ?? []) {
    yield ["device", each.id, () => toDevice(each.id)];
  }
}

export class Search {
  /** @param {HTMLElement} parent @param {import("./store.js").Store} store */
  constructor(parent, store) {
    this.store = store;
    /** @type {Result[]} */
    this.found = [];
    this.active = -1;
    this.input = h("input", {
      type: "search",
      role: "combobox",
      placeholder: "Search  /",
      "aria-label": "Search nodes, devices, pods, claims and gangs",
      "aria-expanded": "false",
      "aria-controls": "results",
      "aria-autocomplete": "list",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => this._show(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this._key(event),
      onblur: () => setTimeout(() => this._hide(), 150),
      onfocus: () => this._show(),
    });
    this.list = h("ul", { id: "results", role: "listbox", "aria-label": "Results", hidden: true });
    parent.append(this.input, this.list);
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  _show() {
    const text = this.input.value;
    this.found = results(this.store, text);
    this.active = this.found.length ? 0 : -1;
    this.list.hidden = !text.trim();
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this._fill();
  }

  _fill() {
    const items = this.found.map((each, n) =>
      h(
        "li",
        {
          role: "option",
          id: `result-${n}`,
          "aria-selected": String(n === this.active),
          onmousedown: () => this._open(each),
        },
        h("span", { class: "kind" }, each.kind),
        h("span", { class: "name" }, each.name),
      ),
    );
    const none = h("li", { role: "option", "aria-disabled": "true", class: "quiet" }, "Nothing found.");
    fill(this.list, items.length ? items : none);
    if (this.active >= 0) this.input.setAttribute("aria-activedescendant", `result-${this.active}`);
    else this.input.removeAttribute("aria-activedescendant");
  }

  _hide() {
    this.list.hidden = true;
    this.input.setAttribute("aria-expanded", "false");
  }

  /** @param {Result} result */
  _open(result) {
    this._hide();
    this.input.value = "";
    this.input.blur();
    location.hash = result.address;
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    const count = this.found.length;
    if (event.key === "Escape") {
      this.input.value = "";
      this._hide();
      this.input.blur();
    } else if (event.key === "Enter" && this.active >= 0) this._open(this.found[this.active]);
    else if (event.key === "ArrowDown" && count) this._move((this.active + 1) % count);
    else if (event.key === "ArrowUp" && count) this._move((this.active + count - 1) % count);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} active */
  _move(active) {
    this.active = active;
    this._fill();
  }
}
