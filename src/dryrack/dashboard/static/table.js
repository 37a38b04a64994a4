// Tables that sort and filter. Their state is in the address: `sort=-age`, `filter=words`, `page=2`,
// and a parameter for each column with a choice of values, such as `state=free`.

import { counted, fill, h } from "./dom.js";
import { sortedBy } from "./order.js";
import { empty, heading, loading } from "./parts.js";
import { kept, patchChildren } from "./patch.js";
import { parse, setParameters } from "./routes.js";

const PAGE_ROWS = 200;
/** A list of values that is longer is no help; the filter finds the others. */
const CHOICES_MAX = 60;
const TYPING_MS = 100;

/**
 * @typedef {{
 *   key: string, title: string, cell: (row: any) => any, class?: string,
 *   value?: (row: any) => string | number, isChoice?: boolean, isFixed?: boolean,
 *   isHidden?: boolean,
 * }} Column `value` is what the column sorts and filters by; by default the field `key` of the row.
 *   A column with `isChoice` offers its values; a column with `isFixed` does not sort;
 *   a column with `isHidden` only filters.
 */

/** A choice of namespaces, for a table whose first column shows namespace and name. @returns {Column} */
export function namespaceChoice() {
  return { key: "namespace", title: "Namespace", cell: (row) => row.namespace, isChoice: true, isHidden: true };
}

/** @param {Column} column @param {any} row @returns {string | number} */
function valueOf(column, row) {
  return column.value ? column.value(row) : (row[column.key] ?? "");
}

/** Rows in pages; a row that changes is updated in place. */
export class Table {
  /** @param {string} label @param {Column[]} columns @param {(row: any) => string} key */
  constructor(label, columns, key) {
    this.columns = columns;
    this.shown = columns.filter((each) => !each.isHidden);
    this.key = key;
    this.page = 0;
    this.sort = "";
    /** @type {any[]} */
    this.rows = [];
    /** Called when the user sorts or turns a page. @type {() => void} */
    this.changed = () => this.show(this.rows);
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
    this.heads = this.shown.map((each) => h("th", { scope: "col", class: each.class }, this._head(each)));
    this.region = h(
      "div",
      { class: "table", tabindex: 0, role: "region", "aria-label": label },
      h("table", null, h("thead", null, h("tr", null, this.heads)), this.body),
    );
    this.element = h("div", null, this.region, this.pager);
  }

  /** @param {Column} column */
  _head(column) {
    if (column.isFixed || !column.title) return column.title;
    const order = () => {
      // Ascending, descending, and back to the order of the view.
      this.sort = this.sort === column.key ? `-${column.key}` : this.sort === `-${column.key}` ? "" : column.key;
      this.page = 0;
      this.changed();
    };
    return h("button", { type: "button", class: "sort", onclick: order }, column.title);
  }

  /** @param {string} text @param {number} pages */
  _turn(text, pages) {
    const turn = () => {
      this.page += pages;
      this.changed();
      this.element.scrollIntoView({ block: "start" });
      this.region.focus({ preventScroll: true });
    };
    return h("button", { type: "button", onclick: turn }, text);
  }

  /** @param {any[]} rows in the order of the view */
  show(rows) {
    this.rows = rows;
    const name = this.sort.replace(/^-/, "");
    const column = this.columns.find((each) => each.key === name && !each.isFixed);
    const sorted = column ? sortedBy(rows, (row) => valueOf(column, row), this.sort !== name) : rows;
    this.shown.forEach((each, n) => {
      const order = each !== column ? null : this.sort === name ? "ascending" : "descending";
      if (order) this.heads[n].setAttribute("aria-sort", order);
      else this.heads[n].removeAttribute("aria-sort");
    });
    const last = Math.max(0, Math.ceil(rows.length / PAGE_ROWS) - 1);
    this.page = Math.min(Math.max(this.page, 0), last);
    const first = this.page * PAGE_ROWS;
    const shown = sorted.slice(first, first + PAGE_ROWS);
    this._fill(shown);
    this.pager.hidden = last === 0;
    this.before.disabled = this.page === 0;
    this.after.disabled = this.page === last;
    const place = `${number(first + 1)} to ${number(first + shown.length)} of ${number(rows.length)}`;
    if (this.place.textContent !== place) this.place.textContent = place;
  }

  /** @param {any[]} rows of the page */
  _fill(rows) {
    const before = new Map([...this.body.children].map((each) => [each.key, each]));
    const after = rows.map((row) => {
      const [key, text] = [this.key(row), JSON.stringify(row)];
      const known = before.get(key);
      if (known?.text === text) return known;
      const cells = this.shown.map((each) =>
        h("td", { class: each.class, "data-title": each.title }, each.cell(row)),
      );
      const made = h("tr", null, cells);
      if (known) patchChildren(known, made);
      return Object.assign(known ?? made, { key, text });
    });
    const stays = new Set(after);
    for (const each of [...this.body.children]) if (!stays.has(each)) each.remove();
    after.forEach((each, n) => {
      if (this.body.children[n] !== each) this.body.insertBefore(each, this.body.children[n] ?? null);
    });
  }

  /** The table for a view that shows itself again with each answer. */
  kept() {
    return kept(this.element);
  }

  /** Makes all rows again, with pictures in the colors of another theme. */
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
 * A view that is a list: its rows, a filter of words, and a choice of values for some columns. A word
 * such as `node:rack-1` filters one column.
 * @param {{title: string, nothing: any, table: Table, rows: () => any[] | null,
 *   text?: (row: any) => string, about?: any, announce?: (text: string) => void}} options
 * `text` returns more text of a row that the filter finds
 * @returns {{element: HTMLElement, update: () => void, themeChanged: () => void,
 *   follow: (route: import("./routes.js").Route) => boolean}}
 */
export function listView({ title, nothing, table, rows, text, about, announce }) {
  const count = h("span", { class: "count" });
  const filter = h("input", {
    type: "search",
    placeholder: "Filter, or column:text",
    "aria-label": `Filter ${title.toLowerCase()}`,
    oninput: () => {
      clearTimeout(typing);
      typing = setTimeout(() => setParameters({ filter: filter.value, page: "" }), TYPING_MS);
    },
  });
  const choices = table.columns.filter((each) => each.isChoice).map((each) => new Choice(each));
  // On a narrow screen, the head of the table is not shown.
  const orders = table.shown.filter((each) => each.title && !each.isFixed);
  const order = h(
    "select",
    { "aria-label": "Sort", onchange: () => setParameters({ sort: order.value, page: "" }) },
    h("option", { value: "" }, "default order"),
    orders.flatMap((each) => [h("option", { value: each.key }, `${each.title} ↑`), h("option", { value: `-${each.key}` }, `${each.title} ↓`)]),
  );
  const body = h("div", null, loading());
  let typing = 0;
  let { view, names, query } = parse(location.hash);
  // The page follows its address.
  table.changed = () => setParameters({ sort: table.sort, page: table.page ? String(table.page + 1) : "" });
  const read = () => {
    const words = query.get("filter") ?? "";
    // The address is older than what the user types.
    if (filter !== document.activeElement) filter.value = words;
    table.sort = query.get("sort") ?? "";
    order.value = table.sort;
    table.page = Math.max(0, (Number(query.get("page")) || 1) - 1);
    for (const each of choices) each.wanted = new Set(query.getAll(each.column.key));
  };
  const update = () => {
    const every = rows();
    if (!every) return;
    for (const each of choices) each.offer(every);
    const has = matcher(table.columns, filter.value, text);
    const found = every.filter((row) => choices.every((each) => each.has(row)) && (!has || has(row)));
    const isAll = found.length === every.length;
    const shownCount = isAll ? number(every.length) : `${number(found.length)} of ${number(every.length)}`;
    if (count.textContent !== shownCount) count.textContent = shownCount;
    table.show(found);
    const shown = !every.length ? nothing : found.length ? table.element : empty("No row matches the filter.");
    if (body.firstChild !== shown) fill(body, shown);
  };
  read();
  update();
  const tools = h(
    "div",
    { class: "filters" },
    choices.map((each) => each.element),
    h("label", { class: "choice sort-choice" }, h("span", null, "Sort"), order),
    filter,
  );
  const element = h("div", { class: "list" }, heading(title, count, tools), about, body);
  return {
    element,
    update,
    themeChanged: () => table.themeChanged(),
    follow: (route) => {
      if (route.view !== view || route.names.join("/") !== names.join("/")) return false;
      query = route.query;
      read();
      update();
      announce?.(`${counted(table.rows.length, "row")} shown`);
      return true;
    },
  };
}

/**
 * Returns a function that says whether a row has all words of a filter; null for no filter.
 * @param {Column[]} columns @param {string} filter @param {((row: any) => string) | undefined} more
 */
function matcher(columns, filter, more) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  const tests = words.map((word) => {
    const [, name, rest] = /^([a-z]+):(.*)$/.exec(word) ?? [];
    const column = columns.find((each) => each.key.toLowerCase() === name || each.title.toLowerCase() === name);
    return { word: column ? rest : word, column };
  });
  return (/** @type {any} */ row) => {
    let all = "";
    return tests.every(({ word, column }) => {
      if (column) return String(valueOf(column, row)).toLowerCase().includes(word);
      all ||= `${columns.map((each) => valueOf(each, row)).join(" ")} ${more?.(row) ?? ""}`.toLowerCase();
      return all.includes(word);
    });
  };
}

/** A choice of the values of a column. Several values of the address are alternatives. */
class Choice {
  /** @param {Column} column */
  constructor(column) {
    this.column = column;
    /** @type {Set<string>} */
    this.wanted = new Set();
    this._offered = "";
    this.select = h("select", {
      "aria-label": column.title,
      onchange: () => setParameters({ [column.key]: this.select.value, page: "" }),
    });
    this.element = h("label", { class: "choice", hidden: true }, h("span", null, column.title), this.select);
  }

  /** @param {any} row */
  has(row) {
    return !this.wanted.size || this.wanted.has(String(valueOf(this.column, row)));
  }

  /** Offers the values of all rows, with their number. @param {any[]} rows */
  offer(rows) {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const row of rows) {
      const value = String(valueOf(this.column, row));
      counts.set(value, (counts.get(value) ?? 0) + 1);
    }
    counts.delete("");
    for (const each of this.wanted) counts.set(each, counts.get(each) ?? 0);
    const values = sortedBy([...counts.keys()], (each) => each).slice(0, CHOICES_MAX);
    const several = this.wanted.size > 1 ? [...this.wanted].join(", ") : "";
    const offered = JSON.stringify([values.map((each) => [each, counts.get(each)]), [...this.wanted]]);
    if (offered === this._offered) return;
    this._offered = offered;
    this.element.hidden = counts.size < 2 && !this.wanted.size;
    const option = (/** @type {string} */ each) => h("option", { value: each }, `${each} (${number(counts.get(each) ?? 0)})`);
    fill(
      this.select,
      h("option", { value: "" }, "all"),
      several ? h("option", { value: several, disabled: true }, several) : null,
      values.map(option),
    );
    this.select.value = several || [...this.wanted][0] || "";
  }
}
