// The history: a time axis, the delays of gangs on it, and what differs between two moments.

import { get } from "../api.js";
import { counted, fill, h } from "../dom.js";
import { Moments } from "../moments.js";
import { deviceLink, empty, heading, loading, nodeLink, objectLink, problem, section } from "../parts.js";
import { to } from "../routes.js";
import { Table } from "../table.js";
import { durationText, TimeAxis, timeText } from "../time_axis.js";

const HEIGHT = 96;
const REFRESH_MS = 2000;
const ASK_AFTER_MS = 150;
const GANGS_SHOWN = 40;

export class HistoryView {
  /** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
  constructor({ store, announce }, route) {
    this.store = store;
    this.announce = announce;
    this.route = route;
    this.moments = new Moments();
    this._isDue = false;
    this._isClosed = false;
    this._compared = "";
    this._isAsking = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this._asking = undefined;
    this.axis = new TimeAxis({ height: HEIGHT, select: (range) => this._select(range) });
    this.from = this._slider("From", (place) => this._go({ from: place }));
    this.to = this._slider("To", (place) => this._go({ to: place }));
    this.text = h("p", { class: "range", role: "status" });
    this.all = h("button", { type: "button", onclick: () => this._go({ from: null, to: null }) }, "Show all");
    this.gangs = h("div", { class: "gangs" });
    this.gangPart = section("Gangs", this.gangs);
    this.differences = h("div", null, loading());
    this.table = changesTable();
    this.changes = h("div", null);
    this.controls = h("div", { class: "ends" }, this.from.element, this.to.element);
    this.content = h(
      "div",
      null,
      this.axis.element,
      this.controls,
      this.gangPart,
      section("Differences", this.differences),
      section("Changes", this.changes),
    );
    this.body = h("div", null, loading());
    this.element = h("div", { class: "history-view" }, heading("History", this.text, this.all), this.body);
    this.load();
  }

  /** @param {string} label @param {(place: number) => void} moved */
  _slider(label, moved) {
    const input = h("input", {
      type: "range",
      min: 0,
      value: 0,
      oninput: () => moved(Number(input.value)),
    });
    const text = h("span", { class: "quiet" });
    return { input, text, element: h("label", null, h("span", null, label), input, text) };
  }

  async load() {
    try {
      await this.moments.load();
    } catch (error) {
      fill(this.body, problem(error));
      return;
    }
    if (this._isClosed) return;
    fill(this.body, this.moments.all.length ? this.content : empty("No changes since the first visit to the dashboard."));
    this._show();
  }

  /** The places of both ends; without an address, the whole history until the moment of the page. */
  _ends() {
    const { all } = this.moments;
    const [from, until] = ["from", "to"].map((key) => this.route.query.get(key));
    const at = until ?? this.route.query.get("at");
    const last = this._placeOf(at, all.length - 1);
    return { first: Math.min(last, this._placeOf(from, 0)), last, isOpen: !at };
  }

  /** @param {string | null | undefined} text a revision or a time @param {number} otherwise */
  _placeOf(text, otherwise) {
    if (!text || text === "now") return otherwise;
    if (/^\d+$/.test(text)) return this.moments.placeOf(Number(text));
    const time = Date.parse(text);
    return Number.isNaN(time) ? otherwise : this.moments.placeAt(time);
  }

  /** @param {import("../time_axis.js").Range} range */
  _select({ from, to: until }) {
    this._go({ from: this.moments.placeAt(from), to: this.moments.placeAt(until) });
  }

  /** @param {{from?: number | null, to?: number | null}} change places, null for the whole history */
  _go(change) {
    const { all } = this.moments;
    const query = Object.fromEntries(
      ["from", "to"].map((key) => {
        const place = change[/** @type {"from" | "to"} */ (key)];
        if (place === null) return [key, ""];
        return [key, place === undefined ? (this.route.query.get(key) ?? "") : String(all[place]?.revision ?? "")];
      }),
    );
    location.replace(to("history", [], query));
  }

  _show() {
    const { all } = this.moments;
    if (!all.length) return;
    const { first, last, isOpen } = this._ends();
    const range = { from: all[first].at, to: isOpen ? this.moments.end : all[last].at };
    if (range.to - range.from < 10) range.to = range.from + 10;
    this.range = range;
    const shown = this.store.past ? Date.parse(this.store.past.time) : null;
    this.axis.show(this.moments, range, shown);
    for (const [slider, place] of /** @type {[typeof this.from, number][]} */ ([[this.from, first], [this.to, last]])) {
      slider.input.max = String(all.length - 1);
      slider.input.value = String(place);
      slider.text.textContent = timeText(all[place].at, this.moments.end);
      slider.input.setAttribute("aria-valuetext", slider.text.textContent);
    }
    const end = isOpen ? "now" : timeText(all[last].at, this.moments.end);
    this.text.textContent = `${timeText(all[first].at, this.moments.end)} to ${end}`;
    this.controls.hidden = all.length < 2;
    this.all.disabled = first === 0 && last === all.length - 1;
    this._showGangs(range);
    const rows = all.slice(first, last + 1).flatMap(changeRows).reverse();
    fill(this.changes, rows.length ? this.table.element : empty("No changes between these moments."));
    this.table.show(rows);
    this._compare(all[first].revision, all[last].revision);
  }

  /** @param {import("../time_axis.js").Range} range */
  _showGangs({ from, to: until }) {
    const { gangs, gangsOmitted, end } = this.moments;
    const shown = gangs.filter((each) => {
      const placed = each.placed ? Date.parse(each.placed) : end;
      return placed >= from - 1000 && (!each.created || Date.parse(each.created) <= until);
    });
    this.gangPart.hidden = !gangs.length;
    const more = Math.max(0, shown.length - GANGS_SHOWN) + gangsOmitted;
    fill(
      this.gangs,
      shown.length ? null : empty("No gang started between these moments."),
      shown.slice(0, GANGS_SHOWN).map((each) => gangRow(each, { from, to: until, now: end })),
      more ? h("p", { class: "quiet" }, `and ${counted(more, "older gang")}`) : null,
    );
  }

  /** @param {number} from @param {number} until revisions */
  _compare(from, until) {
    const asked = `compare?from=${from}&to=${until}`;
    if (asked === this._compared) return;
    this._compared = asked;
    // A slider passes many moments; only the last one is compared, after the answer before it.
    clearTimeout(this._asking);
    if (!this._isAsking) this._asking = setTimeout(() => this._ask(), ASK_AFTER_MS);
  }

  async _ask() {
    const asked = this._compared;
    this._isAsking = true;
    let shown;
    try {
      shown = differences(await get(asked));
    } catch (error) {
      shown = problem(error);
    }
    this._isAsking = false;
    if (this._isClosed) return;
    fill(this.differences, shown);
    if (asked !== this._compared) this._asking = setTimeout(() => this._ask(), ASK_AFTER_MS);
  }

  /** @param {import("../routes.js").Route} route */
  follow(route) {
    if (route.view !== "history") return false;
    this.route = route;
    this._show();
    return true;
  }

  /** @param {Set<string>} parts */
  update(parts) {
    if (parts.has("moment")) this._show();
    if (this._isDue || !["fleet", "pods", "gangs", "claims"].some((each) => parts.has(each))) return;
    this._isDue = true;
    setTimeout(() => {
      this._isDue = false;
      if (!this._isClosed) this.load();
    }, REFRESH_MS);
  }

  themeChanged() {
    this.axis.paint();
  }

  close() {
    this._isClosed = true;
    clearTimeout(this._asking);
    this.axis.close();
  }
}

/** @param {import("../moments.js").Moment} moment */
function changeRows(moment) {
  const rows = moment.changes.map((each, n) => ({ ...each, moment, n }));
  if (moment.more) {
    rows.push({ kind: "", name: "", what: `and ${counted(moment.more, "more change")}`, mark: "", moment, n: rows.length });
  }
  return rows;
}

function changesTable() {
  return new Table(
    "Changes",
    [
      { key: "time", title: "Time", value: ({ moment }) => moment.at, cell: ({ moment }) => h("a", { href: to("fleet", [], { at: String(moment.revision) }), title: `Show the map at ${moment.time}` }, timeText(moment.at, Date.now())) },
      { key: "kind", title: "Kind", cell: (row) => row.kind },
      { key: "name", title: "Name", cell: (row) => nameCell(row), class: "wide" },
      { key: "what", title: "Change", cell: (row) => `${row.count ? `${row.count} × ` : ""}${row.what}`, class: "text" },
    ],
    (row) => `${row.moment.revision}/${row.n}`,
  );
}

/** @param {{kind: string, name: string}} row */
function nameCell({ kind, name }) {
  if (kind === "pod") return objectCell("pods", name);
  return kind === "node" ? nodeLink(name) : name;
}

/** @param {"pods" | "claims" | "gangs"} view @param {string} name */
function objectCell(view, name) {
  const [namespace, ...rest] = name.split("/");
  return objectLink(view, namespace, rest.join("/"));
}

/**
 * The delay of a gang: a bar from the first member to the moment when enough were bound, and a mark
 * for each member.
 * @param {any} gang @param {{from: number, to: number, now: number}} range
 */
function gangRow(gang, { from, to: until, now }) {
  const percent = (/** @type {number} */ time) => (100 * (Math.min(until, Math.max(from, time)) - from)) / (until - from);
  const begin = gang.created ? Date.parse(gang.created) : from;
  const end = gang.placed ? Date.parse(gang.placed) : now;
  const bound = gang.members.filter((/** @type {any} */ each) => each.scheduled).length;
  const total = gang.members.length + gang.membersOmitted;
  const delay = gang.placed
    ? gang.delaySeconds === null ? "placed; the delay is not known" : gang.delaySeconds ? `placed after ${durationText(gang.delaySeconds)}` : "placed within a second"
    : `waits since ${gang.created ? timeText(begin, now) : "an unknown time"}, ${gang.status}`;
  const text = `${delay}; ${bound} of ${total} members bound, needs ${gang.minCount}`;
  const ticks = gang.members.map((/** @type {any} */ each) => {
    const time = Date.parse(each.scheduled);
    if (!each.scheduled || time < from - 1000 || time > until) return null;
    return h("i", { style: { left: `${percent(time)}%` }, title: `${each.name} bound ${timeText(time, now)}` });
  });
  return h(
    "div",
    { class: "gang" },
    h("p", { class: "of-gang" }, objectLink("gangs", gang.namespace, gang.name), h("span", { class: "quiet" }, text)),
    h(
      "div",
      { class: "delay", role: "img", "aria-label": text },
      h("b", { class: gang.placed ? "" : "waits", style: { left: `${percent(begin)}%`, width: `${Math.max(0, percent(end) - percent(begin))}%` } }),
      ticks,
    ),
  );
}

/** @param {any} answer */
function differences(answer) {
  const { devices, from, to: until } = answer;
  const parts = [
    ["Nodes", answer.nodes, (/** @type {any} */ row) => nodeLink(row.name)],
    ["Pods", answer.pods, (/** @type {any} */ row) => objectCell("pods", row.name)],
    ["Claims", answer.claims, (/** @type {any} */ row) => objectCell("claims", row.name)],
    ["Gangs", answer.gangs, (/** @type {any} */ row) => objectCell("gangs", row.name)],
    ["Devices", devices, (/** @type {any} */ row) => [deviceLink(row.name), h("div", { class: "quiet" }, `${row.model}${row.node ? ` on ${row.node}` : ""}`)]],
  ].filter(([, part]) => part.changed.length);
  if (from.revision === until.revision) return empty("Both ends are the same moment.");
  return [
    statesTable(from, until),
    devices.counts.length
      ? h("p", null, "Devices: ", devices.counts.map((/** @type {any} */ each) => `${each.count.toLocaleString("en")} × ${each.model} ${each.was || "none"} → ${each.now || "none"}`).join("; "))
      : h("p", { class: "quiet" }, "No device has another state."),
    parts.map(([title, part, cell]) => differenceTable(title, part, cell)),
  ];
}

/** @param {string} title @param {any} part @param {(row: any) => any} cell */
function differenceTable(title, part, cell) {
  const table = new Table(
    `${title} that differ`,
    [
      { key: "name", title: "Name", cell, class: "wide" },
      { key: "was", title: "Was", cell: (row) => row.was || h("span", { class: "quiet" }, "did not exist"), class: "text" },
      { key: "now", title: "Is", cell: (row) => row.now || h("span", { class: "quiet" }, "does not exist"), class: "text" },
    ],
    (row) => row.name,
  );
  table.show(part.changed);
  const count = part.changed.length + part.omitted;
  return h(
    "details",
    null,
    h("summary", null, `${title}: ${count.toLocaleString("en")} differ`),
    table.element,
    part.omitted ? h("p", { class: "quiet" }, `and ${part.omitted.toLocaleString("en")} more`) : null,
  );
}

/** @param {any} from @param {any} until */
function statesTable(from, until) {
  const states = [...new Set([...Object.keys(from.states), ...Object.keys(until.states)])];
  if (!states.length) return null;
  const row = (/** @type {string} */ label, /** @type {any} */ { time, revision, states: counts }) =>
    h(
      "tr",
      null,
      h("th", { scope: "row", "data-title": "" }, h("a", { href: to("fleet", [], { at: String(revision) }), title: `Show the map at ${time}` }, label)),
      states.map((state) => h("td", { class: "number", "data-title": state }, (counts[state] ?? 0).toLocaleString("en"))),
    );
  const change = states.map((state) => (until.states[state] ?? 0) - (from.states[state] ?? 0));
  return h(
    "div",
    { class: "table", tabindex: 0, role: "region", "aria-label": "Devices by state" },
    h(
      "table",
      null,
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Devices"), states.map((each) => h("th", { scope: "col", class: "number" }, each)))),
      h(
        "tbody",
        null,
        row("From", from),
        row("To", until),
        h("tr", null, h("th", { scope: "row" }, "Difference"), change.map((each, n) => h("td", { class: "number", "data-title": states[n] }, signed(each)))),
      ),
    ),
  );
}

/** @param {number} value */
export function signed(value) {
  if (!value) return "0";
  return `${value > 0 ? "+" : "−"}${Math.abs(value).toLocaleString("en")}`;
}
