// Parts that several views are made of.

import { get } from "./api.js";
import { counted, fill, h, sync } from "./dom.js";
import { swatch } from "./map/paint.js";
import { to, toDevice } from "./routes.js";

const PAGE_ROWS = 200;

/** A device's state, with its picture. @param {string} state @param {number} [level] */
export function stateBadge(state, level) {
  return h("span", { class: "state" }, swatch(state, level), state);
}

/** The state of a claim, a gang or a pod. @param {string} text @param {string} [tone] */
export function badge(text, tone = "") {
  return h("span", { class: `badge ${tone}` }, text);
}

/** @param {string} id driver/pool/name */
export function deviceLink(id, /** @type {string} */ text = id) {
  return h("a", { href: toDevice(id), class: "name" }, text);
}

/** A name in a cell: short ones stay in one piece. @param {string} text */
export function nameText(text) {
  return h("span", { class: "name" }, text);
}

/** @param {string} node */
export function nodeLink(node) {
  return h("a", { href: to("fleet", [], { node }), class: "name" }, node);
}

/** @param {"claims" | "gangs" | "pods"} view @param {string} namespace @param {string} name */
export function objectLink(view, namespace, name) {
  return h("a", { href: to(view, [namespace, name]), class: "name" }, `${namespace}/${name}`);
}

/** @param {string} kind @param {string} namespace @param {string} name */
export function whyLink(kind, namespace, name, text = "Why?") {
  return h("a", { href: to("why", [kind, namespace, name]), class: "why" }, text);
}

/** @param {string} title @param {...any} children */
export function section(title, ...children) {
  return h("section", { class: "part" }, h("h2", null, title), ...children);
}

/** @param {string} title @param {...any} children */
export function heading(title, ...children) {
  return h("div", { class: "heading" }, h("h1", null, title), ...children);
}

/** @param {string} text @param {...any} more */
export function empty(text, ...more) {
  return h("div", { class: "empty" }, h("p", null, text), ...more);
}

/** @param {unknown} error */
export function problem(error) {
  return h("div", { class: "problem", role: "alert" }, String(/** @type {any} */ (error).message ?? error));
}

export function loading() {
  return h("p", { class: "empty", role: "status" }, "Loading …");
}

/**
 * How much of something is used.
 * @param {string} label @param {number} percent @param {string} text
 */
export function meter(label, percent, text) {
  return h(
    "div",
    { class: "meter" },
    h("span", { class: "name" }, label),
    h("span", { class: "value" }, text),
    h(
      "div",
      {
        class: "bar",
        role: "meter",
        "aria-label": label,
        "aria-valuemin": 0,
        "aria-valuemax": 100,
        "aria-valuenow": percent,
        "aria-valuetext": text,
      },
      h("div", { style: { width: `${Math.min(100, percent)}%` } }),
    ),
  );
}

/** Names and values; what has no value is left out. @param {[string, any][]} pairs */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return h(
    "dl",
    { class: "facts" },
    shown.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]).flat(),
  );
}

/** What happened, in order of time. @param {any[]} timeline */
export function happenings(timeline) {
  if (!timeline.length) return empty("No events yet.");
  return h(
    "ol",
    { class: "happenings" },
    timeline.map((each) =>
      h(
        "li",
        null,
        h("time", { datetime: each.time, title: each.time }, clock(each.time)),
        h("strong", null, each.what),
        each.count > 1 && h("span", { class: "quiet" }, `${each.count} times`),
        h("span", { class: "quiet" }, each.pod.split("/").pop()),
        each.message && h("p", null, each.message),
      ),
    ),
  );
}

/** @param {string} text */
export function clock(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text : time.toLocaleTimeString("en-GB");
}

/**
 * @typedef {{title: string, cell: (row: any) => any, class?: string}} Column
 */

/** A table that keeps its rows when they stay as they are; many rows come in pages. */
export class Table {
  /** @param {string} label @param {Column[]} columns @param {(row: any) => string} key */
  constructor(label, columns, key) {
    this.columns = columns;
    this.key = key;
    this.page = 0;
    /** @type {any[]} */
    this.rows = [];
    this.body = h("tbody", null);
    this.place = h("span", { role: "status" });
    this.before = this._turn("Previous", -1);
    this.after = this._turn("Next", 1);
    this.pager = h(
      "div",
      { class: "pager", role: "group", "aria-label": `Pages of ${label.toLowerCase()}`, hidden: true },
      this.before,
      this.place,
      this.after,
    );
    const head = columns.map((each) => h("th", { scope: "col", class: each.class }, each.title));
    this.region = h(
      "div",
      { class: "table", tabindex: 0, role: "region", "aria-label": label },
      h("table", null, h("thead", null, h("tr", null, head)), this.body),
    );
    this.element = h("div", null, this.region, this.pager);
  }

  /** @param {string} text @param {number} pages */
  _turn(text, pages) {
    const turn = () => {
      this.page += pages;
      this.show(this.rows);
      scrollTo(0, 0);
      this.region.focus({ preventScroll: true });
    };
    return h("button", { type: "button", onclick: turn }, text);
  }

  /** @param {any[]} rows */
  show(rows) {
    this.rows = rows;
    const last = Math.max(0, Math.ceil(rows.length / PAGE_ROWS) - 1);
    this.page = Math.min(Math.max(this.page, 0), last);
    const first = this.page * PAGE_ROWS;
    const shown = rows.slice(first, first + PAGE_ROWS);
    sync(this.body, shown, this.key, (row) =>
      h("tr", null, this.columns.map((each) =>
        h("td", { class: each.class, "data-title": each.title }, each.cell(row)),
      )),
    );
    this.pager.hidden = last === 0;
    this.before.disabled = this.page === 0;
    this.after.disabled = this.page === last;
    const place = `${number(first + 1)} to ${number(first + shown.length)} of ${number(rows.length)}`;
    if (this.place.textContent !== place) this.place.textContent = place;
  }

  /** Makes all rows again, with pictures in the colours of another theme. */
  themeChanged() {
    fill(this.body);
    this.show(this.rows);
  }
}

/** @param {number} value */
function number(value) {
  return value.toLocaleString("en");
}

/**
 * A view that is a list with a filter.
 * @param {{title: string, nothing: any, table: Table, rows: () => any[] | null,
 *   text: (row: any) => string, about?: any, announce?: (text: string) => void}} options
 * @returns {{element: HTMLElement, update: () => void}}
 */
export function listView({ title, nothing, table, rows, text, about, announce }) {
  const count = h("span", { class: "count" });
  const filter = h("input", {
    type: "search",
    placeholder: "Filter",
    "aria-label": `Filter ${title.toLowerCase()}`,
    oninput: () => {
      table.page = 0;
      update();
      announce?.(`${counted(table.rows.length, "row")} shown`);
    },
  });
  const body = h("div", null, loading());
  const update = () => {
    const all = rows();
    if (!all) return;
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (/** @type {any} */ row) => {
      const low = text(row).toLowerCase();
      return words.every((/** @type {string} */ word) => low.includes(word));
    };
    const found = words.length ? all.filter(has) : all;
    const isAll = found.length === all.length;
    count.textContent = isAll ? number(all.length) : `${number(found.length)} of ${number(all.length)}`;
    table.show(found);
    const shown = !all.length ? nothing : found.length ? table.element : empty("No row matches the filter.");
    if (body.firstChild !== shown) fill(body, shown);
  };
  update();
  const element = h("div", { class: "list" }, heading(title, count, filter), about, body);
  return { element, update };
}

/**
 * What a view shows in the past if the history has no details; null in the present.
 * @param {import("./store.js").Store} store
 */
export function noDetails(store) {
  return store.past ? h("p", { class: "quiet" }, "The history has no details of single objects. Show the present to read them.") : null;
}

/**
 * A view of one thing that is asked for, and asked for again when something of it has changed.
 * `past` returns what to show instead while the page shows a past moment, or null.
 * @param {{path: string, parts: string[], show: (answer: any) => any, past: () => any}} options
 * @returns {{element: HTMLElement, update: (changed: Set<string>) => void, close: () => void}}
 */
export function detailView({ path, parts, show, past }) {
  const element = h("div", { class: "detail" }, loading());
  let [isAsked, isAgain, isClosed] = [false, false, false];
  const ask = async () => {
    const instead = past();
    if (instead) {
      fill(element, instead);
      return;
    }
    if (isAsked) {
      isAgain = true;
      return;
    }
    isAsked = true;
    try {
      const answer = await get(path);
      if (!isClosed) fill(element, past() ?? show(answer));
    } catch (error) {
      if (!isClosed) fill(element, problem(error));
    }
    isAsked = false;
    if (isAgain && !isClosed) {
      isAgain = false;
      ask();
    }
  };
  ask();
  return {
    element,
    update: (changed) => {
      if (changed.has("moment") || parts.some((each) => changed.has(each))) ask();
    },
    close: () => (isClosed = true),
  };
}
