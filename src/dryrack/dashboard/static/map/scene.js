// What is drawn on the canvas. From far away, where a device is a few pixels, it is a picture of the
// whole that is made once and moved; from near, the devices in sight one by one.

import { NO_NODE, palette, Sprites } from "./paint.js";
import { TITLE } from "./layout.js";

/** Pixels of a device's side below which the picture of the whole does. */
const NEAR = 11;
const PICTURE_PIXELS_MAX = 12_000_000;
const PICTURE_SIDE_MAX = 8192;
/** Part of a cell that its device fills. */
const INSIDE = 0.88;

/**
 * @typedef {{x: number, y: number, scale: number}} Camera
 * @typedef {import("./layout.js").Layout} Layout
 * @typedef {import("./layout.js").Tile} Tile
 * @typedef {import("./layout.js").Cell} Cell
 * @typedef {{x: number, y: number, width: number, height: number}} Box
 */

export class Scene {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    /** @type {Layout} */
    this.layout = { width: 0, height: 0, groups: [], cells: new Map() };
    this.selected = "";
    this.pointed = "";
    /** @type {Set<string>} */
    this.highlighted = new Set();
    /** @type {Set<string>} */
    this.highlightedNodes = new Set();
    this.ratio = 1;
    this.colours = palette();
    this.sprites = new Sprites(this.colours);
    /** @type {{canvas: HTMLCanvasElement, scale: number} | null} */
    this._picture = null;
    /** @type {Map<Cell, string>} what each cell of the picture shows */
    this._painted = new Map();
    this._isOld = false;
    this._font = getComputedStyle(document.body).fontFamily;
  }

  /** @param {Layout} layout */
  setLayout(layout) {
    this.layout = layout;
    this._picture = null;
  }

  /** Devices have other states now. */
  repaint() {
    this._isOld = true;
  }

  themeChanged() {
    this.colours = palette();
    this.sprites = new Sprites(this.colours);
    this._picture = null;
  }

  /** @param {number} width @param {number} height */
  resize(width, height) {
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
  }

  /** @param {Camera} camera */
  draw(camera) {
    const { context, canvas, ratio } = this;
    const scale = camera.scale * ratio;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const seen = {
      x: camera.x,
      y: camera.y,
      width: canvas.width / scale,
      height: canvas.height / scale,
    };
    const groups = this.layout.groups.filter((each) => meets(each, seen));
    const view = { ...camera, scale };
    const isNear = scale >= this._pictureScale();
    if (!isNear) this._drawPicture(view);
    for (const group of groups) {
      if (isNear) this._drawGroup(group, view, seen);
      this._title(group, view);
    }
    this._marks(view, seen);
  }

  /** @param {Camera} view */
  _drawPicture(view) {
    const picture = this._current();
    const { canvas, scale } = picture;
    const factor = view.scale / scale;
    this.context.imageSmoothingEnabled = true;
    this.context.imageSmoothingQuality = "medium";
    this.context.drawImage(
      canvas,
      -view.x * view.scale,
      -view.y * view.scale,
      canvas.width * factor,
      canvas.height * factor,
    );
  }

  /** The picture of the whole; of what has changed, only that is painted. */
  _current() {
    if (!this._picture) this._picture = this._newPicture();
    else if (this._isOld) this._paintChanged(this._picture);
    this._isOld = false;
    return this._picture;
  }

  /** Pixels of a device's side on the picture of the whole; from nearer it would be blurred. */
  _pictureScale() {
    const { width, height } = this.layout;
    return Math.min(
      NEAR * this.ratio,
      Math.sqrt(PICTURE_PIXELS_MAX / Math.max(1, width * height)),
      PICTURE_SIDE_MAX / Math.max(1, width, height),
    );
  }

  _newPicture() {
    const { width, height } = this.layout;
    const scale = this._pictureScale();
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.ceil(width * scale));
    canvas.height = Math.max(1, Math.ceil(height * scale));
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this._painted = new Map();
    for (const group of this.layout.groups) {
      this._pictureBox(context, group, scale, this.colours.raised);
      for (const tile of group.tiles) this._pictureBox(context, tile, scale, this.colours.back);
    }
    for (const { cell } of this.layout.cells.values()) this._paintCell(context, cell, scale);
    return { canvas, scale };
  }

  /** @param {CanvasRenderingContext2D} context @param {Box} box @param {number} scale */
  _pictureBox(context, box, scale, /** @type {string} */ fill) {
    const [x, y, w, h] = [box.x, box.y, box.width, box.height].map((n) => Math.round(n * scale));
    context.fillStyle = this.colours.line;
    context.fillRect(x, y, w, h);
    context.fillStyle = fill;
    context.fillRect(x + 1, y + 1, w - 2, h - 2);
  }

  /** @param {{canvas: HTMLCanvasElement, scale: number}} picture */
  _paintChanged({ canvas, scale }) {
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    for (const { cell } of this.layout.cells.values()) {
      if (this._painted.get(cell) !== looks(cell)) this._paintCell(context, cell, scale);
    }
  }

  /** @param {CanvasRenderingContext2D} context @param {Cell} cell @param {number} scale */
  _paintCell(context, cell, scale) {
    const box = inside(cell, { x: 0, y: 0, scale });
    context.fillStyle = this.colours.back;
    context.fillRect(box.x, box.y, box.size, box.size);
    this.sprites.paint(context, cell.device, box);
    this._painted.set(cell, looks(cell));
  }

  /** @param {import("./layout.js").Group} group @param {Camera} view @param {Box} seen */
  _drawGroup(group, view, seen) {
    const { context, colours } = this;
    this._box(group, view, colours.raised, colours.line);
    for (const tile of group.tiles) {
      if (!meets(tile, seen)) continue;
      this._drawTile(tile, view);
    }
    context.globalAlpha = 1;
  }

  /** @param {Tile} tile @param {Camera} view */
  _drawTile(tile, view) {
    const { context, colours } = this;
    this._box(tile, view, colours.back, colours.line);
    const [x, y] = [(tile.x - view.x) * view.scale, (tile.y - view.y) * view.scale];
    const size = Math.min(0.6 * view.scale, Math.max(13 * this.ratio, 0.35 * view.scale));
    if (size >= 6 * this.ratio) {
      context.font = `${size}px ${this._font}`;
      context.fillStyle = colours.text;
      context.textBaseline = "middle";
      const room = tile.width * view.scale - 0.5 * view.scale;
      context.fillText(shortened(context, tile.node || NO_NODE, room), x + 0.3 * view.scale, y + 0.45 * view.scale);
    }
    for (const frame of tile.frames) {
      const side = frame.size * 0.97;
      this._box({ ...frame, width: side, height: side }, view, colours.raised, colours.quiet);
    }
    for (const cell of tile.cells) {
      const box = inside(cell, view);
      this.sprites.paint(context, cell.device, box);
      if (box.size > 64 * this.ratio) this._name(cell, box);
    }
  }

  /** @param {Cell} cell @param {{x: number, y: number, size: number}} box */
  _name(cell, box) {
    const { context, colours, ratio } = this;
    const size = 11 * ratio;
    context.font = `${size}px ${this._font}`;
    const text = shortened(context, cell.device.name, box.size - 14 * ratio);
    const width = context.measureText(text).width + 6 * ratio;
    context.fillStyle = colours.back;
    context.fillRect(box.x + 4 * ratio, box.y + 4 * ratio, width, size + 5 * ratio);
    context.fillStyle = colours.text;
    context.textBaseline = "middle";
    context.fillText(text, box.x + 7 * ratio, box.y + 4 * ratio + (size + 5 * ratio) / 2);
  }

  /** @param {import("./layout.js").Group} group @param {Camera} view */
  _title(group, view) {
    if (!group.name) return;
    const { context, colours, ratio } = this;
    const room = group.width * view.scale - 8 * ratio;
    if (room < 36 * ratio) return;
    const wanted = Math.min(0.7 * view.scale, Math.max(14 * ratio, 0.4 * view.scale));
    const size = Math.max(10 * ratio, wanted);
    const [x, y] = [(group.x - view.x) * view.scale, (group.y - view.y) * view.scale];
    const height = Math.max(TITLE * view.scale, size * 1.5);
    context.font = `600 ${size}px ${this._font}`;
    const text = shortened(context, `${group.name} · ${group.devices}`, room);
    if (height > TITLE * view.scale) {
      // It covers some devices then, and must be read before them.
      context.fillStyle = colours.raised;
      context.globalAlpha = 0.85;
      context.fillRect(x, y, context.measureText(text).width + 10 * ratio, height);
      context.globalAlpha = 1;
    }
    context.fillStyle = colours.text;
    context.textBaseline = "middle";
    context.fillText(text, x + 5 * ratio, y + height / 2);
  }

  /** What is selected, pointed at, or led to. @param {Camera} view @param {Box} seen */
  _marks(view, seen) {
    const { colours, ratio } = this;
    for (const group of this.highlightedNodes.size ? this.layout.groups : []) {
      for (const tile of group.tiles) {
        if (this.highlightedNodes.has(tile.node) && meets(tile, seen)) {
          this._ring(tile, view, colours.accent, 2 * ratio);
        }
      }
    }
    for (const id of this.highlighted) this._ringCell(id, view, colours.unhealthy, 3 * ratio);
    if (this.pointed) this._ringCell(this.pointed, view, colours.quiet, 1.5 * ratio);
    if (this.selected) this._ringCell(this.selected, view, colours.text, 2.5 * ratio);
  }

  /** @param {string} id @param {Camera} view @param {string} colour @param {number} line */
  _ringCell(id, view, colour, line) {
    const cell = this.layout.cells.get(id)?.cell;
    if (cell) this._ring({ ...cell, width: cell.size, height: cell.size }, view, colour, line);
  }

  /** @param {Box} box @param {Camera} view @param {string} colour @param {number} line */
  _ring(box, view, colour, line) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = line;
    context.beginPath();
    const [x, y] = [(box.x - view.x) * view.scale, (box.y - view.y) * view.scale];
    // Around a device of a few pixels it is larger than the device, or nobody would find it.
    const [w, h] = [box.width * view.scale, box.height * view.scale];
    const more = Math.max(0, (9 * this.ratio - Math.min(w, h)) / 2);
    context.roundRect(x - more, y - more, w + 2 * more, h + 2 * more, 4 * this.ratio);
    context.stroke();
  }

  /** @param {Box} box @param {Camera} view @param {string} fill @param {string} stroke */
  _box(box, view, fill, stroke) {
    const { context } = this;
    const [x, y] = [(box.x - view.x) * view.scale, (box.y - view.y) * view.scale];
    context.beginPath();
    const round = Math.min(6 * this.ratio, 0.2 * view.scale);
    context.roundRect(x, y, box.width * view.scale, box.height * view.scale, round);
    context.fillStyle = fill;
    context.fill();
    context.strokeStyle = stroke;
    context.lineWidth = this.ratio;
    context.stroke();
  }
}

/** @param {Cell} cell */
function looks(cell) {
  return `${cell.device.state} ${cell.device.level}`;
}

/** Where a device is in pixels. @param {Cell} cell @param {Camera} view */
function inside(cell, view) {
  const size = cell.size * INSIDE * view.scale;
  const margin = (cell.size * (1 - INSIDE) * view.scale) / 2;
  const [x, y] = [(cell.x - view.x) * view.scale + margin, (cell.y - view.y) * view.scale + margin];
  // On whole pixels lines are sharp; of few pixels the sizes would differ.
  return size < 6 ? { x, y, size } : { x: Math.round(x), y: Math.round(y), size: Math.round(size) };
}

/** @param {Box} a @param {Box} b */
function meets(a, b) {
  return (
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
  );
}

/** The text, or as much of it as there is room for: the end, where node names differ. */
function shortened(
  /** @type {CanvasRenderingContext2D} */ context,
  /** @type {string} */ text,
  /** @type {number} */ room,
) {
  const width = context.measureText(text).width;
  if (width <= room) return text;
  const letters = Math.floor((text.length * room) / width) - 1;
  return letters < 2 ? "" : `…${text.slice(-letters)}`;
}
