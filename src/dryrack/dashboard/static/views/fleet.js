// The fleet: what is free by model, the map, and the device that is selected.

import { counted, fill, h, sync } from "../dom.js";
import { auxiliaryDrivers } from "../map/kinds.js";
import { FleetMap } from "../map/map.js";
import { Owners } from "../map/owners.js";
import { isDark, linesOf, matcher, Coloring, COLORS, NONE, valuesOf } from "../map/style.js";
import { MEANINGS, NO_NODE, palette, swatch } from "../map/paint.js";
import { empty, loading } from "../parts.js";
import { FILTERS, filters, idParts, parameter, parameters, setParameters, to, toDevice, toggleParameter } from "../routes.js";
import { devicePanel } from "./device.js";
import { FilterField } from "./filters.js";
import { attributeGrouping, GroupingField, isAsked, knownGrouping } from "./grouping.js";
import { summaryCards } from "./summary.js";
import { Timeline } from "./timeline.js";

const GROUP_AGAIN_MS = 2000;
/** From so many nodes on, the map is grouped by zone unless the address says otherwise. */
const GROUPED_NODES_MIN = 100;

export class FleetView {
  /** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
  constructor({ store, announce }, route) {
    this.store = store;
    this.announce = announce;
    this.route = route;
    this.summary = h("ul", { class: "summary", "aria-label": "Models", tabindex: 0 });
    this.legend = h("ul", { class: "legend", "aria-label": "States" });
    this.owned = h("ul", { class: "legend owned", "aria-label": "Owners", hidden: true });
    this.kinds = h("ul", { class: "kinds", "aria-label": "Other devices", hidden: true });
    this.owners = new Owners(store);
    this.coloring = new Coloring();
    this.filters = new FilterField(announce);
    this.filters.world = () => ({ fleet: this.fleet, owners: this.owners });
    this.color = h(
      "select",
      { onchange: () => setParameters({ color: this.color.value === "state" ? "" : this.color.value }) },
      ["state", ...COLORS].map((each) => h("option", { value: each }, each)),
    );
    this.pointed = h("p", { class: "pointed", "aria-hidden": "true" });
    this.notes = h("div", { class: "notes" });
    this.panel = h("aside", { class: "panel", "aria-label": "Selected device", hidden: true });
    this.place = h("div", { class: "place" }, this.pointed);
    this.nothing = h("div", { class: "nothing" }, loading());
    /** @type {ReturnType<typeof devicePanel> | null} */
    this.device = null;
    this.field = new GroupingField((name) => setParameters({ group: name === this._defaultGroup() ? "" : name }));
    this.timeline = new Timeline({
      // The Back button does not step through the moments of a slider.
      show: (revision) => setParameters({ at: String(revision) }),
      close: () => setParameters({ at: "" }),
    });
    this.map = new FleetMap(this.place, {
      label: "Map of devices by node. Arrow keys select a device, plus and minus zoom. The view Devices shows the same data as a table.",
      select: (id) => (location.hash = toDevice(id, this._query())),
      point: (id, node, driver) => this._point(id, node, driver),
      open: (driver) => toggleParameter("open", driver),
    });
    this.element = this._element();
    this._selected = "";
    this._grouped = "";
    /** @type {import("../map/fleet.js").Fleet | null} */
    this._styled = null;
    /** The filters and colors that the map shows. */
    this._look = "";
    this._at = "";
    this._arrangement = 0;
    this._fitted = "nothing";
    this._isGroupedAgain = false;
    this.field.load();
    this.update(new Set(["fleet"]));
    this.follow(route);
  }

  _element() {
    const color = h("label", { class: "grouping" }, "Color by ", this.color);
    const fields = h("div", { class: "map-fields" }, this.field.element, color, this.filters.element);
    const bar = h("div", { class: "bar-of-map" }, fields, this._zoom(), h("div", { class: "legends" }, this.legend, this.kinds), this.owned);
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

  /** What stays from one address of the view to the next. @returns {import("../routes.js").Parameters} */
  _query() {
    const keys = [...FILTERS, "group", "color", "open", "at"];
    return Object.fromEntries(keys.map((key) => [key, this.route.query.getAll(key)]));
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
      button("◷", "Timeline", () => setParameters({ at: parameter("at") ? "" : "now" })),
    );
  }

  /** @param {import("../routes.js").Route} route @returns {boolean} */
  follow(route) {
    if (route.view !== "fleet") return false;
    this.route = route;
    this._then(route.query.get("at") ?? "");
    this._group(route.query.get("group") || this._defaultGroup());
    this._select(route.names.length === 3 ? route.names.join("/") : "");
    this._restyle();
    this._highlight();
    return true;
  }

  /** Large fleets are readable by zone. */
  _defaultGroup() {
    const nodes = [...(this.fleet?.nodes.values() ?? [])];
    if (nodes.length < GROUPED_NODES_MIN) return "nothing";
    return new Set(nodes.map((each) => each.zone)).size > 1 ? "zone" : "nothing";
  }

  /** Applies filters, colors and opened drivers of the address. */
  _restyle() {
    const { fleet, owners, coloring } = this;
    if (!fleet) return;
    this._refreshOwners();
    const wanted = filters();
    // A step from one device to the next changes nothing of it.
    const look = JSON.stringify([wanted, parameter("color"), this._collapsed(wanted)]);
    if (look === this._look && this._styled === fleet) return;
    this._look = look;
    const color = COLORS.includes(parameter("color")) ? parameter("color") : "";
    this.color.value = color || "state";
    this.filters.show(wanted);
    if (color) coloring.refresh(color, fleet, owners);
    const dark = isDark(palette().back);
    this.map.collapse(this._collapsed(wanted));
    this.map.setStyle({
      matches: matcher(wanted, fleet, owners),
      colorOf: color
        ? (device) => {
            const [first = NONE] = valuesOf(color, device, fleet, owners);
            return first !== NONE || owners.has(device.id) ? coloring.colorOf(first, dark) : "";
          }
        : null,
      linesOf: (device) => linesOf(device, owners),
    });
    this._bars();
  }

  /** The drivers that are shown as a strip: those that nothing in the address is about. */
  _collapsed(/** @type {{[name: string]: string[]}} */ wanted) {
    const { fleet } = this;
    if (!fleet) return [];
    const open = new Set(parameters("open"));
    for (const id of [this._selected, ...parameters("mark")]) open.add(idParts(id)[0]);
    for (const each of fleet.summary) {
      if (wanted.model?.includes(each.model || each.driver)) open.add(each.driver);
    }
    return auxiliaryDrivers(fleet.drivers().keys()).filter((each) => !open.has(each));
  }

  /** Reads which claims have which devices, and paints the devices of others anew. */
  _refreshOwners() {
    const changed = this.owners.refresh();
    const { fleet } = this;
    if (!fleet || !changed.size) return;
    const devices = [...changed].map((id) => fleet.devices.get(id)).filter((each) => each !== undefined);
    fleet.touch(devices);
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
      const found = isAsked(name) ? await attributeGrouping(name) : knownGrouping(() => this.fleet, name);
      if (this._grouped !== name) return;
      this.map.groupBy(found);
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
      this._group(parameter("group") || this._defaultGroup());
    }, GROUP_AGAIN_MS);
  }

  _highlight() {
    const node = this.route.query.get("node");
    const marks = this.route.query.getAll("mark");
    this.map.highlight(marks, node ? [node] : []);
    this._members();
    const first = marks[0] ?? (node && this._firstOn(node));
    if (first) this.map.reveal(first);
  }

  /** @param {string} node */
  _firstOn(node) {
    for (const device of this.fleet?.devices.values() ?? []) if (device.node === node) return device.id;
    return "";
  }

  /** The gangs of a device, with the number of their devices. @param {string} id */
  _gangText(id) {
    const gangs = [...new Set(this.owners.of(id).flatMap((each) => each.gangs))];
    const counts = gangs.map((gang) => `gang ${gang} has ${counted(this.owners.devicesOf(new Set([gang])).length, "device")}`);
    return counts.map((text) => `, ${text}`).join("");
  }

  /** Leads the eye to the gang of the selected device, or to those of the filter. */
  _members() {
    const own = this._selected ? this.owners.of(this._selected).flatMap((each) => each.gangs) : [];
    const gangs = new Set(own.length ? own : parameters("gang"));
    this.map.showMembers(gangs.size ? this.owners.devicesOf(gangs) : []);
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
    if (known) this.announce(`${known.name} on ${known.node || NO_NODE}: ${known.state}${this._gangText(id)}`);
  }

  escape() {
    if (!this._selected && !this.route.query.get("node")) return;
    location.hash = to("fleet", [], this._query());
    this.map.canvas.focus({ preventScroll: true });
  }

  /** @param {string} id @param {string} node @param {string} driver of a strip */
  _point(id, node, driver) {
    const device = this.fleet?.devices.get(id);
    const [owner] = device ? this.owners.of(id) : [];
    const text = device
      ? [
          device.node || NO_NODE,
          device.name,
          device.model || device.driver,
          `${device.state}${device.level >= 0 ? ` ${device.level}%` : ""}`,
          owner && (owner.pods[0] ?? owner.claim),
        ]
      : [node, driver && `open ${driver}`];
    this.pointed.textContent = text.filter(Boolean).join(" · ");
  }

  /** @param {Set<string>} parts */
  update(parts) {
    this.device?.update(parts);
    // The first list of claims comes after the map.
    if (parts.has("claims") || parts.has("pods")) this._ownersChanged();
    if (parts.has("fleet")) this._show();
    if (this._at === "now") this.timeline.refresh();
  }

  _show() {
    const { fleet } = this;
    if (!fleet) return;
    fill(this.notes, fleet.notes.map((each) => h("p", null, each)));
    // A new driver may be collapsed.
    if (this._styled === fleet) this._restyle();
    this._bars();
    this.nothing.hidden = fleet.devices.size > 0;
    if (!fleet.devices.size) fill(this.nothing, nothingYet(fleet.nodes.size));
    const isFirst = !this.map.fleet;
    if (fleet.arrangement !== this._arrangement) this._groupAgain();
    this._arrangement = fleet.arrangement;
    this.element.classList.toggle("past", this.store.past !== null);
    if (this._styled !== fleet) this.follow(this.route);
    this._styled = fleet;
    this.map.show(fleet);
    if (isFirst) this._highlight();
  }

  _ownersChanged() {
    const { fleet } = this;
    if (!fleet) return;
    const needsOwners = parameter("color") || ["namespace", "gang", "queue"].some((each) => parameter(each));
    this._refreshOwners();
    if (needsOwners && parameter("color")) this._restyleAgain();
    else this.map.show(fleet);
    this._members();
  }

  /** The cards and the legends. */
  _bars() {
    const { fleet } = this;
    if (!fleet) return;
    const auxiliary = auxiliaryDrivers(fleet.drivers().keys());
    summaryCards(this.summary, fleet.summary, auxiliary, parameters("model"));
    this._legend(fleet);
    this._ownedLegend();
    const counts = fleet.drivers();
    const open = parameters("open");
    const kinds = auxiliary.map((driver) => ({ driver, count: counts.get(driver) ?? 0, isOpen: open.includes(driver) }));
    sync(this.kinds, kinds, (each) => each.driver, ({ driver, count, isOpen }) =>
      h(
        "li",
        null,
        h(
          "button",
          { type: "button", "aria-expanded": String(isOpen), onclick: () => toggleParameter("open", driver) },
          `${isOpen ? "▾" : "▸"} ${driver} `,
          h("b", null, count.toLocaleString("en")),
        ),
      ),
    );
    this.kinds.hidden = !kinds.length;
  }

  /** The owners by whom the map is colored. */
  _ownedLegend() {
    const { name } = this.coloring;
    const isOwned = this.color.value !== "state";
    this.owned.hidden = !isOwned;
    if (!isOwned) return;
    const dark = isDark(palette().back);
    const chosen = parameters(name);
    const items = this.coloring.legend().map(([value, count]) => ({ value, count, color: this.coloring.colorOf(value, dark), isChosen: chosen.includes(value) }));
    const { without } = this.coloring;
    if (without) items.push({ value: `no ${name}`, count: without, color: this.coloring.colorOf(NONE, dark), isChosen: false });
    this.owned.setAttribute("aria-label", `Devices by ${name}`);
    if (!items.length) fill(this.owned, h("li", { class: "quiet" }, `No device has a ${name}.`));
    else sync(this.owned, items, (each) => each.value, ({ value, count, color, isChosen }) =>
      legendItem(swatch("allocated", -1, color), value, count, isChosen, this.coloring.counts.has(value) ? () => toggleParameter(name, value) : null),
    );
  }

  /** @param {import("../map/fleet.js").Fleet} fleet */
  _legend(fleet) {
    const chosen = parameters("state");
    const items = [...fleet.counts(this.map.collapsed)]
      .filter(([state, count]) => count || chosen.includes(state))
      .map(([state, count]) => ({ state, count, isChosen: chosen.includes(state) }));
    sync(this.legend, items, (each) => each.state, ({ state, count, isChosen }) => {
      const title = MEANINGS[/** @type {keyof typeof MEANINGS} */ (state)];
      return legendItem(swatch(state), state, count, isChosen, () => toggleParameter("state", state), title);
    });
  }

  themeChanged() {
    this.map.themeChanged();
    this.timeline.paint();
    // Pictures of states are made anew, in the colors of the theme.
    for (const each of [this.legend, this.owned]) fill(each);
    this._restyleAgain();
  }

  _restyleAgain() {
    this._look = "";
    this._restyle();
  }

  close() {
    this.device?.close();
    this.timeline.stop();
    this.map.close();
  }
}

/**
 * An entry of a legend: a button that filters the map.
 * @param {HTMLElement} picture @param {string} name @param {number} count @param {boolean} isChosen
 * @param {(() => void) | null} toggle @param {string} [title]
 */
function legendItem(picture, name, count, isChosen, toggle, title) {
  const content = [picture, h("span", { class: "label" }, name), h("b", null, count.toLocaleString("en"))];
  if (!toggle) return h("li", null, h("span", { class: "entry" }, content));
  return h(
    "li",
    null,
    h("button", { type: "button", class: "entry", title, "aria-pressed": String(isChosen), onclick: toggle }, content),
  );
}

/** @param {number} nodes */
function nothingYet(nodes) {
  return empty(
    nodes ? `No devices: ${counted(nodes, "node")}, but no ResourceSlices.` : "No nodes and no devices yet.",
    h("p", { class: "quiet" }, "The map shows devices as soon as a driver publishes them, for example: "),
    h("pre", null, "dryrack up --nodes 4 --devices gpu:8"),
  );
}
