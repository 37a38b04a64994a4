// The fleet: what is free by model, the map, and the device that is selected.

import { counted, fill, h } from "../dom.js";
import { FleetMap } from "../map/map.js";
import { MEANINGS, NO_NODE, swatch } from "../map/paint.js";
import { empty, loading } from "../parts.js";
import { idParts, to, toDevice } from "../routes.js";
import { devicePanel } from "./device.js";
import { grouping, GroupingField, isAsked } from "./grouping.js";
import { summaryCards } from "./summary.js";
import { Timeline } from "./timeline.js";

const GROUP_AGAIN_MS = 2000;

export class FleetView {
  /** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
  constructor({ store, announce }, route) {
    this.store = store;
    this.announce = announce;
    this.route = route;
    this.summary = h("ul", { class: "summary", "aria-label": "Models", tabindex: 0 });
    this.legend = h("ul", { class: "legend", "aria-label": "States" });
    this.pointed = h("p", { class: "pointed", "aria-hidden": "true" });
    this.notes = h("div", { class: "notes" });
    this.panel = h("aside", { class: "panel", "aria-label": "Selected device", hidden: true });
    this.place = h("div", { class: "place" }, this.pointed);
    this.nothing = h("div", { class: "nothing" }, loading());
    /** @type {ReturnType<typeof devicePanel> | null} */
    this.device = null;
    this.field = new GroupingField((name) => this._go({ group: name === "nothing" ? "" : name }));
    this.timeline = new Timeline({
      show: (revision) => this._go({ at: String(revision) }),
      close: () => this._go({ at: "" }),
    });
    this.map = new FleetMap(this.place, {
      label: "Map of devices by node. Arrow keys select a device, plus and minus zoom. The view Devices shows the same data as a table.",
      select: (id) => (location.hash = toDevice(id, this._query())),
      point: (id, node) => this._point(id, node),
    });
    this.element = this._element();
    this._selected = "";
    this._grouped = "";
    this._at = "";
    this._arrangement = 0;
    this._fitted = "nothing";
    this._isGroupedAgain = false;
    this.field.load();
    this.update(new Set(["fleet"]));
    this.follow(route);
  }

  _element() {
    const bar = h("div", { class: "bar-of-map" }, this.field.element, this.legend, this._zoom());
    const middle = h("div", { class: "middle" }, this.place, this.panel);
    this.timeline.element.hidden = true;
    return h(
      "div",
      { class: "fleet-view" },
      h("h1", { class: "unseen" }, "Fleet"),
      this.notes,
      this.summary,
      this.nothing,
      bar,
      middle,
      this.timeline.element,
    );
  }

  /** What stays from one address of the view to the next. @returns {{[key: string]: string}} */
  _query() {
    const keys = ["group", "at"];
    return Object.fromEntries(keys.map((key) => [key, this.route.query.get(key) ?? ""]));
  }

  /** @param {{[key: string]: string}} change */
  _go(change) {
    // Moments of a slider are no steps that somebody wants to go back by.
    location.replace(to("fleet", this.route.names, { ...this._query(), ...change }));
  }

  /** The fleet that is shown: as it is, or as it was. */
  get fleet() {
    return this.store.fleet;
  }

  _zoom() {
    const button = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {() => void} */ act) =>
      h("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: act }, sign);
    return h(
      "div",
      { class: "zoom" },
      button("+", "Zoom in", () => this.map.zoom(1.4)),
      button("−", "Zoom out", () => this.map.zoom(1 / 1.4)),
      button("⤢", "Show all", () => this.map.fit()),
      button("◷", "Timeline", () => this._go({ at: this.route.query.get("at") ? "" : "now" })),
    );
  }

  /** @param {import("../routes.js").Route} route @returns {boolean} */
  follow(route) {
    if (route.view !== "fleet") return false;
    this.route = route;
    this._then(route.query.get("at") ?? "");
    this._group(route.query.get("group") ?? "nothing");
    this._select(route.names.length === 3 ? route.names.join("/") : "");
    this._highlight();
    return true;
  }

  /** Opens or closes the slider. @param {string} at a revision, a time, or `now` with the slider */
  async _then(at) {
    if (at === this._at) return;
    const { element } = this.timeline;
    const isOpened = element.hidden && at;
    this._at = at;
    element.hidden = !at;
    if (!at) this.timeline.stop();
    if (isOpened) await this.timeline.load(Number(at) || 0);
  }

  /** @param {string} name */
  async _group(name) {
    const { fleet } = this;
    this.field.show(name);
    if (!fleet || this._grouped === name) return;
    this._grouped = name;
    try {
      const groupOf = await grouping(() => this.fleet, name);
      if (this._grouped !== name) return;
      this.map.groupBy(groupOf);
      if (this._fitted !== name) this.map.fit();
      this._fitted = name;
    } catch (error) {
      this.pointed.textContent = String(/** @type {Error} */ (error).message);
    }
  }

  /** What came is not known to an attribute that was asked for before. */
  _groupAgain() {
    if (!isAsked(this._grouped) || this._isGroupedAgain) return;
    this._isGroupedAgain = true;
    setTimeout(() => {
      this._isGroupedAgain = false;
      this._grouped = "";
      this._group(this.route.query.get("group") ?? "nothing");
    }, GROUP_AGAIN_MS);
  }

  _highlight() {
    const node = this.route.query.get("node");
    const marks = this.route.query.getAll("mark");
    this.map.highlight(marks, node ? [node] : []);
    const devices = [...(this.store.fleet?.devices.values() ?? [])];
    const first = marks[0] ?? devices.find((each) => each.node === node)?.id;
    if (first) this.map.reveal(first);
  }

  /** @param {string} id */
  _select(id) {
    this.map.select(id);
    if (id === this._selected) return;
    this._selected = id;
    this.device?.close();
    this.device = id ? devicePanel(this.store, idParts(id), () => this.escape()) : null;
    this.panel.hidden = !id;
    fill(this.panel, this.device?.element);
    const known = this.store.fleet?.devices.get(id);
    if (known) this.announce(`${known.name} on ${known.node || NO_NODE}: ${known.state}`);
  }

  escape() {
    if (!this._selected && !this.route.query.get("node")) return;
    location.hash = to("fleet", [], this._query());
    this.map.canvas.focus({ preventScroll: true });
  }

  /** @param {string} id @param {string} node */
  _point(id, node) {
    const device = this.fleet?.devices.get(id);
    this.pointed.textContent = device
      ? `${device.node || NO_NODE} · ${device.name} · ${device.model || device.driver} · ${device.state}${device.level >= 0 ? ` ${device.level}%` : ""}`
      : node;
  }

  /** @param {Set<string>} parts */
  update(parts) {
    this.device?.update(parts);
    if (parts.has("fleet")) this._show();
    if (this._at === "now") this.timeline.refresh();
  }

  _show() {
    const { fleet } = this;
    if (!fleet) return;
    fill(this.notes, fleet.notes.map((each) => h("p", null, each)));
    summaryCards(this.summary, fleet.summary);
    this._legend(fleet);
    this.nothing.hidden = fleet.devices.size > 0;
    if (!fleet.devices.size) fill(this.nothing, nothingYet(fleet.nodes.size));
    const isFirst = !this.map.fleet;
    if (fleet.arrangement !== this._arrangement) this._groupAgain();
    this._arrangement = fleet.arrangement;
    this.map.show(fleet);
    this.element.classList.toggle("past", this.store.past !== null);
    if (isFirst) this.follow(this.route);
  }

  /** @param {import("../map/fleet.js").Fleet} fleet */
  _legend(fleet) {
    const items = [...fleet.counts()]
      .filter(([, count]) => count)
      .map(([state, count]) => {
        const title = MEANINGS[/** @type {keyof typeof MEANINGS} */ (state)];
        return h("li", { title }, swatch(state), `${state} `, h("b", null, count.toLocaleString("en")));
      });
    fill(this.legend, items);
  }

  themeChanged() {
    this.map.themeChanged();
    this.timeline.paint();
    if (this.fleet) this._legend(this.fleet);
  }

  close() {
    this.device?.close();
    this.timeline.stop();
    this.map.close();
  }
}

/** @param {number} nodes */
function nothingYet(nodes) {
  return empty(
    nodes ? `No devices: ${counted(nodes, "node")}, but no ResourceSlices.` : "No nodes and no devices yet.",
    h("p", { class: "quiet" }, "The map shows devices as soon as a driver publishes them, for example: "),
    h("pre", null, "dryrack up --nodes 4 --devices gpu:8"),
  );
}
