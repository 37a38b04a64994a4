// The fleet: what is free by model, the map, and the device that is selected.

import { counted, fill, h } from "../dom.js";
import { FleetMap } from "../map/map.js";
import { MEANINGS, swatch } from "../map/paint.js";
import { empty, loading } from "../parts.js";
import { idParts, to, toDevice } from "../routes.js";
import { devicePanel } from "./device.js";
import { summaryCards } from "./summary.js";

/** @type {{[name: string]: (fleet: import("../map/fleet.js").Fleet) =>
 *   (device: import("../map/fleet.js").Device) => string}} */
const GROUPINGS = {
  nothing: () => () => "",
  zone: (fleet) => (device) => fleet.nodes.get(device.node)?.zone || "no zone",
  "instance type": (fleet) => (device) => fleet.nodes.get(device.node)?.instanceType || "no type",
  driver: () => (device) => device.driver,
  model: () => (device) => device.model || device.driver,
  pool: () => (device) => `${device.driver}/${device.pool}`,
  state: () => (device) => device.state,
};

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
    /** @type {{update: (parts: Set<string>) => void, close: () => void} | null} */
    this.device = null;
    this.map = new FleetMap(this.place, {
      label: "Map of devices by node. Arrow keys select a device, plus and minus zoom.",
      select: (id) => (location.hash = toDevice(id, this._query())),
      point: (id, node) => this._point(id, node),
    });
    const bar = h("div", { class: "bar-of-map" }, this._grouping(), this.legend, this._zoom());
    const middle = h("div", { class: "middle" }, this.place, this.panel);
    this.element = h(
      "div",
      { class: "fleet-view" },
      h("h1", { class: "unseen" }, "Fleet"),
      this.notes,
      this.summary,
      bar,
      this.nothing,
      middle,
    );
    this._selected = "";
    this._grouped = "";
    this.update(new Set(["fleet"]));
    this.follow(route);
  }

  _query() {
    const group = this.route.query.get("group") ?? "";
    return group ? { group } : {};
  }

  _grouping() {
    const select = h(
      "select",
      {
        onchange: () => {
          const group = select.value === "nothing" ? "" : select.value;
          location.hash = to("fleet", this.route.names, { group });
        },
      },
      Object.keys(GROUPINGS).map((each) => h("option", { value: each }, each)),
    );
    this.select = select;
    return h("label", { class: "grouping" }, "Group by ", select);
  }

  _zoom() {
    const button = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {() => void} */ act) =>
      h("button", { type: "button", class: "icon", "aria-label": label, title: label, onclick: act }, sign);
    return h(
      "div",
      { class: "zoom" },
      button("+", "Nearer", () => this.map.zoom(1.4)),
      button("−", "Farther", () => this.map.zoom(1 / 1.4)),
      button("⤢", "All of it", () => this.map.fit()),
    );
  }

  /** @param {import("../routes.js").Route} route @returns {boolean} */
  follow(route) {
    if (route.view !== "fleet") return false;
    this.route = route;
    this._group(route.query.get("group") ?? "nothing");
    this._select(route.names.length === 3 ? route.names.join("/") : "");
    this._highlight();
    return true;
  }

  /** @param {string} name */
  _group(name) {
    const { fleet } = this.store;
    const known = GROUPINGS[name] ? name : "nothing";
    this.select.value = known;
    if (!fleet || this._grouped === known) return;
    this._grouped = known;
    this.map.groupBy(GROUPINGS[known](fleet));
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
    this.device = id ? devicePanel(idParts(id), () => this.escape()) : null;
    this.panel.hidden = !id;
    fill(this.panel, this.device?.element);
    const known = this.store.fleet?.devices.get(id);
    if (known) this.announce(`${known.name} on ${known.node}: ${known.state}`);
  }

  escape() {
    if (!this._selected && !this.route.query.get("node")) return;
    location.hash = to("fleet", [], this._query());
    this.map.canvas.focus({ preventScroll: true });
  }

  /** @param {string} id @param {string} node */
  _point(id, node) {
    const device = this.store.fleet?.devices.get(id);
    this.pointed.textContent = device
      ? `${device.node} · ${device.name} · ${device.model || device.driver} · ${device.state}${device.level >= 0 ? ` ${device.level}%` : ""}`
      : node;
  }

  /** @param {Set<string>} parts */
  update(parts) {
    this.device?.update(parts);
    const { fleet } = this.store;
    if (!parts.has("fleet") || !fleet) return;
    fill(this.notes, fleet.notes.map((each) => h("p", null, each)));
    summaryCards(this.summary, fleet.summary);
    this._legend(fleet);
    this.nothing.hidden = fleet.devices.size > 0;
    if (!fleet.devices.size) fill(this.nothing, nothingYet(fleet.nodes.size));
    const isFirst = this.map.fleet !== fleet;
    if (isFirst) this._grouped = "";
    this.map.fleet = this.map.fleet ?? fleet;
    if (isFirst) this._group(this.route.query.get("group") ?? "nothing");
    this.map.show(fleet);
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
    if (this.store.fleet) this._legend(this.store.fleet);
  }

  close() {
    this.device?.close();
    this.map.close();
  }
}

/** @param {number} nodes */
function nothingYet(nodes) {
  return empty(
    nodes ? `No devices: ${counted(nodes, "node")}, and no ResourceSlice.` : "No nodes and no devices yet.",
    h("p", { class: "quiet" }, "They show up here as soon as a driver publishes them, for example by "),
    h("pre", null, "dryrack up --nodes 4 --devices gpu:8"),
  );
}
