// An explanation of the scheduler's code. It is read again only if the cluster changed in a way that
// can change decisions, and not more often than a part of the time that a decision takes.

import { get, path } from "./api.js";
import { counted, h } from "./dom.js";

const TICK_MS = 250;
/** A decision that takes less needs no progress. */
const QUIET_MS = 400;
const PAUSE_MS_MIN = 1000;
/** The pause between two decisions, in times of their duration. */
const PAUSES = 4;

export class Explained {
  /**
   * @param {import("./store.js").Store} store
   * @param {string[]} names kind, namespace, and name
   * @param {(answer: any) => void} show called with each answer
   * @param {(error: unknown) => void} fail called instead if there is none
   */
  constructor(store, names, show, fail) {
    this.store = store;
    this.names = names;
    this.show = show;
    this.fail = fail;
    /** @type {any} */
    this.answer = null;
    /** @type {unknown} */
    this.error = null;
    this.progress = h("progress", { "aria-label": "Deciding", hidden: true });
    this.status = h("span", { class: "quiet" });
    this.element = h("p", { class: "progress", role: "status" }, this.progress, this.status);
    this._began = 0;
    this._took = 0;
    this._isAsked = false;
    this._isClosed = false;
    /** Set while a later request waits for its time. */
    this._again = 0;
    this._tick = 0;
  }

  /** Reads the explanation, unless it is read already. */
  async ask() {
    if (this._isAsked || this._isClosed) return;
    this._isAsked = true;
    this._began = performance.now();
    this._tick = setInterval(() => this._report(), TICK_MS);
    try {
      this.answer = await get(`explain/${path(...this.names)}`);
      this.error = null;
      if (!this._isClosed) this.show(this.answer);
    } catch (error) {
      this.error = error;
      if (!this._isClosed) this.fail(error);
    }
    this._took = performance.now() - this._began;
    this._isAsked = false;
    clearInterval(this._tick);
    this._report();
    this.changed();
  }

  /** Reads the explanation again, if it is older than the last change that can change it. */
  changed() {
    const isOld = this.error || (this.answer && this.answer.decisions < this.store.decisions);
    if (!isOld || this._again || this._isAsked || this._isClosed) return;
    if (this.error && this.store.decisions <= this._failedAt) return;
    this._failedAt = this.store.decisions;
    const pause = Math.max(PAUSE_MS_MIN, PAUSES * this._took);
    this._again = setTimeout(() => {
      this._again = 0;
      this.ask();
    }, pause);
    this._report();
  }

  _failedAt = 0;

  _report() {
    const ms = performance.now() - this._began;
    const isSlow = this._isAsked && ms > QUIET_MS;
    this.progress.hidden = !isSlow;
    let text = "";
    if (isSlow) {
      const nodes = this.store.fleet?.nodes.size ?? 0;
      const before = this.answer ? `, the last decision took ${(this._took / 1000).toFixed(1)} s` : "";
      text = `The scheduler's code decides for ${counted(nodes, "node")}: ${(ms / 1000).toFixed(0)} s${before}`;
    } else if (this._again) text = "The cluster has changed since this decision. It is updated shortly.";
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  close() {
    this._isClosed = true;
    clearTimeout(this._again);
    clearInterval(this._tick);
  }
}
