// The timeline below the map: past states of the devices. A slider over the time axis, and a button
// that plays the changes.

import { counted, fill, h } from "../dom.js";
import { Moments } from "../moments.js";
import { clock, problem } from "../parts.js";
import { to } from "../routes.js";
import { changeText, TimeAxis } from "../time_axis.js";

const STEP_MS = 350;
const REFRESH_MS = 1000;
const HEIGHT = 36;

export class Timeline {
  /** @param {{show: (revision: number) => void, close: () => void}} options */
  constructor(options) {
    this.options = options;
    this.moments = new Moments();
    this.axis = new TimeAxis({ height: HEIGHT });
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this._playing = undefined;
    this._isDue = false;
    /** The moment that is looked at; 0 is now. */
    this._revision = 0;
    this._place = 0;
    this.range = h("input", {
      type: "range",
      min: 0,
      max: 0,
      value: 0,
      "aria-label": "Moment",
      oninput: () => this._moved(Number(this.range.value)),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this._key(event),
    });
    this.axis.track.append(this.range);
    this.play = this._button("▶", "Play", () => this._toggle());
    this.text = h("p", { class: "moment", "aria-live": "polite" });
    this.element = h(
      "section",
      { class: "timeline", "aria-label": "Timeline" },
      this.play,
      this.axis.element,
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
      await this.moments.load();
    } catch (error) {
      fill(this.text, problem(error));
      return;
    }
    const { all } = this.moments;
    this._place = this._revision ? this.moments.placeOf(this._revision) : all.length - 1;
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

  /** Of several moments at the begin, the first one is shown. @param {number} value milliseconds since the start */
  _moved(value) {
    this._go(value > 0 ? this.moments.placeAt(this.moments.start + value) : 0);
  }

  /** Arrow keys move by one change, however close it is. @param {KeyboardEvent} event */
  _key(event) {
    const last = this.moments.all.length - 1;
    const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -last, End: last };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (!step) return;
    event.preventDefault();
    this._go(Math.min(last, Math.max(0, this._place + step)));
  }

  /** @param {number} place */
  _go(place) {
    const moment = this.moments.all[place];
    if (!moment) return;
    this._place = place;
    this._revision = moment.revision;
    this.paint();
    this._tell();
    this.options.show(moment.revision);
  }

  _tell() {
    const { all } = this.moments;
    const moment = all[this._place];
    if (!moment) {
      fill(this.text, "No changes since the first visit to the dashboard.");
      return;
    }
    const changes = moment.changes.map(changeText);
    if (moment.more) changes.push(`and ${counted(moment.more, "more change")}`);
    const states = Object.entries(moment.states).map(([state, count]) => `${count.toLocaleString("en")} ${state}`);
    this.range.setAttribute("aria-valuetext", `${clock(moment.time)}, ${states.join(", ")}`);
    fill(
      this.text,
      h("b", null, clock(moment.time)),
      ` · moment ${this._place + 1} of ${all.length} · ${states.join(", ")} · `,
      h("span", { class: "quiet" }, changes.slice(0, 4).join("; ") + (changes.length > 4 ? "; …" : "") || "start of the history"),
      " · ",
      h("a", { href: to("history", [], { from: String(moment.revision), at: "" }) }, "Compare with another moment"),
    );
  }

  _toggle() {
    if (this._playing) {
      this.stop();
      return;
    }
    this.play.textContent = "❚❚";
    this.play.setAttribute("aria-label", "Pause");
    this._playing = setInterval(() => this._step(), STEP_MS);
    this._go(this._place >= this.moments.all.length - 1 ? 0 : this._place);
  }

  _step() {
    if (this._place + 1 >= this.moments.all.length) this.stop();
    else this._go(this._place + 1);
  }

  stop() {
    clearInterval(this._playing);
    this._playing = undefined;
    this.play.textContent = "▶";
    this.play.setAttribute("aria-label", "Play");
  }

  paint() {
    const { start, end, all } = this.moments;
    const shown = this._revision ? (all[this._place]?.at ?? end) : end;
    this.range.max = String(end - start);
    this.range.value = String(shown - start);
    this.axis.show(this.moments, { from: start, to: end }, null);
  }
}
