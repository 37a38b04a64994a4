// The timeline: past states of the devices. A slider over all changes, and a button that plays them.

import { get } from "../api.js";
import { counted, fill, h } from "../dom.js";
import { palette } from "../map/paint.js";
import { clock, problem } from "../parts.js";

const STEP_MS = 350;
const REFRESH_MS = 1000;
/** From the bottom up. */
const ORDER = [
  ...["prepared", "allocated", "conflict", "shared", "blocked", "tainted", "unhealthy"],
  ...["cordoned", "not ready", "no node", "incomplete"],
  ...["withdrawn", "free"],
];

export class Timeline {
  /** @param {{show: (revision: number) => void, close: () => void}} options */
  constructor(options) {
    this.options = options;
    /** @type {any[]} */
    this.moments = [];
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this._playing = undefined;
    this._isDue = false;
    /** The moment that is looked at; 0 is now. */
    this._revision = 0;
    this.chart = h("canvas", { class: "chart", "aria-hidden": "true" });
    this.range = h("input", {
      type: "range",
      min: 0,
      max: 0,
      value: 0,
      "aria-label": "Moment",
      oninput: () => this._moved(),
    });
    this.play = this._button("▶", "Play", () => this._toggle());
    this.text = h("p", { class: "moment", "aria-live": "polite" });
    this.element = h(
      "section",
      { class: "timeline", "aria-label": "Timeline" },
      this.play,
      h("div", { class: "track" }, this.chart, this.range),
      this._button("×", "Back to now", () => options.close()),
      this.text,
    );
  }

  /** @param {string} sign @param {string} label @param {() => void} act */
  _button(sign, label, act) {
    return h("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: act }, sign);
  }

  /** Reads what has changed until now; a revision that is looked at stays. @param {number} revision */
  async load(revision) {
    this._revision = revision;
    try {
      const { moments } = await get("timeline");
      this.moments = moments;
    } catch (error) {
      fill(this.text, problem(error));
      return;
    }
    this.range.max = String(Math.max(0, this.moments.length - 1));
    const place = this.moments.findIndex((each) => each.revision >= this._revision);
    this.range.value = String(place < 0 || !this._revision ? this.moments.length - 1 : place);
    this.paint();
    this._tell();
  }

  /** Read new changes soon. */
  refresh() {
    if (this._isDue) return;
    this._isDue = true;
    setTimeout(() => {
      this._isDue = false;
      if (!this.element.hidden && !this._playing) this.load(this._revision);
    }, REFRESH_MS);
  }

  _moved() {
    this._tell();
    const moment = this.moments[Number(this.range.value)];
    if (!moment) return;
    this._revision = moment.revision;
    this.options.show(moment.revision);
  }

  _tell() {
    const place = Number(this.range.value);
    const moment = this.moments[place];
    if (!moment) {
      fill(this.text, "No changes since the first visit to the dashboard.");
      return;
    }
    const changes = moment.changes.map(
      (/** @type {any} */ each) => `${each.count ? `${each.count} × ` : ""}${each.kind} ${each.name}: ${each.what}`,
    );
    if (moment.more) changes.push(`and ${counted(moment.more, "more change")}`);
    const states = Object.entries(moment.states).map(([state, count]) => `${count} ${state}`);
    this.range.setAttribute("aria-valuetext", `${clock(moment.time)}, ${states.join(", ")}`);
    fill(
      this.text,
      h("b", null, clock(moment.time)),
      ` · moment ${place + 1} of ${this.moments.length} · ${states.join(", ")} · `,
      h("span", { class: "quiet" }, changes.slice(0, 4).join("; ") + (changes.length > 4 ? "; …" : "") || "start of the history"),
    );
  }

  _toggle() {
    if (this._playing) {
      this.stop();
      return;
    }
    if (Number(this.range.value) >= this.moments.length - 1) this.range.value = "0";
    this.play.textContent = "❚❚";
    this.play.setAttribute("aria-label", "Pause");
    this._playing = setInterval(() => this._step(), STEP_MS);
    this._moved();
  }

  _step() {
    const next = Number(this.range.value) + 1;
    if (next >= this.moments.length) {
      this.stop();
      return;
    }
    this.range.value = String(next);
    this._moved();
  }

  stop() {
    clearInterval(this._playing);
    this._playing = undefined;
    this.play.textContent = "▶";
    this.play.setAttribute("aria-label", "Play");
  }

  /** Draw the number of devices in each state, moment by moment. */
  paint() {
    const { chart, moments } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [(chart.width = chart.clientWidth * ratio), (chart.height = chart.clientHeight * ratio)];
    const context = chart.getContext("2d");
    if (!context || !moments.length) return;
    const colours = palette();
    const most = Math.max(1, ...moments.map((each) => total(each.states)));
    const step = width / moments.length;
    moments.forEach((moment, n) => {
      let y = height;
      for (const state of ORDER) {
        const part = ((moment.states[state] ?? 0) / most) * height;
        context.fillStyle = colours[state];
        context.globalAlpha = state === "free" ? 0.35 : 1;
        context.fillRect(n * step, y - part, Math.max(1, step), part);
        y -= part;
      }
    });
  }
}

/** @param {{[state: string]: number}} states */
function total(states) {
  return Object.values(states).reduce((sum, each) => sum + each, 0);
}
