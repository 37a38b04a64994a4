// The search field: nodes, devices, pods, claims, gangs, and models by any part of their names; and,
// from the server, devices by attributes and UUIDs, classes, slices, and objects by their UID.

import { get } from "./api.js";
import { fill, h } from "./dom.js";
import { naturalKey } from "./order.js";
import { to, toDevice } from "./routes.js";
import { nameOf } from "./store.js";

const RESULTS_MAX = 14;
/** Results of one kind while there are results of other kinds. */
const RESULTS_OF_KIND = 4;
const TYPING_MS = 200;
/** Shorter texts match too much to ask the server. */
const ASKED_LENGTH_MIN = 3;

/** @typedef {{kind: string, name: string, address: string, match?: string}} Result */

/**
 * Returns what the browser knows, the best matches of each kind first.
 * @param {import("./store.js").Store} store
 * @param {string} text
 * @returns {Result[]}
 */
export function results(store, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  /** @type {Map<string, {rank: number, key: string, result: () => Result}[]>} */
  const kinds = new Map();
  for (const [kind, name, address] of candidates(store)) {
    const low = name.toLowerCase();
    if (!words.every((word) => low.includes(word))) continue;
    // A whole name comes before a name that only begins so, and this before others.
    const [part] = words;
    const rank = low === part || low.endsWith(`/${part}`) ? 0 : low.startsWith(part) || low.includes(`/${part}`) ? 1 : 2;
    const found = kinds.get(kind) ?? [];
    found.push({ rank, key: name, result: () => ({ kind, name, address: address() }) });
    kinds.set(kind, found);
  }
  for (const found of kinds.values()) {
    // Of very many matches the first are enough.
    if (found.length <= 2000) for (const each of found) each.key = naturalKey(each.key);
    found.sort((a, b) => a.rank - b.rank || (a.key < b.key ? -1 : 1));
  }
  const few = [...kinds.values()].flatMap((found) => found.slice(0, RESULTS_OF_KIND));
  const rest = [...kinds.values()].flatMap((found) => found.slice(RESULTS_OF_KIND));
  return [...few, ...rest].slice(0, RESULTS_MAX).map((each) => each.result());
}

/**
 * @param {import("./store.js").Store} store
 * @returns {Generator<[string, string, () => string]>}
 */
function* candidates(store) {
  for (const { name, ready } of store.fleet?.nodes.values() ?? []) {
    // Devices of several nodes, or of none, are on no Node.
    if (ready !== null) yield ["node", name, () => to("nodes", [name])];
  }
  for (const { model } of store.fleet?.summary ?? []) {
    if (model) yield ["model", model, () => to("devices", [], { model })];
  }
  for (const each of store.lists.gangs.values()) {
    yield ["gang", nameOf(each), () => to("gangs", [each.namespace, each.name])];
  }
  for (const each of store.lists.pods.values()) {
    yield ["pod", nameOf(each), () => to("pods", [each.namespace, each.name])];
  }
  for (const each of store.lists.claims.values()) {
    yield ["claim", nameOf(each), () => to("claims", [each.namespace, each.name])];
  }
  for (const each of store.fleet?.devices.values() ?? []) {
    yield ["device", each.id, () => toDevice(each.id)];
  }
}

/** A hit of the server. @param {any} hit @returns {Result} */
function resultOf({ kind, namespace, name, match }) {
  const full = namespace ? `${namespace}/${name}` : name;
  const names = namespace ? [namespace, name] : [name];
  /** @type {{[kind: string]: () => string}} */
  const addresses = {
    device: () => toDevice(name),
    node: () => to("nodes", names),
    pod: () => to("pods", names),
    claim: () => to("claims", names),
  };
  return { kind, name: full, match, address: (addresses[kind] ?? (() => to("object", [kind, ...names])))() };
}

export class Search {
  /** @param {HTMLElement} parent @param {import("./store.js").Store} store */
  constructor(parent, store) {
    this.store = store;
    /** @type {Result[]} */
    this.found = [];
    this.active = -1;
    this._typing = 0;
    this._isAsking = false;
    this.input = h("input", {
      type: "search",
      role: "combobox",
      placeholder: "Search  /",
      "aria-label": "Search names, models, attributes, UUIDs, and UIDs",
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
    clearTimeout(this._typing);
    this._isAsking = text.trim().length >= ASKED_LENGTH_MIN && !this.store.past;
    if (this._isAsking) this._typing = setTimeout(() => this._ask(text), TYPING_MS);
    this.list.hidden = !text.trim();
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    this._fill();
  }

  /** Adds what the server finds. @param {string} text */
  async _ask(text) {
    const { hits } = await get(`search?text=${encodeURIComponent(text)}`).catch(() => ({ hits: [] }));
    if (text !== this.input.value) return;
    const known = new Set(this.found.map((each) => each.address));
    const more = hits.map(resultOf).filter((/** @type {Result} */ each) => !known.has(each.address));
    this.found = [...this.found, ...more].slice(0, 2 * RESULTS_MAX);
    if (this.active < 0 && this.found.length) this.active = 0;
    this._isAsking = false;
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
        h("span", { class: "name" }, each.name, each.match ? h("span", { class: "quiet match" }, each.match) : null),
      ),
    );
    const none = h("li", { role: "option", "aria-disabled": "true", class: "quiet" }, this._isAsking ? "Searching …" : "Nothing found.");
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
