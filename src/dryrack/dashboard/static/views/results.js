// Results of dryrack plan and dryrack simulate: the plan that the map shows, and two runs side by side.

import { get } from "../api.js";
import { counted, fill, h } from "../dom.js";
import { palette } from "../map/paint.js";
import { empty, facts, heading, loading, nodeLink, objectLink, problem, section } from "../parts.js";
import { to } from "../routes.js";
import { Table } from "../table.js";
import { durationText } from "../time_axis.js";

const CHART_HEIGHT = 220;
const WAITING_HEIGHT = 80;
const GUTTER = 44;
/** Colors of the first and the second run, from the palette. */
const COLOURS = ["allocated", "tainted"];
const PLACEMENTS = {
  any: "The scheduler places all pods on these nodes by itself.",
  pinned: "Pin each pod to its node: left to itself, the scheduler does not place all pods.",
  joint: "Place the pods of a node together, as a gang: one by one, not all get devices.",
};

/**
 * @typedef {{file: string, policy: string, seed: number, ties: string, fleet: string, pods: number,
 *   placed: number, failed: number, allocationRatio: number, fragmentation: number, curve: Point[],
 *   waits: {all: Waits, byQueue: {[queue: string]: Waits}, byDevices: {[devices: string]: Waits}},
 *   utilisation: {mean: number, byModel: {[model: string]: number}},
 *   unplaced: {reason: string, count: number, example: string}[], preemptions: number,
 *   interrupted: number, gangDelay: Waits, duration: number,
 *   cost: {total: number, idle: number, currency: string} | null, fairness: number | null}} Run
 * @typedef {{at: number, isTime: boolean, allocated: number, fragmented: number, waiting: number}} Point
 * @typedef {{count: number, mean: number, p50: number, p95: number, p99: number, max: number}} Waits
 */

/** @param {number} value 0 to 1 */
const percent = (value) => `${(100 * value).toFixed(1)}%`;
/** A difference of two percentages. @param {number} value 0 to 1 */
const points = (value) => `${Number((100 * value).toPrecision(2))} points`;
const number = (/** @type {number} */ value) => value.toLocaleString("en", { maximumFractionDigits: 4 });

/**
 * Label, value of a run, text of a value, and whether a greater value is better (1), worse (-1), or
 * neither (0).
 * @type {[string, (run: Run) => number | null, (value: number) => string, number][]}
 */
const MEASURES = [
  ["Pods that arrived", (run) => run.pods, number, 0],
  ["Pods that ran", (run) => run.placed, number, 1],
  ["Pods that never ran", (run) => run.failed, number, -1],
  ["Allocated devices, mean", (run) => run.allocationRatio, percent, 1],
  ["Fragmented devices, mean", (run) => run.fragmentation, percent, -1],
  ["Wait, mean", (run) => (run.waits.all.count ? run.waits.all.mean : null), durationText, -1],
  ["Wait, median", (run) => (run.waits.all.count ? run.waits.all.p50 : null), durationText, -1],
  ["Wait, 95th percentile", (run) => (run.waits.all.count ? run.waits.all.p95 : null), durationText, -1],
  ["Wait, 99th percentile", (run) => (run.waits.all.count ? run.waits.all.p99 : null), durationText, -1],
  ["Wait, longest", (run) => (run.waits.all.count ? run.waits.all.max : null), durationText, -1],
  ["Delay of gangs, mean", (run) => (run.gangDelay.count ? run.gangDelay.mean : null), durationText, -1],
  ["Delay of gangs, longest", (run) => (run.gangDelay.count ? run.gangDelay.max : null), durationText, -1],
  ["Preemptions", (run) => run.preemptions, number, -1],
  ["Pods interrupted by failures", (run) => run.interrupted, number, -1],
  ["Duration", (run) => run.duration, durationText, 0],
  ["Cost of the nodes", (run) => run.cost?.total ?? null, money, -1],
  ["Cost of idle devices", (run) => run.cost?.idle ?? null, money, -1],
  ["Fairness between queues", (run) => run.fairness, number, 1],
];

/** @param {number} value */
function money(value) {
  return value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
}

export class ResultsView {
  /** @param {import("../page.js").Context} _ @param {import("../routes.js").Route} route */
  constructor(_, route) {
    this.route = route;
    /** @type {{runs: Run[], plan: any} | null} */
    this.answer = null;
    this.body = h("div", null, loading());
    this.element = h("div", { class: "results-view" }, heading("Results"), this.body);
    this.chart = new Chart();
    this.load();
  }

  async load() {
    try {
      this.answer = await get("results");
      this._show();
    } catch (error) {
      fill(this.body, problem(error));
    }
  }

  /** @param {import("../routes.js").Route} route */
  follow(route) {
    if (route.view !== "results") return false;
    this.route = route;
    if (this.answer) this._show();
    return true;
  }

  /** @param {"a" | "b"} key @param {number} otherwise */
  _place(key, otherwise) {
    const place = Number(this.route.query.get(key) ?? otherwise);
    return Number.isInteger(place) && place >= 0 && place < (this.answer?.runs.length ?? 0) ? place : otherwise;
  }

  _show() {
    const { runs, plan } = /** @type {{runs: Run[], plan: any}} */ (this.answer);
    const places = [this._place("a", 0), this._place("b", Math.min(1, runs.length - 1))];
    fill(
      this.body,
      plan ? planPart(plan) : null,
      runs.length ? section("Runs of the simulation", this._comparison(runs, places)) : null,
      !plan && !runs.length ? empty("No results. Open some with: dryrack dashboard --plan FILE --simulation FILE") : null,
    );
    if (runs.length) this.chart.show(places.map((each) => runs[each]));
  }

  /** @param {Run[]} runs @param {number[]} places */
  _comparison(runs, places) {
    const [a, b] = places.map((each) => runs[each]);
    const pick = (/** @type {number} */ side) =>
      h(
        "label",
        { class: `side side-${side}` },
        h("span", null, side ? "Second run" : "First run"),
        h(
          "select",
          { onchange: (/** @type {any} */ event) => this._choose(side, Number(event.target.value)) },
          runs.map((each, n) => h("option", { value: n, selected: n === places[side] }, nameOf(each))),
        ),
      );
    return [
      h("div", { class: "sides" }, pick(0), pick(1)),
      this.chart.element,
      measures(a, b),
      waitsTable("Waits by queue", "Queue", a.waits.byQueue, b.waits.byQueue, (queue) => queue || "no queue"),
      waitsTable("Waits by number of devices of the job", "Devices", a.waits.byDevices, b.waits.byDevices, (devices) => devices),
      modelsTable(a, b),
      unplacedTable(a, b),
      runs.length > 2 ? h("details", null, h("summary", null, `All ${number(runs.length)} runs`), runsTable(runs)) : null,
    ];
  }

  /** @param {number} side @param {number} place */
  _choose(side, place) {
    const places = [this._place("a", 0), this._place("b", 1)];
    places[side] = place;
    location.replace(to("results", [], { a: String(places[0]), b: String(places[1]) }));
  }

  themeChanged() {
    this.chart.paint();
  }

  close() {
    this.chart.close();
  }
}

/** @param {Run} run */
function nameOf({ file, policy, fleet, seed, ties }) {
  return `${file ? `${file}: ` : ""}${policy} · ${fleet} · seed ${seed} · ties ${ties}`;
}

/** @param {string} label @param {any[]} head @param {any[]} rows of cells */
function table(label, head, rows) {
  return h(
    "div",
    { class: "table", tabindex: 0, role: "region", "aria-label": label },
    h(
      "table",
      null,
      h("thead", null, h("tr", null, head.map((each, n) => h("th", { scope: "col", class: n ? "number" : "" }, each)))),
      h(
        "tbody",
        null,
        rows.map(([first, ...cells]) =>
          h("tr", null, h("th", { scope: "row", "data-title": "" }, first), cells.map((/** @type {any} */ each, /** @type {number} */ n) => h("td", { class: "number", "data-title": head[n + 1] }, each))),
        ),
      ),
    ),
  );
}

const HEAD = ["First run", "Second run", "Difference"];
const unknown = () => h("span", { class: "quiet" }, "unknown");

/** @param {Run} a @param {Run} b */
function measures(a, b) {
  const currency = a.cost?.currency ?? b.cost?.currency ?? "";
  const rows = MEASURES.map(([label, read, text, better]) => {
    const [first, second] = [read(a), read(b)];
    const title = label.startsWith("Cost") && currency ? `${label}, ${currency}` : label;
    return [title, first === null ? unknown() : text(first), second === null ? unknown() : text(second), difference(first, second, text, better)];
  });
  return table("Measures of both runs", ["Measure", ...HEAD], rows);
}

/**
 * @param {number | null} a @param {number | null} b @param {(value: number) => string} text
 * @param {number} better
 */
function difference(a, b, text, better) {
  if (a === null || b === null) return unknown();
  if (a === b) return h("span", { class: "quiet" }, "same");
  const tone = better ? ((b > a) === (better > 0) ? "better" : "worse") : "";
  const size = text === percent ? points(Math.abs(b - a)) : text(Math.abs(b - a));
  const shown = `${b > a ? "+" : "−"}${size}`;
  return h("span", { class: tone }, tone ? `${shown}, ${tone}` : shown);
}

/**
 * @param {string} title @param {string} column @param {{[key: string]: Waits}} a @param {{[key: string]: Waits}} b
 * @param {(key: string) => string} name
 */
function waitsTable(title, column, a, b, name) {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])].sort((x, y) => x.localeCompare(y, "en", { numeric: true }));
  if (keys.length < 2) return null;
  const cell = (/** @type {Waits | undefined} */ waits) =>
    waits ? `${durationText(waits.mean)}, ${durationText(waits.p95)} (${counted(waits.count, "pod")})` : h("span", { class: "quiet" }, "no pod ran");
  const rows = keys.map((key) => [name(key), cell(a[key]), cell(b[key]), difference(a[key]?.mean ?? null, b[key]?.mean ?? null, durationText, -1)]);
  return [h("h3", null, `${title}: mean, and 95th percentile`), table(title, [column, HEAD[0], HEAD[1], "Difference of the means"], rows)];
}

/** @param {Run} a @param {Run} b */
function modelsTable(a, b) {
  const [first, second] = [a.utilisation.byModel, b.utilisation.byModel];
  const keys = [...new Set([...Object.keys(first), ...Object.keys(second)])].sort();
  const cell = (/** @type {number | undefined} */ value) => (value === undefined ? h("span", { class: "quiet" }, "none in the fleet") : percent(value));
  const rows = [
    ["All models", percent(a.utilisation.mean), percent(b.utilisation.mean), difference(a.utilisation.mean, b.utilisation.mean, percent, 1)],
    ...(keys.length > 1 || Object.keys(first).join() !== Object.keys(second).join()
      ? keys.map((key) => [key, cell(first[key]), cell(second[key]), difference(first[key] ?? null, second[key] ?? null, percent, 1)])
      : []),
  ];
  return [h("h3", null, "Allocated devices by model"), table("Allocated devices by model", ["Model", ...HEAD], rows)];
}

/** @param {Run} a @param {Run} b */
function unplacedTable(a, b) {
  const reasons = [...new Set([...a.unplaced, ...b.unplaced].map((each) => each.reason))];
  const of = (/** @type {Run} */ run, /** @type {string} */ reason) => run.unplaced.find((each) => each.reason === reason);
  const title = h("h3", null, "Pods that never ran, and why");
  if (!reasons.length) return [title, h("p", null, "All pods ran in both runs.")];
  const rows = reasons.map((reason) => {
    const [first, second] = [of(a, reason), of(b, reason)];
    const example = (first ?? second)?.example;
    return [
      [reason, example ? h("p", { class: "quiet" }, `For example ${example}`) : null],
      number(first?.count ?? 0),
      number(second?.count ?? 0),
      difference(first?.count ?? 0, second?.count ?? 0, number, -1),
    ];
  });
  return [title, table("Pods that never ran", ["Reason", ...HEAD], rows)];
}

/** @param {Run[]} runs */
function runsTable(runs) {
  const shown = new Table(
    "All runs",
    [
      { key: "run", title: "Run", value: ({ run }) => nameOf(run), cell: ({ run }) => nameOf(run), class: "wide" },
      { key: "allocated", title: "Allocated", value: ({ run }) => run.allocationRatio, cell: ({ run }) => percent(run.allocationRatio), class: "number" },
      { key: "fragmented", title: "Fragmented", value: ({ run }) => run.fragmentation, cell: ({ run }) => percent(run.fragmentation), class: "number" },
      { key: "wait", title: "Wait, p95", value: ({ run }) => run.waits.all.p95, cell: ({ run }) => (run.waits.all.count ? durationText(run.waits.all.p95) : "–"), class: "number" },
      { key: "failed", title: "Never ran", value: ({ run }) => run.failed, cell: ({ run }) => number(run.failed), class: "number" },
      { key: "preemptions", title: "Preemptions", value: ({ run }) => run.preemptions, cell: ({ run }) => number(run.preemptions), class: "number" },
      { key: "cost", title: "Cost", value: ({ run }) => run.cost?.total ?? -1, cell: ({ run }) => (run.cost ? `${money(run.cost.total)} ${run.cost.currency}` : "unknown"), class: "number" },
      { key: "compare", title: "Compare", isFixed: true, cell: ({ n }) => [h("a", { href: to("results", [], { a: String(n), b: new URLSearchParams(location.hash.split("?")[1]).get("b") ?? "1" }) }, "as first"), " ", h("a", { href: to("results", [], { a: new URLSearchParams(location.hash.split("?")[1]).get("a") ?? "0", b: String(n) }) }, "as second")] },
    ],
    (row) => String(row.n),
  );
  shown.show(runs.map((run, n) => ({ run, n })));
  return shown.element;
}

/** Allocation and fragmentation of two runs, and below them the waiting pods. */
class Chart {
  constructor() {
    /** @type {Run[]} */
    this.runs = [];
    this.canvas = h("canvas", { class: "chart", role: "img" });
    this.legend = h("ul", { class: "lines" });
    this.element = h("div", { class: "curves card" }, this.legend, this.canvas);
    this.canvas.style.height = `${CHART_HEIGHT + WAITING_HEIGHT + 48}px`;
    this._observer = new ResizeObserver(() => this.paint());
    this._observer.observe(this.canvas);
  }

  close() {
    this._observer.disconnect();
  }

  /** @param {Run[]} runs */
  show(runs) {
    this.runs = runs;
    const line = (/** @type {number} */ side, /** @type {string} */ text, /** @type {string} */ kind = "") => h("li", null, h("i", { class: `line side-${side} ${kind}` }), text);
    fill(
      this.legend,
      line(0, "first run: allocated"),
      line(0, "fragmented", "dashed"),
      line(1, "second run: allocated"),
      line(1, "fragmented", "dashed"),
    );
    const means = runs.map((each) => `${nameOf(each)}: ${percent(each.allocationRatio)} allocated, ${percent(each.fragmentation)} fragmented`);
    this.canvas.setAttribute("aria-label", `Allocated and fragmented devices, and waiting pods. Means: ${means.join("; ")}`);
    this.paint();
  }

  paint() {
    const { canvas, runs } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width || !runs.length) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(ratio, ratio);
    const colours = palette();
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const isTime = runs.every((each) => each.curve.every((point) => point.isTime));
    const ends = runs.map((each) => Math.max(each.curve.at(-1)?.at ?? 0, isTime ? each.duration : 0));
    const last = Math.max(1e-9, ...ends);
    const xOf = (/** @type {number} */ at) => GUTTER + (at / last) * (width - GUTTER - 8);
    const yOf = (/** @type {number} */ value) => 8 + (1 - value / 100) * (CHART_HEIGHT - 8);
    for (const value of [0, 25, 50, 75, 100]) grid(context, `${value}%`, yOf(value), width, colours);
    const most = Math.max(1, ...runs.flatMap((each) => each.curve.map((point) => point.waiting)));
    const top = CHART_HEIGHT + 14;
    const waitingY = (/** @type {number} */ value) => top + (1 - value / most) * WAITING_HEIGHT;
    grid(context, "0", waitingY(0), width, colours);
    grid(context, number(most), waitingY(most), width, colours);
    context.fillStyle = colours.quiet;
    context.fillText("waiting pods", GUTTER + 4, top + 8);
    if (!isTime) context.fillText("demand, in percent of the devices", GUTTER + 4, top + WAITING_HEIGHT + 24);
    ticks(context, last, isTime, xOf, { width, y: top + WAITING_HEIGHT + 10 }, colours);
    runs.forEach((run, side) => {
      context.strokeStyle = colours[COLOURS[side]];
      const draw = (/** @type {(point: Point) => number} */ y, /** @type {number} */ thick, /** @type {number[]} */ dash) => {
        context.lineWidth = thick;
        context.setLineDash(dash);
        steps(context, run.curve, ends[side], xOf, y);
      };
      // The second run is narrower, so that both are seen where they are equal.
      draw((point) => yOf(point.allocated), side ? 1.75 : 3.5, []);
      draw((point) => yOf(point.fragmented), side ? 1.25 : 2.25, [5, 4]);
      draw((point) => waitingY(point.waiting), side ? 1.5 : 3, []);
      context.setLineDash([]);
    });
  }
}

/**
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} y
 * @param {number} width @param {import("../map/paint.js").Palette} colours
 */
function grid(context, text, y, width, colours) {
  context.fillStyle = colours.line;
  context.fillRect(GUTTER, y, width - GUTTER - 8, 1);
  context.fillStyle = colours.quiet;
  context.fillText(text, GUTTER - 6 - context.measureText(text).width, y);
}

/**
 * @param {CanvasRenderingContext2D} context @param {number} last @param {boolean} isTime
 * @param {(at: number) => number} xOf @param {{width: number, y: number}} place
 * @param {import("../map/paint.js").Palette} colours
 */
function ticks(context, last, isTime, xOf, { width, y }, colours) {
  const unit = !isTime ? 1 : last > 3 * 86400 ? 86400 : last > 7200 ? 3600 : last > 180 ? 60 : 1;
  const names = { 86400: "d", 3600: "h", 60: "min", 1: "s" };
  const name = isTime ? names[/** @type {1} */ (unit)] : "%";
  const count = Math.max(2, Math.floor((width - GUTTER) / 90));
  const rough = last / unit / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? rough;
  context.fillStyle = colours.quiet;
  for (let at = 0; at * unit <= last; at += step) {
    const text = `${number(Number(at.toPrecision(6)))}${isTime ? " " : ""}${name}`;
    const room = context.measureText(text).width;
    context.fillText(text, Math.min(width - room, Math.max(0, xOf(at * unit) - room / 2)), y);
  }
}

/**
 * A value stays as it is until the next point.
 * @param {CanvasRenderingContext2D} context @param {Point[]} curve @param {number} end
 * @param {(at: number) => number} xOf @param {(point: Point) => number} yOf
 */
function steps(context, curve, end, xOf, yOf) {
  if (!curve.length) return;
  context.beginPath();
  context.moveTo(xOf(curve[0].at), yOf(curve[0]));
  for (let n = 1; n < curve.length; n++) {
    context.lineTo(xOf(curve[n].at), yOf(curve[n - 1]));
    context.lineTo(xOf(curve[n].at), yOf(curve[n]));
  }
  context.lineTo(xOf(end), yOf(curve[curve.length - 1]));
  context.stroke();
}

/** @param {any} plan */
function planPart(plan) {
  const { cost, currency, objective, bound, oneFewer, prices } = plan;
  const nodes = [...plan.nodes, ...plan.existing];
  const lower = objective === "cost" ? `${money(bound)} ${currency}` : counted(bound, "node");
  const shown = new Table(
    "Nodes of the plan",
    [
      { key: "name", title: "Node", value: (row) => row.name || row.node, cell: (row) => nodeLink(row.name || row.node) },
      { key: "instanceType", title: "Type", cell: (row) => (row.node ? "exists already" : `${row.instanceType}${row.zone ? ` in ${row.zone}` : ""}`) },
      { key: "pods", title: "Pods", value: (row) => row.pods.length, cell: (row) => row.pods.map((/** @type {string} */ each, /** @type {number} */ n) => [n ? ", " : "", podLink(each)]), class: "text" },
      { key: "devices", title: "Devices in use", value: (row) => row.devices.length, cell: (row) => devicesText(row.devices), class: "number" },
      { key: "left", title: "Left", isFixed: true, cell: (row) => Object.entries(row.left).map(([name, amount]) => `${name} ${amount}`).join(", "), class: "text" },
    ],
    (row) => row.name || row.node,
  );
  shown.show(nodes);
  const left = new Table(
    "Pods that are not in the plan",
    [
      { key: "pod", title: "Pod", cell: (row) => podLink(row.pod), class: "wide" },
      { key: "why", title: "Why", cell: (row) => row.why, class: "text" },
    ],
    (row) => row.pod,
  );
  left.show(plan.unplaceable);
  return section(
    "Plan",
    h("p", null, h("b", null, `Add ${counted(plan.nodes.length, "node")}`), cost === null ? "; the cost is unknown" : ` for ${money(cost)} ${currency}`, ". ", h("a", { href: to("fleet") }, "Show the nodes on the map")),
    facts([
      ["proof", `${plan.optimal ? "no plan is better" : "a better plan may exist"}: ${plan.proof}`],
      ["lower bound", lower],
      ["placement", PLACEMENTS[/** @type {keyof typeof PLACEMENTS} */ (plan.placement)] ?? plan.placement],
      ["cheaper if", oneFewer ? `${oneFewer.change}: ${counted(oneFewer.nodes, "node")} fewer, saves ${money(oneFewer.saves)} ${objective === "cost" ? currency : ""}` : ""],
      ["prices", prices ? `${prices.date}, ${prices.source}` : ""],
    ]),
    plan.existing.length ? h("p", { class: "quiet" }, "Of nodes that exist already, the map shows only the devices that the plan uses.") : null,
    shown.element,
    plan.unplaceable.length ? [h("h3", null, "Pods that are not in the plan"), left.element] : null,
  );
}

/** @param {any[]} devices */
function devicesText(devices) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  const known = new Set();
  for (const each of devices) {
    const id = `${each.driver}/${each.pool}/${each.device}`;
    if (!known.has(id)) counts.set(each.driver, (counts.get(each.driver) ?? 0) + 1);
    known.add(id);
  }
  return [...counts].map(([driver, count]) => `${number(count)} × ${driver}`).join(", ") || "–";
}

/** @param {string} name */
function podLink(name) {
  const [namespace, ...rest] = name.split("/");
  return objectLink("pods", namespace, rest.join("/"));
}
