// The time axis: how many devices had which state, and marks for what happened to pods and devices.

import { counted, fill, h } from "./dom.js";
import { palette } from "./map/paint.js";

/** From the bottom up. */
const ORDER = [
  ...["prepared", "allocated", "conflict", "shared", "blocked", "tainted", "unhealthy"],
  ...["cordoned", "not ready", "no node", "incomplete"],
  ...["withdrawn", "free"],
];
/** Mark, label, color of the palette, and shape. @type {[string, string, string, string][]} */
export const MARKS = [
  ["created", "Created", "quiet", "ring"],
  ["bound", "Bound", "allocated", "disc"],
  ["failed", "Failed", "unhealthy", "cross"],
  ["preempted", "Preempted", "tainted", "triangle"],
  ["evicted", "Evicted", "not ready", "hollow"],
  ["fault", "Faults", "conflict", "diamond"],
];
const LANE = 16;
const TICKS = 18;
const TICK_WIDTH_MIN = 84;
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].map((each) => each * 1000),
  ...[1, 2, 3, 6, 12, 24, 48, 168].map((each) => each * 3600_000),
];

/** @typedef {{from: number, to: number}} Range milliseconds */

export class TimeAxis {
  /** @param {{height: number, select?: (range: Range) => void}} options `select` gets a range that is drawn */
  constructor({ height, select }) {
    this.height = height;
    this.select = select;
    /** @type {import("./moments.js").Moments | null} */
    this.moments = null;
    /** @type {Range} */
    this.range = { from: 0, to: 1 };
    /** The moment that the page shows, in milliseconds; null for none. @type {number | null} */
    this.shown = null;
    /** @type {Range | null} */
    this._drawn = null;
    this.labels = h("div", { class: "labels", "aria-hidden": "true" });
    this.canvas = h("canvas", { class: "chart", "aria-hidden": "true" });
    this.track = h("div", { class: "track" }, this.canvas);
    this.element = h("div", { class: "axis" }, this.labels, this.track);
    this._observer = new ResizeObserver(() => this.paint());
    this._observer.observe(this.track);
    if (select) this._listen();
  }

  close() {
    this._observer.disconnect();
  }

  /** @param {import("./moments.js").Moments} moments @param {Range} range @param {number | null} shown */
  show(moments, range, shown) {
    this.moments = moments;
    this.range = range;
    this.shown = shown;
    this.lanes = MARKS.filter(([mark]) => moments.all.some((each) => each.marks[mark]));
    fill(
      this.labels,
      h("span", { style: { height: `${this.height}px` } }, "Devices"),
      this.lanes.map(([, label]) => h("span", { style: { height: `${LANE}px` } }, label)),
    );
    this.canvas.style.height = `${this.height + LANE * this.lanes.length + TICKS}px`;
    this.paint();
  }

  /** @param {number} x of the canvas @returns {number} milliseconds */
  timeAt(x) {
    const { from, to } = this.range;
    const part = Math.min(1, Math.max(0, x / Math.max(1, this.canvas.clientWidth)));
    return from + part * (to - from);
  }

  _listen() {
    const { canvas } = this;
    let begin = 0;
    canvas.style.cursor = "crosshair";
    canvas.style.touchAction = "pan-y";
    canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      canvas.setPointerCapture(event.pointerId);
      begin = this.timeAt(event.offsetX);
      this._drawn = { from: begin, to: begin };
    });
    canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (!this._drawn) return;
      const end = this.timeAt(event.offsetX);
      this._drawn = { from: Math.min(begin, end), to: Math.max(begin, end) };
      this.paint();
    });
    const done = (/** @type {boolean} */ isTaken) => {
      const drawn = this._drawn;
      this._drawn = null;
      this.paint();
      // A click is no range.
      const least = (this.range.to - this.range.from) * 0.005;
      if (isTaken && drawn && drawn.to - drawn.from > least) this.select?.(drawn);
    };
    canvas.addEventListener("pointerup", () => done(true));
    canvas.addEventListener("pointercancel", () => done(false));
  }

  paint() {
    const { canvas, moments } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!moments || !width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(ratio, ratio);
    const colours = palette();
    const { from, to } = this.range;
    const xOf = (/** @type {number} */ time) => ((time - from) / (to - from)) * width;
    this._paintStates(context, width, xOf, colours);
    this._paintMarks(context, width, xOf, colours);
    paintTicks(context, { from, to, xOf, width, y: height - TICKS }, colours);
    if (this.shown !== null) {
      context.fillStyle = colours.text;
      context.fillRect(Math.min(width - 2, Math.max(0, xOf(this.shown) - 1)), 0, 2, height - TICKS);
    }
    if (this._drawn) {
      const [x, end] = [xOf(this._drawn.from), xOf(this._drawn.to)];
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.25;
      context.fillRect(x, 0, end - x, height - TICKS);
      context.globalAlpha = 1;
    }
  }

  /**
   * The number of devices in each state, as an area for each state.
   * @param {CanvasRenderingContext2D} context @param {number} width
   * @param {(time: number) => number} xOf @param {import("./map/paint.js").Palette} colours
   */
  _paintStates(context, width, xOf, colours) {
    const { all } = /** @type {import("./moments.js").Moments} */ (this.moments);
    const most = Math.max(1, ...all.map((each) => total(each.states)));
    const first = Math.max(0, this.moments?.placeAt(this.range.from) ?? 0);
    for (let n = first; n < all.length; n++) {
      const x = Math.max(0, xOf(all[n].at));
      if (x > width) break;
      const end = n + 1 < all.length ? Math.min(width, xOf(all[n + 1].at)) : width;
      // Only the last of several changes within a pixel can be seen.
      if (n + 1 < all.length && Math.floor(end) === Math.floor(x) && end < width) continue;
      let y = this.height;
      for (const state of ORDER) {
        const part = ((all[n].states[state] ?? 0) / most) * this.height;
        if (!part) continue;
        context.fillStyle = colours[state];
        context.globalAlpha = state === "free" ? 0.35 : 1;
        context.fillRect(Math.floor(x), y - part, Math.max(1, Math.floor(end) - Math.floor(x)), part);
        y -= part;
      }
    }
    context.globalAlpha = 1;
  }

  /**
   * One lane for each mark; the size of a mark grows with the number of changes at its place.
   * @param {CanvasRenderingContext2D} context @param {number} width
   * @param {(time: number) => number} xOf @param {import("./map/paint.js").Palette} colours
   */
  _paintMarks(context, width, xOf, colours) {
    const { all } = /** @type {import("./moments.js").Moments} */ (this.moments);
    (this.lanes ?? []).forEach(([mark, , colour, shape], lane) => {
      const y = this.height + LANE * lane + LANE / 2;
      context.fillStyle = colours.line;
      context.fillRect(0, y, width, 1);
      /** @type {Map<number, number>} */
      const places = new Map();
      for (const each of all) {
        const x = xOf(each.at);
        if (!each.marks[mark] || x < -4 || x > width + 4) continue;
        const place = Math.round(x / 4) * 4;
        places.set(place, (places.get(place) ?? 0) + each.marks[mark]);
      }
      for (const [place, count] of places) {
        const size = Math.min(LANE / 2 - 1, 3.5 + Math.log10(count) * 1.5);
        const x = Math.min(width - size - 1, Math.max(size + 1, place));
        paintMark(context, shape, { x, y, size }, colours[colour], colours.back);
      }
    });
  }
}

/**
 * @param {CanvasRenderingContext2D} context @param {string} shape
 * @param {{x: number, y: number, size: number}} place @param {string} colour @param {string} back
 */
function paintMark(context, shape, { x, y, size }, colour, back) {
  context.fillStyle = context.strokeStyle = colour;
  context.lineWidth = 2;
  context.beginPath();
  if (shape === "disc" || shape === "ring") context.arc(x, y, size, 0, 2 * Math.PI);
  else if (shape === "cross") {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y + size);
    context.moveTo(x + size, y - size);
    context.lineTo(x - size, y + size);
    context.stroke();
    return;
  } else if (shape === "diamond") {
    context.moveTo(x, y - size - 1);
    context.lineTo(x + size + 1, y);
    context.lineTo(x, y + size + 1);
    context.lineTo(x - size - 1, y);
  } else {
    context.moveTo(x - size, y - size);
    context.lineTo(x + size, y - size);
    context.lineTo(x, y + size);
  }
  context.closePath();
  if (shape === "ring" || shape === "hollow") {
    context.fillStyle = back;
    context.fill();
    context.stroke();
  } else context.fill();
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {{from: number, to: number, xOf: (time: number) => number, width: number, y: number}} place
 * @param {import("./map/paint.js").Palette} colours
 */
function paintTicks(context, { from, to, xOf, width, y }, colours) {
  const step = STEPS.find((each) => (each / (to - from)) * width >= TICK_WIDTH_MIN) ?? (STEPS.at(-1) ?? 1);
  // Ticks are at round times of the zone of the reader.
  const shift = new Date(from).getTimezoneOffset() * 60_000;
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colours.quiet;
  context.textBaseline = "middle";
  for (let time = Math.ceil((from - shift) / step) * step + shift; time <= to; time += step) {
    const x = xOf(time);
    context.fillRect(Math.min(width - 1, x), y, 1, 4);
    const text = tickText(time, step);
    const room = context.measureText(text).width;
    context.fillText(text, Math.min(width - room, Math.max(0, x - room / 2)), y + 11);
  }
}

/** @param {number} time @param {number} step */
function tickText(time, step) {
  const date = new Date(time);
  const clock = date.toLocaleTimeString("en-GB");
  if (step < 1000) return `${clock}.${String(date.getMilliseconds()).padStart(3, "0")}`;
  if (step < 60_000) return clock;
  if (step < 24 * 3600_000 && date.getHours() + date.getMinutes() > 0) return clock.slice(0, 5);
  return date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

/** @param {{[state: string]: number}} states */
function total(states) {
  return Object.values(states).reduce((sum, each) => sum + each, 0);
}

/** A time as the axis shows it: with the day if it is not the day of `other`. @param {number} time @param {number} other */
export function timeText(time, other) {
  const date = new Date(time);
  const clock = date.toLocaleTimeString("en-GB");
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
  return new Date(other).toDateString() === date.toDateString() ? clock : `${day}, ${clock}`;
}

/** A length of time for people, in its two largest units. @param {number} seconds */
export function durationText(seconds) {
  if (!seconds) return "0 s";
  if (seconds < 1) return `${Math.max(1, Math.round(seconds * 1000))} ms`;
  if (seconds < 10) return `${Math.round(seconds * 10) / 10} s`;
  const units = /** @type {[string, number][]} */ ([["d", 86400], ["h", 3600], ["min", 60], ["s", 1]]);
  const first = units.findIndex(([, size]) => Math.round(seconds) >= size);
  const [name, size] = units[first];
  const second = units[first + 1];
  const rest = second ? Math.floor((Math.round(seconds) % size) / second[1]) : 0;
  return `${Math.floor(Math.round(seconds) / size)} ${name}${rest ? ` ${rest} ${second[0]}` : ""}`;
}

/** The changes of a moment as one line each. @param {import("./moments.js").Change} change */
export function changeText(change) {
  return `${change.count ? `${change.count} × ` : ""}${change.kind} ${change.name}: ${change.what}`;
}
