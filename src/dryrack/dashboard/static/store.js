// What is known of the cluster: read once, then kept by the stream. Views subscribe. While the page
// shows a past moment, all of them read the state of that moment.

import { setClock, setMoment } from "./ages.js";
import { follow, get } from "./api.js";
import { Fleet } from "./map/fleet.js";
import { sortedBy } from "./order.js";

const RETRY_MS = [500, 1000, 2000, 5000];
const LISTS = ["pods", "claims", "gangs", "events"];
/** The lists of which the server knows the past. */
const PAST_LISTS = ["pods", "claims", "gangs"];

/** @param {any} row */
export function nameOf(row) {
  return `${row.namespace}/${row.name}`;
}

export class Store {
  constructor() {
    /** @type {Fleet | null} */
    this.present = null;
    /** @type {{[list: string]: Map<string, any>}} */
    this._lists = Object.fromEntries(LISTS.map((each) => [each, new Map()]));
    /** The state of the moment that the page shows; null for now.
     * @type {{at: string, time: string, fleet: Fleet, lists: {[list: string]: Map<string, any>}} | null} */
    this.past = null;
    /** Why the page cannot show the moment of its address. */
    this.momentProblem = "";
    /** The moment of the address; "" and "now" are the present. */
    this._at = "";
    this._isTravelling = false;
    /** @type {"loading" | "live" | "lost" | "failed" | "stale"} */
    this.connection = "loading";
    this.problem = "";
    /** What the control plane reports about its own components. @type {string[]} */
    this.failures = [];
    this.isComplete = false;
    /** Rises when decisions of the scheduler's code can differ from earlier ones. */
    this.decisions = 0;
    /** When the last answer or update came. */
    this.known = new Date();
    this._failures = 0;
    this._end = () => {};
    /** @type {Set<(parts: Set<string>) => void>} */
    this._subscribers = new Set();
    /** @type {Set<string>} */
    this._changed = new Set();
  }

  /** The fleet now, or at the moment that the page shows. @returns {Fleet | null} */
  get fleet() {
    return this.past?.fleet ?? this.present;
  }

  /** The lists now, or at the moment that the page shows. */
  get lists() {
    return this.past?.lists ?? this._lists;
  }

  /** Shows another moment. @param {string} at a revision or a time; "" or "now" for the present */
  async travel(at) {
    if (at === this._at) return;
    this._at = at;
    // A slider passes many moments; only the last one is read.
    if (this._isTravelling) return;
    this._isTravelling = true;
    let shown;
    while (shown !== this._at) {
      shown = this._at;
      this.momentProblem = "";
      try {
        this.past = shown && shown !== "now" ? await stateAt(shown) : null;
      } catch (error) {
        this.past = null;
        this.momentProblem = /** @type {Error} */ (error).message;
      }
      setMoment(this.past?.time ?? "");
      for (const each of ["moment", "fleet", ...PAST_LISTS]) this._tell(each);
    }
    this._isTravelling = false;
  }

  /** @param {(parts: Set<string>) => void} told which parts are others now @returns {() => void} */
  subscribe(told) {
    this._subscribers.add(told);
    return () => this._subscribers.delete(told);
  }

  /** Reads everything, the map first, and follows; tries again for as long as it takes. */
  async start() {
    this._end();
    try {
      const fleet = await get("fleet");
      this.present = new Fleet(fleet);
      this._tell("fleet");
      const answers = await Promise.all(LISTS.map((each) => get(each)));
      setClock(answers[0].time);
      LISTS.forEach((each, n) => this._replace(each, answers[n][each]));
      this.isComplete = true;
      this._failures = 0;
      const since = Math.min(fleet.revision, ...answers.map((each) => each.revision));
      this._end = follow(since, {
        update: (change) => this._apply(change),
        reset: () => this.start(),
        cluster: (trouble) => this._cluster(trouble),
        state: (state) => this._connected(state),
      });
    } catch (error) {
      this._connection("failed", /** @type {Error} */ (error).message);
      const wait = RETRY_MS[Math.min(this._failures++, RETRY_MS.length - 1)];
      setTimeout(() => this.start(), wait);
    }
  }

  stop() {
    this._end();
  }

  /** @param {string} state */
  _connected(state) {
    if (state === "live") this._connection("live", "");
    else this._connection("lost", "");
    if (state === "ended") setTimeout(() => this.start(), RETRY_MS[0]);
  }

  /**
   * The server answers, but the cluster behind it may not.
   * @param {{error: string, failures: string[]}} trouble
   */
  _cluster(trouble) {
    this.failures = trouble.failures;
    this._connection(trouble.error ? "stale" : "live", trouble.error);
  }

  /** @param {"live" | "lost" | "failed" | "stale"} state @param {string} problem */
  _connection(state, problem) {
    this.connection = state;
    this.problem = problem;
    if (state === "live") this.known = new Date();
    this._tell("connection");
  }

  /** @param {string} list @param {any[]} rows */
  _replace(list, rows) {
    this._lists[list] = byKey(list, rows);
    this._tell(list);
  }

  /** @param {any} change */
  _apply(change) {
    this.known = new Date();
    if (change.decisions) {
      this.decisions = change.decisions;
      this._tell("decisions");
    }
    if (change.fleet && this.present) {
      this.present.apply(change.fleet);
      this._tell("fleet");
    }
    for (const list of LISTS) {
      if (!change[list]) continue;
      for (const row of change[list].changed) this._lists[list].set(keyOf(list, row), row);
      for (const gone of change[list].gone) {
        this._lists[list].delete(typeof gone === "string" ? gone : keyOf(list, gone));
      }
      this._tell(list);
    }
  }

  /** Subscribers are told once per frame. @param {string} part */
  _tell(part) {
    if (!this._changed.size) {
      // A page that nobody sees has no frames, and need not draw.
      requestAnimationFrame(() => {
        const parts = this._changed;
        this._changed = new Set();
        for (const each of [...this._subscribers]) each(parts);
      });
    }
    this._changed.add(part);
  }

  pendingCount() {
    let count = 0;
    for (const each of this.lists.pods.values()) if (each.pending) count++;
    return count;
  }

  /** Pods that have no node yet, the oldest first. */
  pendingPods() {
    const pods = [...this.lists.pods.values()].filter((each) => each.pending);
    return sortedBy(sortedBy(pods, nameOf), (each) => Date.parse(each.created));
  }

  /** The rows of a list in the natural order of their names. @param {string} list */
  sorted(list) {
    return sortedBy([...this.lists[list].values()], nameOf);
  }
}

/** @param {string} at */
async function stateAt(at) {
  const query = `at=${encodeURIComponent(at)}`;
  const [fleet, ...answers] = await Promise.all([
    get(`fleet?${query}`),
    ...PAST_LISTS.map((each) => get(`${each}?${query}`)),
  ]);
  // Events are of the present: the server keeps no earlier ones.
  const lists = Object.fromEntries(LISTS.map((each) => [each, new Map()]));
  PAST_LISTS.forEach((each, n) => (lists[each] = byKey(each, answers[n][each])));
  return { at, time: fleet.time, fleet: new Fleet(fleet), lists };
}

/** @param {string} list @param {any[]} rows @returns {Map<string, any>} */
function byKey(list, rows) {
  return new Map(rows.map((each) => [keyOf(list, each), each]));
}

/** @param {string} list @param {any} row */
function keyOf(list, row) {
  return list === "gangs" ? `${row.dialect}/${nameOf(row)}` : nameOf(row);
}
