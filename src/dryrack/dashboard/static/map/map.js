// The map: a canvas that shows part of the layout, and what somebody does to it with a mouse,
// fingers or keys.

import { Gestures } from "./gestures.js";
import { arrangeDevices, arrangeNodes, neighbour, nodesOf, partAt, placeOf, tileAt } from "./layout.js";
import { isTaken } from "./paint.js";
import { Scene } from "./scene.js";

/** Pixels of a device's side: as large as it gets, and as large as it begins, larger on a wall. */
const SCALE_MAX = 420;
const SCALE_BEGIN = 100;
const BEGIN_OF_WIDTH = 1 / 16;
const MARGIN = 10;

const DIRECTIONS = {
  ArrowLeft: { x: -1, y: 0 },
  ArrowRight: { x: 1, y: 0 },
  ArrowUp: { x: 0, y: -1 },
  ArrowDown: { x: 0, y: 1 },
};

export class FleetMap {
  /**
   * @param {HTMLElement} parent
   * @param {{select: (id: string) => void, point?: (id: string, node: string, driver: string) => void,
   *   open?: (driver: string) => void, label: string}} options
   */
  constructor(parent, options) {
    this.options = options;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "map";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-label", options.label);
    parent.append(this.canvas);
    this.scene = new Scene(this.canvas);
    /** @type {import("./fleet.js").Fleet | null} */
    this.fleet = null;
    /** @type {import("../views/grouping.js").Grouping} */
    this.grouping = { groupOf: () => "", isOfNode: true };
    /** Drivers that are shown as a strip. @type {Set<string>} */
    this.collapsed = new Set();
    /** @type {import("./layout.js").Nodes | null} */
    this._nodes = null;
    this.camera = { x: 0, y: 0, scale: 1 };
    this._isTouched = false;
    this._isDue = false;
    this._arrangement = -1;
    /** The number of arrangements; the last one holds. */
    this._arranging = 0;
    /** Whether an arrangement is not painted yet. */
    this._isArranged = false;
    /** A device that is not on the map yet, to be brought into sight. */
    this._wanted = "";
    this._size = { width: 0, height: 0 };
    this._gestures = new Gestures(this.canvas, this);
    this.canvas.addEventListener("keydown", (event) => this._key(event));
    this._observer = new ResizeObserver(() => this._resized());
    this._observer.observe(parent);
  }

  close() {
    this._observer.disconnect();
  }

  /** @param {import("./fleet.js").Fleet} fleet */
  show(fleet) {
    const isOther = fleet !== this.fleet || fleet.arrangement !== this._arrangement;
    this.fleet = fleet;
    if (isOther) {
      this._nodes = null;
      this._arrange();
    } else this.scene.repaint(fleet);
    this.draw();
  }

  /** @param {import("../views/grouping.js").Grouping} grouping */
  groupBy(grouping) {
    this.grouping = grouping;
    if (this.fleet) this._arrange();
  }

  /** Shows the devices of these drivers as a strip. @param {string[]} drivers */
  collapse(drivers) {
    if (drivers.length === this.collapsed.size && drivers.every((each) => this.collapsed.has(each))) return;
    this.collapsed = new Set(drivers);
    this._nodes = null;
    if (this.fleet) this._arrange();
  }

  /** @param {import("./style.js").Style} style */
  setStyle(style) {
    this.scene.setStyle(style);
    this.draw();
  }

  /** Leads the eye to the devices of a gang. @param {Iterable<string>} ids */
  showMembers(ids) {
    this.scene.members = new Set(ids);
    this.draw();
  }

  /** The device that is selected, which is brought into sight. @param {string} id */
  select(id) {
    this.scene.selected = id;
    if (id) this.reveal(id);
    this.draw();
  }

  /** What the eye is led to. @param {Iterable<string>} ids @param {Iterable<string>} nodes */
  highlight(ids, nodes = []) {
    this.scene.highlighted = new Set(ids);
    this.scene.highlightedNodes = new Set(nodes);
    this.draw();
  }

  async _arrange() {
    const { width, height } = this._size;
    const { fleet } = this;
    if (!fleet || !width || !height) return;
    const number = ++this._arranging;
    this._arrangement = fleet.arrangement;
    this._nodes ??= nodesOf(fleet, this.collapsed);
    const { groupOf, isOfNode } = this.grouping;
    const layout = isOfNode
      ? arrangeNodes(this._nodes, groupOf, { width, height })
      : await arrangeDevices(this._nodes, groupOf, { width, height }, pause);
    // Meanwhile, another arrangement may have begun.
    if (number !== this._arranging) return;
    this.scene.setLayout(layout, fleet.version);
    if (this._isTouched) this._clamp();
    else this.fit();
    if (this._wanted) this.reveal(this._wanted);
    this._isArranged = true;
    this.draw();
  }

  _resized() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (width === this._size.width && height === this._size.height) return;
    this._size = { width, height };
    this.scene.resize(width, height);
    this._arrange();
  }

  /** Everything in sight, no device larger than is needed. */
  fit() {
    const { width, height } = this._size;
    const { layout } = this.scene;
    const scale = this._scaleWhole();
    this._isTouched = false;
    const [x, y] = [(layout.width - width / scale) / 2, (layout.height - height / scale) / 2];
    this.camera = { scale, x, y };
    this.draw();
  }

  _scaleWhole() {
    const { width, height } = this._size;
    const { layout } = this.scene;
    return Math.min(
      (width - 2 * MARGIN) / Math.max(layout.width, 1),
      (height - 2 * MARGIN) / Math.max(layout.height, 1),
      Math.max(SCALE_BEGIN, width * BEGIN_OF_WIDTH),
    );
  }

  /** @param {number} factor @param {number} [x] @param {number} [y] pixels that stay where they are */
  zoom(factor, x = this._size.width / 2, y = this._size.height / 2) {
    const { camera } = this;
    const scale = Math.min(SCALE_MAX, Math.max(this._scaleMin(), camera.scale * factor));
    camera.x += x / camera.scale - x / scale;
    camera.y += y / camera.scale - y / scale;
    camera.scale = scale;
    this._isTouched = true;
    this._clamp();
    this.draw();
  }

  _scaleMin() {
    const { layout } = this.scene;
    const { width, height } = this._size;
    const whole = Math.min(width / Math.max(layout.width, 1), height / Math.max(layout.height, 1));
    return Math.min(whole * 0.8, SCALE_BEGIN);
  }

  /** @param {number} dx @param {number} dy pixels */
  pan(dx, dy) {
    this.camera.x -= dx / this.camera.scale;
    this.camera.y -= dy / this.camera.scale;
    this._isTouched = true;
    this._clamp();
    this.draw();
  }

  /** Some of the fleet always stays in sight. */
  _clamp() {
    const { camera, _size } = this;
    const { layout } = this.scene;
    const [w, h] = [_size.width / camera.scale, _size.height / camera.scale];
    camera.x = Math.min(Math.max(camera.x, -w * 0.8), layout.width - w * 0.2);
    camera.y = Math.min(Math.max(camera.y, -h * 0.8), layout.height - h * 0.2);
  }

  /** @param {string} id */
  reveal(id) {
    const cell = placeOf(this.scene.layout, id);
    this._wanted = cell ? "" : id;
    if (!cell) return;
    const { camera, _size } = this;
    const size = Math.min(cell.width, cell.height);
    // So small that it could not be told from its neighbours.
    if (size * camera.scale < 6) camera.scale = Math.min(SCALE_MAX, 14 / size);
    const [w, h] = [_size.width / camera.scale, _size.height / camera.scale];
    const isIn =
      cell.x > camera.x && cell.x + cell.width < camera.x + w &&
      cell.y > camera.y && cell.y + cell.height < camera.y + h;
    if (isIn) return;
    camera.x = cell.x - w / 2;
    camera.y = cell.y - h / 2;
    this._isTouched = true;
  }

  /** @param {number} x @param {number} y pixels in the canvas */
  at(x, y) {
    const [wx, wy] = [this.camera.x + x / this.camera.scale, this.camera.y + y / this.camera.scale];
    const tile = tileAt(this.scene.layout, wx, wy);
    if (!tile) return { id: "", node: "", driver: "" };
    const { cell, frame, strip } = partAt(tile, wx, wy);
    const slice = frame && !this.scene.showsLanes(frame, this.camera) ? sliceAt(frame, wx - tile.x) : cell;
    return { id: slice?.device.id ?? "", node: tile.node, driver: strip?.driver ?? "" };
  }

  /** @param {number} x @param {number} y */
  tap(x, y) {
    const { id, driver } = this.at(x, y);
    if (driver) this.options.open?.(driver);
    else this._choose(id);
  }

  /** Selects at once: the page hears of its new address later, maybe after the next key. */
  _choose(/** @type {string} */ id) {
    if (!id) return;
    this.select(id);
    this.options.select(id);
  }

  /** @param {number} x @param {number} y */
  point(x, y) {
    const { id, node, driver } = this.at(x, y);
    this.canvas.style.cursor = id || driver ? "pointer" : "grab";
    this.options.point?.(id, node, driver);
    if (this.scene.pointed === id) return;
    this.scene.pointed = id;
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  _key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = DIRECTIONS[/** @type {keyof typeof DIRECTIONS} */ (event.key)];
    if (direction && event.shiftKey) this.pan(-80 * direction.x, -80 * direction.y);
    else if (direction) this._choose(neighbour(this.scene.layout, this.scene.selected, direction));
    else if (event.key === "+" || event.key === "=") this.zoom(1.4);
    else if (event.key === "-") this.zoom(1 / 1.4);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
  }

  /** Colours are others now. */
  themeChanged() {
    this.scene.themeChanged();
    this.draw();
  }

  /** At most once a frame. */
  draw() {
    if (this._isDue) return;
    this._isDue = true;
    requestAnimationFrame(() => {
      this._isDue = false;
      const isUnfinished = this.scene.draw(this.camera, this._scaleWhole());
      if (isUnfinished) this.draw();
      // Benchmarks read when a new arrangement is on the screen.
      else if (this._isArranged) performance.mark("map");
      this._isArranged &&= isUnfinished;
    });
  }
}

/** Lets the browser handle input. @returns {Promise<void>} */
function pause() {
  return new Promise((resolve) => setTimeout(resolve));
}

/**
 * The partition at a place of a physical device that shows only its slices: one that a claim has, or
 * else the widest one.
 * @param {import("./layout.js").Frame} frame @param {number} x in the node
 */
function sliceAt(frame, x) {
  const place = (x - frame.x) / frame.width;
  const here = frame.cells.filter(({ device: { placement } }) => {
    if (!placement || placement.start < 0) return true;
    return place >= placement.start / placement.of && place < (placement.start + placement.width) / placement.of;
  });
  return here.find((each) => isTaken(each.device)) ?? here[0] ?? frame.cells[0];
}
