// The page: the frame around the views, and which view is shown.

import { get } from "./api.js";
import { fill, h, when } from "./dom.js";
import { Help } from "./help.js";
import { keepMoment, parse, to } from "./routes.js";
import { Search } from "./search.js";
import { Store } from "./store.js";
import { themeSwitch } from "./theme.js";
import { claimView, claimsView } from "./views/claims.js";
import { classesView } from "./views/classes.js";
import { devicesView } from "./views/devices.js";
import { eventsView } from "./views/events.js";
import { FleetView } from "./views/fleet.js";
import { fragmentationView } from "./views/fragmentation.js";
import { gangView, gangsView } from "./views/gangs.js";
import { HistoryView } from "./views/history.js";
import { nodesView, nodeView } from "./views/nodes.js";
import { pendingView } from "./views/pending.js";
import { podView } from "./views/pods.js";
import { ResultsView } from "./views/results.js";
import { slicesView } from "./views/slices.js";
import { whyView } from "./views/why.js";
import { objectView } from "./yaml.js";

/**
 * @typedef {{
 *   element: HTMLElement,
 *   update?: (parts: Set<string>) => void,
 *   follow?: (route: import("./routes.js").Route) => boolean,
 *   close?: () => void,
 *   themeChanged?: () => void,
 *   escape?: () => void,
 * }} View
 * @typedef {{store: Store, announce: (text: string) => void}} Context
 */

/** @type {[string, string, string][]} view, title, key */
const VIEWS = [
  ["fleet", "Fleet", "f"],
  ["devices", "Devices", "d"],
  ["pending", "Pending", "p"],
  ["claims", "Claims", "c"],
  ["gangs", "Gangs", "g"],
  ["nodes", "Nodes", "n"],
  ["slices", "Slices", "s"],
  ["classes", "Classes", "k"],
  ["events", "Events", "e"],
  ["history", "History", "h"],
  ["fragmentation", "Fragmentation", "r"],
  ["results", "Results", "o"],
];

/** Views of which the server keeps no history. */
const ONLY_PRESENT = new Set(["slices", "classes", "events", "object", "results"]);

/** @type {{[view: string]: (context: Context, route: import("./routes.js").Route) => View}} */
const MAKERS = {
  fleet: (context, route) => new FleetView(context, route),
  devices: devicesView,
  pending: pendingView,
  claims: (context, route) => (route.names.length ? claimView : claimsView)(context, route),
  gangs: (context, route) => (route.names.length ? gangView : gangsView)(context, route),
  nodes: (context, route) => (route.names.length ? nodeView : nodesView)(context, route),
  object: objectView,
  pods: podView,
  results: (context, route) => new ResultsView(context, route),
  slices: slicesView,
  classes: classesView,
  events: eventsView,
  fragmentation: fragmentationView,
  history: (context, route) => new HistoryView(context, route),
  why: whyView,
};

const part = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

class Page {
  constructor() {
    this.store = new Store();
    this.search = new Search(part("search"), this.store);
    this.help = new Help();
    /** @type {View | null} */
    this.view = null;
    this.address = "";
    this._goes = false;
    this.hasResults = false;
    this.context = {
      store: this.store,
      announce: (/** @type {string} */ text) => (part("announcement").textContent = text),
    };
  }

  start() {
    forgetToken();
    themeSwitch(part("theme"), () => this.view?.themeChanged?.());
    part("help").addEventListener("click", () => this.help.open());
    part("skip").addEventListener("click", (event) => {
      event.preventDefault();
      part("main").focus();
    });
    addEventListener("hashchange", () => this.route());
    addEventListener("keydown", (event) => this.key(event));
    this.store.subscribe((parts) => this.update(parts));
    // A browser keeps pages that were left, for the way back; their streams need not go on.
    addEventListener("pagehide", () => this.store.stop());
    addEventListener("pageshow", (event) => event.persisted && this.store.start());
    this.route();
    this.store.start();
    this.results();
  }

  /** Adds the view of results, if the server has some; without a plan, the map has nothing to show. */
  async results() {
    try {
      const { runs, plan } = await get("results");
      this.hasResults = Boolean(runs.length || plan);
      if (runs.length && !plan && !location.hash) location.replace(to("results"));
      this.nav();
    } catch {
      // The other views say that the server does not respond.
    }
  }

  /** Shows what the address says. */
  route() {
    const route = parse(location.hash);
    const key = MAKERS[route.view] ? route.view : "fleet";
    const at = route.query.get("at") ?? "";
    keepMoment(at);
    this.store.travel(at);
    if (!this.view?.follow?.(route) || this.address !== key) {
      this.view?.close?.();
      this.view = MAKERS[key](this.context, route);
      fill(part("main"), this.view.element);
      part("main").className = key;
      scrollTo(0, 0);
    }
    this.address = key;
    this.connection();
    const title = VIEWS.find(([view]) => view === key)?.[1] ?? route.names.slice(-1)[0];
    document.title = `${route.names.slice(-1)[0] || title} · dryrack`;
    this.nav();
  }

  nav() {
    const pending = this.store.pendingCount();
    const shown = this.address === "why" || this.address === "pods" ? "pending" : this.address;
    const items = VIEWS.filter(([view]) => view !== "results" || this.hasResults).map(([view, title]) => {
      const count = view === "pending" && pending ? h("span", { class: "count" }, pending) : null;
      const current = view === shown ? "page" : null;
      return h("li", null, h("a", { href: to(view), "aria-current": current }, title, count));
    });
    const focused = [...part("nav").querySelectorAll("a")].indexOf(/** @type {any} */ (document.activeElement));
    fill(part("nav"), items);
    if (focused >= 0) part("nav").querySelectorAll("a")[focused]?.focus();
    // On a narrow screen, the tabs scroll.
    const [tabs, current] = [part("nav"), part("nav").querySelector("[aria-current]")];
    if (current instanceof HTMLElement) tabs.scrollLeft = current.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - current.offsetWidth) / 2;
  }

  /** @param {Set<string>} parts */
  update(parts) {
    if (parts.has("connection") || parts.has("moment")) this.connection();
    if (parts.has("pods") || parts.has("moment")) this.nav();
    this.view?.update?.(parts);
  }

  connection() {
    const { connection, problem, known, failures } = this.store;
    const status = part("connection");
    status.textContent = connection === "failed" ? "no connection" : connection;
    status.dataset.state = connection;
    const since = known.toLocaleTimeString("en-GB");
    const texts = {
      lost: `The connection is lost. The dashboard shows the state of ${since} and tries to reconnect …`,
      failed: `${problem} Trying again …`,
      stale: `The cluster does not respond: ${problem}. The dashboard shows the state of ${since}.`,
    };
    const text = texts[/** @type {keyof typeof texts} */ (connection)];
    const lines = [...(text ? [text] : []), ...failures].map((each) => h("p", null, each));
    lines.push(...this.moment());
    part("banner").hidden = !lines.length;
    fill(part("banner"), lines);
  }

  /** Says which moment the page shows, if that is not the present. */
  moment() {
    const { past, momentProblem } = this.store;
    const route = parse(location.hash);
    const back = h("a", { href: to(route.view, route.names, { at: "" }) }, "Show the present");
    if (momentProblem) {
      return [h("p", null, `This moment cannot be shown: ${momentProblem}. The page shows the present. `, back)];
    }
    if (!past) return [];
    const shown = ONLY_PRESENT.has(this.address) ? "This view shows the present; the other views show the past: " : "The page shows the past: ";
    return [h("p", null, shown, when(past.time), ". ", back)];
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key === "Escape" && !this.help.dialog.open) this.view?.escape?.();
    if (target.matches?.("input, select, textarea") || this.help.dialog.open) return;
    const view = this._goes && VIEWS.find(([, , key]) => key === event.key);
    this._goes = event.key === "g" && !this._goes;
    if (view) location.hash = to(view[0]);
    else if (event.key === "/") this.search.focus();
    else if (event.key === "?") this.help.open();
    else return;
    event.preventDefault();
  }
}

/** The token is in the cookie from now on, and need not stay in the history of the browser. */
function forgetToken() {
  const here = new URL(location.href);
  if (!here.searchParams.has("token")) return;
  here.searchParams.delete("token");
  history.replaceState(null, "", here);
}

new Page().start();
