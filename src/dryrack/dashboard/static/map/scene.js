// What is drawn on the canvas. Many devices are a picture of the whole that is painted once, in parts
// that leave time for input, and then moved; few are drawn one by one. The size of a device decides
// what it shows: first only the shares of states on a node, then devices, then names and owners.

import { placeOf } from "./layout.js";
import { NO_NODE, paintCard, paintFrame, paintShares, palette, shortened, Sprites } from "./paint.js";

/** Devices in sight that are drawn one by one with every frame. */
const DIRECT_MAX = 6000;
const PICTURE_PIXELS_MAX = 16_000_000;
/** So many times larger than the whole, the picture is painted again with more detail. */
const NEARER = 1.6;
/** The part of a frame in which the picture is painted; the rest is for input. */
const PAINT_MS = 12;
/** Pixels of a device's side below which a node shows only the shares of its states. */
const DEVICE_PIXELS_MIN = 3;
const BORDER_PIXELS_MIN = 5;
/** Pixels of the height of a device from which it is a card with text, or shows all its partitions. */
const CARD_PIXELS = 58;
const LANES_PIXELS = 125;
/** Part of a cell that its device fills. */
const INSIDE = 0.88;

/**
 * @typedef {{x: number, y: number, scale: number}} Camera
 * @typedef {import("./layout.js").Layout} Layout
 * @typedef {import("./layout.js").Tile} Tile
 * @typedef {import("./layout.js").Cell} Cell
 * @typedef {import("./paint.js").Rectangle} Box
 * @typedef {{canvas: HTMLCanvasElement, context: CanvasRenderingContext2D, scale: number,
 *   waiting: Tile[]}} Picture
 */

export class Scene {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    /** @type {Layout} */
    this.layout = { width: 0, height: 0, groups: [], tiles: [], cells: new Map() };
    /** @type {import("./style.js").Style} */
    this.style = { matches: null, colorOf: null, linesOf: (device) => [device.name] };
    this.selected = "";
    this.pointed = "";
    /** Devices in the way of a pod. @type {Set<string>} */
    this.highlighted = new Set();
    /** @type {Set<string>} */
    this.highlightedNodes = new Set();
    /** The devices of the gang of the selected device. @type {Set<string>} */
    this.members = new Set();
    this.ratio = 1;
    this.colours = palette();
    this.sprites = new Sprites(this.colours);
    /** The version of the fleet that is painted. */
    this.version = 0;
    this._deviceCount = 0;
    /** Pictures of the whole by their scale: one for all of it, and one from nearer. @type {Map<number, Picture>} */
    this._pictures = new Map();
    this._font = getComputedStyle(document.body).fontFamily;
  }

  /** @param {Layout} layout @param {number} version of its fleet */
  setLayout(layout, version) {
    this.layout = layout;
    this.version = version;
    this._deviceCount = layout.groups.reduce((sum, each) => sum + each.devices, 0);
    this._forget();
  }

  /** @param {import("./style.js").Style} style */
  setStyle(style) {
    this.style = style;
    this._forget();
  }

  /** Nothing of what was painted holds any more. */
  _forget() {
    for (const tile of this.layout.tiles) tile.look = -1;
    this._pictures.clear();
  }

  /** Devices have other states now: paints the nodes that changed. @param {import("./fleet.js").Fleet} fleet */
  repaint(fleet) {
    const before = this.version;
    this.version = fleet.version;
    for (const tile of this.layout.tiles) {
      if ((fleet.versions.get(tile.node) ?? 0) <= before) continue;
      tile.look = -1;
      for (const { waiting } of this._pictures.values()) waiting.push(tile);
    }
  }

  themeChanged() {
    this.colours = palette();
    this.sprites = new Sprites(this.colours);
    this._forget();
  }

  /** @param {number} width @param {number} height */
  resize(width, height) {
    this.ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
  }

  /**
   * Draws a frame; returns whether more of it remains to be painted.
   * @param {Camera} camera @param {number} wholeScale pixels of a device when everything is in sight
   * @returns {boolean}
   */
  draw(camera, wholeScale) {
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
    const tiles = groups.flatMap((each) => each.tiles.filter((tile) => meets(tile, seen)));
    const devices = (this._deviceCount * tiles.length) / Math.max(1, this.layout.tiles.length);
    let isUnfinished = false;
    if (devices > DIRECT_MAX) isUnfinished = this._drawPicture(view, wholeScale * ratio);
    else {
      for (const group of groups) this._box(context, group, view, this.colours.raised, this.colours.line);
      for (const tile of tiles) this._drawTile(context, tile, view, true);
    }
    for (const group of groups) this._title(group, view);
    this._marks(view, seen);
    return isUnfinished;
  }

  /** @param {Camera} view @param {number} wholeScale @returns {boolean} whether some of it is missing */
  _drawPicture(view, wholeScale) {
    const isNearer = view.scale > NEARER * wholeScale;
    const wanted = this._pictureScale(isNearer ? NEARER * NEARER * wholeScale : wholeScale);
    const picture = this._pictures.get(wanted) ?? this._newPicture(wanted);
    this._pictures.set(wanted, picture);
    this._paint(picture);
    const isUnfinished = picture.waiting.length > 0;
    // Until it is complete, another one serves.
    const other = [...this._pictures.values()].find((each) => !each.waiting.length);
    const { canvas, scale } = isUnfinished && other ? other : picture;
    const factor = view.scale / scale;
    this.context.imageSmoothingEnabled = factor < 1;
    this.context.drawImage(
      canvas,
      -view.x * view.scale,
      -view.y * view.scale,
      canvas.width * factor,
      canvas.height * factor,
    );
    return isUnfinished;
  }

  /** @param {number} wanted @returns {number} a scale at which the picture is not too large */
  _pictureScale(wanted) {
    const { width, height } = this.layout;
    return Math.min(wanted, Math.sqrt(PICTURE_PIXELS_MAX / Math.max(1, width * height)));
  }

  /** @param {number} scale @returns {Picture} */
  _newPicture(scale) {
    const { width, height } = this.layout;
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.ceil(width * scale));
    canvas.height = Math.max(1, Math.ceil(height * scale));
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const view = { x: 0, y: 0, scale };
    for (const group of this.layout.groups) this._box(context, group, view, this.colours.raised, this.colours.line);
    return { canvas, context, scale, waiting: [...this.layout.tiles].reverse() };
  }

  /** @param {Picture} picture */
  _paint({ context, scale, waiting }) {
    const end = performance.now() + PAINT_MS;
    const view = { x: 0, y: 0, scale };
    for (let n = 1; waiting.length; n++) {
      this._drawTile(context, /** @type {Tile} */ (waiting.pop()), view, false);
      if (n % 32 === 0 && performance.now() > end) return;
    }
  }

  /** Computes the look of devices, after a change only. @param {Tile} tile */
  _refreshLook(tile) {
    if (tile.look >= 0) return;
    tile.look = 0;
    const { matches, colorOf } = this.style;
    for (const cell of tile.cells) {
      cell.isDimmed = matches !== null && !matches(cell.device);
      cell.color = colorOf ? colorOf(cell.device) : "";
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context @param {Tile} tile @param {Camera} view
   * @param {boolean} isNear whether there is room for text
   */
  _drawTile(context, tile, view, isNear) {
    const { colours, ratio } = this;
    this._refreshLook(tile);
    const place = { x: (tile.x - view.x) * view.scale, y: (tile.y - view.y) * view.scale };
    const isSmall = view.scale < DEVICE_PIXELS_MIN * ratio && tile.cells.length > 0;
    const [width, height] = [tile.width * view.scale, tile.height * view.scale];
    // Around a few pixels, a line would be most of what you see.
    const line = isSmall && height < BORDER_PIXELS_MIN * ratio ? 0 : 1;
    if (line) this._box(context, tile, view, colours.back, colours.line);
    if (isSmall) {
      const box = { x: place.x + line, y: place.y + line, width: width - 2 * line, height: height - 2 * line };
      paintShares(context, tile.cells, box, colours);
      return;
    }
    if (isNear) this._label(context, tile, place, view.scale);
    const inTile = { x: -place.x / view.scale, y: -place.y / view.scale, scale: view.scale };
    for (const strip of tile.strips) this._drawStrip(context, strip, inTile, isNear);
    for (const frame of tile.frames) this._drawFrame(context, frame, inTile, isNear);
    for (const cell of tile.cells) if (!cell.frame) this._drawCell(context, cell, inTile, isNear);
  }

  /** The name of a node. */
  _label(
    /** @type {CanvasRenderingContext2D} */ context,
    /** @type {Tile} */ tile,
    /** @type {{x: number, y: number}} */ place,
    /** @type {number} */ scale,
  ) {
    const size = Math.min(0.6 * scale, Math.max(13 * this.ratio, Math.min(0.35 * scale, 20 * this.ratio)));
    if (size < 6 * this.ratio) return;
    context.font = `${size}px ${this._font}`;
    context.fillStyle = this.colours.text;
    context.textBaseline = "middle";
    const room = (tile.width - 0.5) * scale;
    context.fillText(shortened(context, tile.node || NO_NODE, room), place.x + 0.3 * scale, place.y + 0.45 * scale);
  }

  /** @param {CanvasRenderingContext2D} context @param {import("./layout.js").Strip} strip @param {Camera} view */
  _drawStrip(context, strip, view, /** @type {boolean} */ isNear) {
    const { matches } = this.style;
    const box = inPixels(strip, view);
    const cells = strip.devices.map((device) => ({ device, isDimmed: matches !== null && !matches(device), color: "" }));
    const height = Math.max(1, box.height * 0.3);
    const width = box.width - 0.1 * view.scale;
    paintShares(context, cells, { x: box.x, y: box.y + box.height - height, width, height }, this.colours);
    const size = Math.min(box.height * 0.6, 14 * this.ratio);
    if (!isNear || size < 8 * this.ratio) return;
    context.font = `${size}px ${this._font}`;
    context.fillStyle = this.colours.quiet;
    context.textBaseline = "top";
    const text = `${strip.devices.length} × ${strip.driver}`;
    context.fillText(shortened(context, text, width, "start"), box.x, box.y);
  }

  /** @param {CanvasRenderingContext2D} context @param {import("./layout.js").Frame} frame @param {Camera} view */
  _drawFrame(context, frame, view, /** @type {boolean} */ isNear) {
    const box = inside(frame, view);
    if (!isNear || !this._hasLanes(frame, view)) {
      const textOf = (/** @type {Cell} */ cell) => this._linesOfSlice(cell);
      const { colours, ratio } = this;
      paintFrame(context, frame, box, { colours, ratio, font: this._font, textOf: isNear ? textOf : null });
      return;
    }
    const { colours, ratio } = this;
    const around = { x: frame.x + 0.01, y: frame.y + 0.01, width: frame.width - 0.02, height: frame.height - 0.02 };
    this._box(context, around, view, colours.raised, colours.quiet);
    const size = Math.min(14 * ratio, box.height * 0.13);
    context.font = `600 ${size}px ${this._font}`;
    context.fillStyle = colours.text;
    context.textBaseline = "top";
    const name = frame.name.replace(/-counter-?set$/, "");
    context.fillText(shortened(context, name, box.width), box.x, box.y - 0.03 * box.height);
    for (const cell of frame.cells) this._drawSlice(context, cell, view);
  }

  /** Whether a device is so large that it has text. @param {Box} box @param {Camera} view */
  _isCard(box, view) {
    return box.height * view.scale >= CARD_PIXELS * this.ratio;
  }

  /** Whether a physical device shows all its partitions. @param {Box} frame @param {Camera} camera */
  showsLanes(frame, camera) {
    return this._hasLanes(frame, { ...camera, scale: camera.scale * this.ratio });
  }

  /** @param {Box} frame @param {Camera} view */
  _hasLanes(frame, view) {
    return frame.height * view.scale >= LANES_PIXELS * this.ratio;
  }

  /** The profile is the last word of the model. @param {Cell} cell */
  _linesOfSlice({ device }) {
    const [, , ...more] = this.style.linesOf(device);
    return [device.model.split(" ").pop() || device.name, ...more];
  }

  /** @param {CanvasRenderingContext2D} context @param {Cell} cell @param {Camera} view */
  _drawSlice(context, cell, view) {
    const whole = inPixels(cell, view);
    const line = this.ratio;
    const box = { x: whole.x + line, y: whole.y + line, width: whole.width - 2 * line, height: whole.height - 2 * line };
    if (box.height < 15 * this.ratio || box.width < 20 * this.ratio) {
      paintShares(context, [cell], box, this.colours);
      return;
    }
    const lines = this._linesOfSlice(cell);
    paintCard(context, cell, box, { colours: this.colours, ratio: this.ratio, font: this._font, lines });
  }

  /** @param {CanvasRenderingContext2D} context @param {Cell} cell @param {Camera} view */
  _drawCell(context, cell, view, /** @type {boolean} */ isNear) {
    const box = inside(cell, view);
    if (isNear && this._isCard(cell, view)) {
      const lines = this.style.linesOf(cell.device);
      paintCard(context, cell, box, { colours: this.colours, ratio: this.ratio, font: this._font, lines });
      return;
    }
    const size = Math.min(box.width, box.height);
    this.sprites.paint(context, cell, { x: box.x + (box.width - size) / 2, y: box.y, size });
  }

  /** @param {import("./layout.js").Group} group @param {Camera} view */
  _title(group, view) {
    if (!group.name) return;
    const { context, colours, ratio } = this;
    const room = group.width * view.scale - 8 * ratio;
    if (room < 36 * ratio) return;
    const size = Math.max(12 * ratio, Math.min(0.6 * group.title * view.scale, 22 * ratio));
    const [x, y] = [(group.x - view.x) * view.scale, (group.y - view.y) * view.scale];
    const height = Math.max(group.title * view.scale, size * 1.5);
    context.font = `600 ${size}px ${this._font}`;
    const nodes = group.tiles.length === 1 ? "1 node" : `${group.tiles.length.toLocaleString("en")} nodes`;
    const whole = `${group.name} · ${nodes} · ${group.devices.toLocaleString("en")} devices`;
    const text = context.measureText(whole).width <= room ? whole : shortened(context, group.name, room);
    if (height > group.title * view.scale) {
      // It covers some devices then, and must be read before them.
      context.fillStyle = colours.raised;
      context.globalAlpha = 0.9;
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
    for (const tile of this.highlightedNodes.size ? this.layout.tiles : []) {
      if (this.highlightedNodes.has(tile.node) && meets(tile, seen)) {
        this._ring(tile, view, colours.accent, 2 * ratio);
      }
    }
    for (const id of this.members) this._ringCell(id, view, colours.accent, 2.5 * ratio);
    for (const id of this.highlighted) this._ringCell(id, view, colours.unhealthy, 3 * ratio);
    if (this.pointed) this._ringCell(this.pointed, view, colours.quiet, 1.5 * ratio);
    if (this.selected) this._ringCell(this.selected, view, colours.text, 2.5 * ratio);
  }

  /** @param {string} id @param {Camera} view @param {string} colour @param {number} line */
  _ringCell(id, view, colour, line) {
    const place = placeOf(this.layout, id);
    if (place) this._ring(this._whole(id, view) ?? place, view, colour, line);
  }

  /**
   * The slice of a partition on its physical device, while its lane is not shown.
   * @param {string} id @param {Camera} view @returns {Box | null}
   */
  _whole(id, view) {
    const { cell, tile } = /** @type {{cell: Cell, tile: Tile}} */ (this.layout.cells.get(id));
    const { frame } = cell;
    if (!frame || this._hasLanes(frame, view)) return null;
    const { start, width, of } = cell.device.placement ?? { start: -1, width: 1, of: 1 };
    const place = { x: tile.x + frame.x, y: tile.y + frame.y, width: frame.width, height: frame.height };
    return start < 0 ? place : { ...place, x: place.x + (start / of) * frame.width, width: (width / of) * frame.width };
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

  /**
   * @param {CanvasRenderingContext2D} context @param {Box} box @param {Camera} view
   * @param {string} fill @param {string} stroke
   */
  _box(context, box, view, fill, stroke) {
    const { x, y, width, height } = inPixels(box, view);
    if (view.scale < 8 * this.ratio) {
      context.fillStyle = stroke;
      context.fillRect(x, y, width, height);
      context.fillStyle = fill;
      context.fillRect(x + 1, y + 1, width - 2, height - 2);
      return;
    }
    context.beginPath();
    context.roundRect(x, y, width, height, Math.min(6 * this.ratio, 0.2 * view.scale));
    context.fillStyle = fill;
    context.fill();
    context.strokeStyle = stroke;
    context.lineWidth = this.ratio;
    context.stroke();
  }
}

/** @param {Box} box @param {Camera} view @returns {Box} */
function inPixels(box, view) {
  return {
    x: (box.x - view.x) * view.scale,
    y: (box.y - view.y) * view.scale,
    width: box.width * view.scale,
    height: box.height * view.scale,
  };
}

/** Where a device is in pixels. @param {Box} cell @param {Camera} view @returns {Box} */
function inside(cell, view) {
  const margin = ((1 - INSIDE) * view.scale) / 2;
  const { x, y, width, height } = inPixels(cell, view);
  const box = { x: x + margin, y: y + margin, width: width - 2 * margin, height: height - 2 * margin };
  // On whole pixels lines are sharp; of few pixels the sizes would differ.
  if (box.height < 6) return box;
  return { x: Math.round(box.x), y: Math.round(box.y), width: Math.round(box.width), height: Math.round(box.height) };
}

/** @param {Box} a @param {Box} b */
function meets(a, b) {
  return (
    a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height
  );
}
