// The changes that the server knows, for the time axis: read once, then only the new ones.

import { get } from "./api.js";

/**
 * @typedef {{kind: string, name: string, what: string, count?: number, mark: string}} Change
 * @typedef {{revision: number, time: string, states: {[state: string]: number},
 *   changes: Change[], more: number, marks: {[mark: string]: number}, at: number}} Moment
 */

export class Moments {
  constructor() {
    /** In order of time; `at` is the time in milliseconds. @type {Moment[]} */
    this.all = [];
    /** @type {any[]} */
    this.gangs = [];
    this.gangsOmitted = 0;
    /** The clock of the server, in milliseconds. */
    this.now = 0;
  }

  /** Reads what is new. @returns {Promise<void>} */
  async load() {
    const last = this.all.at(-1);
    const answer = await get(last ? `timeline?from=${encodeURIComponent(last.time)}` : "timeline");
    if (last && answer.revision < last.revision) {
      // Another server, which counts anew.
      this.all = [];
      return this.load();
    }
    for (const each of answer.moments) {
      if (!last || each.revision > last.revision) {
        this.all.push(Object.assign(each, { at: Date.parse(each.time) }));
      }
    }
    this.gangs = answer.gangs;
    this.gangsOmitted = answer.gangsOmitted;
    this.now = Date.parse(answer.now);
  }

  /** The first time of the axis. */
  get start() {
    return this.all[0]?.at ?? this.now;
  }

  /** The last time of the axis: never the same as the first. */
  get end() {
    return Math.max(this.now, this.all.at(-1)?.at ?? 0, this.start + 1000);
  }

  /** The place of the last moment that is not later. @param {number} time milliseconds */
  placeAt(time) {
    let [low, high] = [0, this.all.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.all[middle].at <= time) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  /** The place of the first moment that has this revision or a later one; the last if none has. @param {number} revision */
  placeOf(revision) {
    const place = this.all.findIndex((each) => each.revision >= revision);
    return place < 0 ? this.all.length - 1 : place;
  }
}
