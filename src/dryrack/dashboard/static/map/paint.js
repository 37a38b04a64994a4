// The look of devices: a color and a mark for each state, so that readers need only one of them.

/** The meaning of each state, in the order of the API, for the legend and for screen readers. */
export const MEANINGS = {
  free: "free: available to claims",
  shared: "shared: allocated in part, with capacity left",
  allocated: "allocated to a claim",
  prepared: "prepared: allocated to a claim whose pod runs",
  conflict: "conflict: more of it is allocated than it has",
  blocked: "blocked: other devices use the counters that it needs",
  tainted: "tainted: available only to claims that tolerate the taint",
  unhealthy: "unhealthy: a taint or a kubelet reports that it does not work",
  cordoned: "cordoned: its node takes no new pods",
  "not ready": "not ready: its node is not ready",
  "no node": "no node: the node of its ResourceSlice does not exist",
  incomplete: "incomplete: ResourceSlices of its pool are missing",
  withdrawn: "withdrawn: allocated, but no longer published",
};

/** The node of a device that is allocated but no longer published. */
export const NO_NODE = "no node";

/** The name of a state in style sheets. @param {string} state */
export function classOf(state) {
  return state.replace(" ", "-");
}

/**
 * @typedef {{[name: string]: string}} Palette
 * @typedef {import("./fleet.js").Device} Device
 * @typedef {{x: number, y: number, width: number, height: number}} Rectangle
 */

/** @type {Palette | null} */
let known = null;

/** The colours of the theme as the canvas needs them, read once for all who ask together. @returns {Palette} */
export function palette() {
  if (!known) {
    known = readPalette();
    queueMicrotask(() => (known = null));
  }
  return known;
}

/** @returns {Palette} */
function readPalette() {
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  /** @type {Palette} */
  const found = {};
  const names = ["back", "raised", "line", "text", "quiet", "accent", ...Object.keys(MEANINGS)];
  for (const name of names) {
    probe.style.color = `var(--${classOf(name)})`;
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

/** States in which a device could be free, but for its node or its pool. */
const DASHED = new Set(["cordoned", "not ready", "no node", "incomplete"]);

/** Below this a mark cannot be seen. */
const MARK_PIXELS_MIN = 8;

/** Opacity of a device that does not match the filters. */
const DIMMED = 0.13;
/** Opacity of the inside of a device that no claim has. */
const INSIDE = 0.16;
const SOLID = new Set(["allocated", "prepared", "conflict", "unhealthy"]);
/** States of a partition that takes its part of the physical device. */
const TAKEN = new Set(["allocated", "prepared", "shared", "conflict", "withdrawn"]);
/** Whether a partition takes its part of the physical device. @param {Device} device */
export function isTaken(device) {
  return TAKEN.has(device.state);
}

/** States of a physical device, if none of its partitions is free; the first counts. */
const WHOLE = ["unhealthy", "not ready", "no node", "cordoned", "tainted", "incomplete"];

/**
 * Paints one device.
 * @param {CanvasRenderingContext2D} context
 * @param {{state: string, level: number}} device
 * @param {{x: number, y: number, size: number}} box
 * @param {Palette} colours
 * @param {string} [color] instead of the color of the state
 */
export function paintDevice(context, device, box, colours, color = "") {
  const { x, y, size } = box;
  const colour = color || (colours[device.state] ?? colours.quiet);
  if (size < MARK_PIXELS_MIN) {
    const alpha = context.globalAlpha;
    context.globalAlpha = alpha * (device.state === "free" ? 0.55 : 1);
    context.fillStyle = colour;
    context.fillRect(x, y, size, size);
    context.globalAlpha = alpha;
    return;
  }
  const line = Math.max(1, size / 14);
  context.fillStyle = context.strokeStyle = colour;
  context.lineWidth = line;
  const isSolid = SOLID.has(device.state);
  const alpha = context.globalAlpha;
  context.globalAlpha = isSolid ? alpha : alpha * INSIDE;
  outline(context, x, y, size);
  context.fill();
  context.globalAlpha = alpha;
  if (device.level >= 0) paintLevel(context, device.level, box);
  if (!isSolid) {
    if (DASHED.has(device.state)) context.setLineDash([size / 6, size / 8]);
    outline(context, x + line / 2, y + line / 2, size - line);
    context.stroke();
    context.setLineDash([]);
  }
  MARKS[device.state]?.(context, box, colours);
}

/**
 * Paints a device that is near: its state, and lines of text.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./layout.js").Cell} cell
 * @param {Rectangle} box
 * @param {{colours: Palette, ratio: number, font: string, lines: string[]}} look
 */
export function paintCard(context, cell, box, { colours, ratio, font, lines }) {
  const { device } = cell;
  const colour = cell.color || (colours[device.state] ?? colours.quiet);
  const size = 12 * ratio;
  const step = size * 1.35;
  const margin = Math.min(7 * ratio, box.height / 6);
  const alpha = cell.isDimmed ? 2 * DIMMED : 1;
  context.globalAlpha = alpha;
  fillBox(context, box, colours.back, 1);
  fillBox(context, box, colour, alpha * (SOLID.has(device.state) ? 0.3 : 0.12));
  if (device.level >= 0) {
    const height = (box.height * Math.min(100, device.level)) / 100;
    fillBox(context, { ...box, y: box.y + box.height - height, height }, colour, alpha * 0.3);
  }
  context.globalAlpha = alpha;
  context.strokeStyle = colour;
  const isTall = box.height > 2.2 * step;
  context.lineWidth = (isTall ? 2 : 1) * ratio;
  if (DASHED.has(device.state)) context.setLineDash([6 * ratio, 5 * ratio]);
  context.strokeRect(box.x, box.y, box.width, box.height);
  context.setLineDash([]);
  context.font = `${size}px ${font}`;
  context.fillStyle = colours.text;
  context.textBaseline = "top";
  const mark = isTall ? step - 2 * ratio : Math.min(12 * ratio, box.height - 2 * margin);
  const hasMark = box.width > 3 * mark && mark > 4 * ratio && (isTall || MARKS[device.state]);
  if (hasMark) {
    const place = { x: box.x + box.width - mark - margin, y: box.y + margin, size: mark };
    paintDevice(context, device, place, colours, cell.color);
  }
  context.fillStyle = colours.text;
  context.textBaseline = "top";
  const count = Math.max(1, Math.floor((box.height - 2 * margin + 0.35 * size) / step));
  const shown = isTall ? lines.slice(0, count) : [lines.join(" · ")];
  shown.forEach((line, n) => {
    // Only the first line is beside the mark.
    const room = box.width - 2 * margin - (hasMark && n === 0 ? mark + margin : 0);
    const y = isTall ? box.y + margin + n * step : box.y + (box.height - size) / 2;
    context.fillText(shortened(context, line, room, n < 2 ? "start" : "end"), box.x + margin, y);
  });
  context.globalAlpha = 1;
}

/**
 * Paints a physical device with its slices: the partitions that claims have, at their places and in
 * their widths, and how much of the memory they take.
 * @param {CanvasRenderingContext2D} context
 * @param {import("./layout.js").Frame} frame
 * @param {Rectangle} box
 * @param {{colours: Palette, ratio: number, font: string,
 *   textOf: ((cell: import("./layout.js").Cell) => string[]) | null}} look
 */
export function paintFrame(context, frame, box, { colours, ratio, font, textOf }) {
  const states = new Set(frame.cells.map(({ device }) => device.state));
  const taken = frame.cells.filter((each) => isTaken(each.device));
  const whole = states.has("free") ? "free" : (WHOLE.find((each) => states.has(each)) ?? taken[0]?.device.state ?? "blocked");
  const isDimmed = frame.cells.every((each) => each.isDimmed);
  const alpha = isDimmed ? DIMMED : 1;
  const isLarge = box.height >= MARK_PIXELS_MIN;
  const isSolid = whole === "unhealthy";
  const colour = (whole === taken[0]?.device.state && taken[0].color) || colours[whole];
  fillBox(context, box, colour, alpha * (isSolid ? 1 : isLarge ? INSIDE : 0.3));
  let cursor = 0;
  let memory = 0;
  for (const cell of taken) {
    const { start, width, of, memory: share } = cell.device.placement ?? { start: 0, width: 1, of: 1, memory: -1 };
    const from = start < 0 ? cursor : start / of;
    cursor = from + width / of;
    memory += Math.max(0, share);
    const line = isLarge && width < of ? 1 : 0;
    const slice = { ...box, x: box.x + from * box.width + line, width: (width / of) * box.width - line };
    fillBox(context, slice, cell.color || colours[cell.device.state], cell.isDimmed ? DIMMED : 1);
    if (textOf && slice.width >= 48 * ratio && slice.height >= 36 * ratio) {
      context.font = `${11 * ratio}px ${font}`;
      context.fillStyle = colours.back;
      context.textBaseline = "top";
      const lines = textOf(cell).slice(0, Math.floor((slice.height - 8 * ratio) / (14 * ratio)));
      lines.forEach((line, n) =>
        context.fillText(shortened(context, line, slice.width - 8 * ratio, n ? "end" : "start"), slice.x + 4 * ratio, slice.y + (4 + 14 * n) * ratio),
      );
    } else if (isLarge) sliceMark(context, cell.device, slice, colours);
  }
  if (!isLarge) return;
  context.globalAlpha = alpha;
  if (box.height >= 20 && memory > 0) {
    const height = Math.round(box.height / 8);
    const level = { x: box.x, y: box.y + box.height - height, height, width: box.width };
    fillBox(context, level, colours.back, alpha);
    fillBox(context, { ...level, width: (box.width * Math.min(100, memory)) / 100 }, colours.text, 0.75 * alpha);
  }
  // Slices in use are what the eye looks for.
  context.globalAlpha = alpha * (whole === "free" || whole === "blocked" ? 0.6 : 1);
  context.strokeStyle = colour;
  context.lineWidth = Math.max(1, box.height / 24);
  if (DASHED.has(whole)) context.setLineDash([box.height / 6, box.height / 8]);
  context.strokeRect(box.x + 0.5, box.y + 0.5, box.width - 1, box.height - 1);
  context.setLineDash([]);
  const size = Math.min(box.height, box.width);
  const middle = { x: box.x + (box.width - size) / 2, y: box.y + (box.height - size) / 2, size };
  context.fillStyle = context.strokeStyle = colour;
  if (WHOLE.includes(whole)) MARKS[whole]?.(context, middle, colours);
  context.globalAlpha = 1;
}

/** The mark of a slice, if it has room for one. */
function sliceMark(
  /** @type {CanvasRenderingContext2D} */ context,
  /** @type {Device} */ device,
  /** @type {Rectangle} */ box,
  /** @type {Palette} */ colours,
) {
  const size = Math.min(box.width, box.height) * 0.8;
  if (size < MARK_PIXELS_MIN || device.state === "allocated") return;
  const place = { x: box.x + (box.width - size) / 2, y: box.y + (box.height - size) / 2, size };
  MARKS[device.state]?.(context, place, colours);
}

/**
 * Paints the states of many devices as parts of a bar: those that match the filters, then the others.
 * @param {CanvasRenderingContext2D} context
 * @param {{device: Device, isDimmed: boolean, color: string}[]} cells
 * @param {Rectangle} box
 * @param {Palette} colours
 */
export function paintShares(context, cells, box, colours) {
  const [first] = cells;
  if (cells.every((each) => each.device.state === first.device.state && each.isDimmed === first.isDimmed && each.color === first.color)) {
    const { state } = first.device;
    fillBox(context, box, first.color || colours[state], (first.isDimmed ? DIMMED : 1) * (state === "free" ? 0.45 : 1));
    return;
  }
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { device, isDimmed, color } of cells) {
    const key = `${isDimmed ? 1 : 0}${device.state}\n${color}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const keys = counts.size > 1 ? [...counts.keys()].sort(byLook) : counts.keys();
  let x = box.x;
  for (const key of keys) {
    const [state, color] = key.slice(1).split("\n");
    const width = (box.width * (counts.get(key) ?? 0)) / cells.length;
    const alpha = (key[0] === "1" ? DIMMED : 1) * (state === "free" ? 0.45 : 1);
    fillBox(context, { ...box, x, width }, color || colours[state], alpha);
    x += width;
  }
}

const ORDER = Object.keys(MEANINGS).reverse();

/** @param {string} a @param {string} b */
function byLook(a, b) {
  const [one, other] = [a, b].map((each) => ORDER.indexOf(each.slice(1).split("\n")[0]));
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : one - other || (a < b ? -1 : 1);
}

/** @param {CanvasRenderingContext2D} context @param {Rectangle} box @param {string} fill @param {number} alpha */
function fillBox(context, box, fill, alpha) {
  context.globalAlpha = alpha;
  context.fillStyle = fill;
  context.fillRect(box.x, box.y, box.width, box.height);
  context.globalAlpha = 1;
}

/**
 * Returns the text, or as much of it as there is room for: its end, where node names differ, unless
 * the start matters.
 * @param {CanvasRenderingContext2D} context @param {string} text @param {number} room
 * @param {"start" | "end"} [keep]
 */
export function shortened(context, text, room, keep = "end") {
  const width = context.measureText(text).width;
  if (width <= room) return text;
  for (let letters = Math.floor((text.length * room) / width) - 1; letters >= 2; letters--) {
    const part = keep === "end" ? `…${text.slice(-letters)}` : `${text.slice(0, letters)}…`;
    if (context.measureText(part).width <= room) return part;
  }
  return "";
}

/** @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} size */
function outline(context, x, y, size) {
  context.beginPath();
  context.roundRect(x, y, size, size, size / 7);
}

/** How much is used, from the bottom up. */
function paintLevel(
  /** @type {CanvasRenderingContext2D} */ context,
  /** @type {number} */ level,
  /** @type {{x: number, y: number, size: number}} */ { x, y, size },
) {
  const height = (size * Math.min(100, level)) / 100;
  context.save();
  outline(context, x, y, size);
  context.clip();
  context.globalAlpha *= 0.75;
  context.fillRect(x, y + size - height, size, height);
  context.restore();
}

/**
 * @type {{[state: string]: (
 *   context: CanvasRenderingContext2D,
 *   box: {x: number, y: number, size: number},
 *   colours: Palette,
 * ) => void}}
 */
const MARKS = {
  prepared(context, { x, y, size }, colours) {
    context.fillStyle = colours.back;
    context.beginPath();
    context.moveTo(x + size * 0.37, y + size * 0.28);
    context.lineTo(x + size * 0.37, y + size * 0.72);
    context.lineTo(x + size * 0.74, y + size * 0.5);
    context.fill();
  },
  conflict(context, { x, y, size }, colours) {
    context.fillStyle = colours.back;
    context.fillRect(x + size * 0.44, y + size * 0.2, size * 0.12, size * 0.38);
    context.fillRect(x + size * 0.44, y + size * 0.68, size * 0.12, size * 0.12);
  },
  cordoned(context, { x, y, size }) {
    for (const at of [0.34, 0.54]) {
      context.fillRect(x + size * at, y + size * 0.28, size * 0.12, size * 0.44);
    }
  },
  "not ready"(context, { x, y, size }) {
    context.lineWidth = size / 9;
    context.beginPath();
    context.arc(x + size / 2, y + size / 2, size * 0.22, 0, 2 * Math.PI);
    context.stroke();
  },
  "no node"(context, { x, y, size }) {
    context.lineWidth = size / 9;
    stroke(context, x + size * 0.3, y + size * 0.5, x + size * 0.7, y + size * 0.5);
  },
  blocked(context, { x, y, size }) {
    context.fillRect(x + size * 0.22, y + size * 0.42, size * 0.56, size * 0.16);
  },
  tainted(context, { x, y, size }) {
    context.save();
    outline(context, x, y, size);
    context.clip();
    context.lineWidth = size / 8;
    for (let at = -0.5; at < 1; at += 0.38) {
      stroke(context, x + at * size, y + size, x + (at + 1) * size, y);
    }
    context.restore();
  },
  unhealthy(context, { x, y, size }, colours) {
    context.strokeStyle = colours.back;
    context.lineWidth = size / 7;
    const [a, b] = [0.27 * size, 0.73 * size];
    stroke(context, x + a, y + a, x + b, y + b);
    stroke(context, x + a, y + b, x + b, y + a);
  },
  incomplete(context, { x, y, size }) {
    for (const at of [0.27, 0.5, 0.73]) {
      context.fillRect(x + size * (at - 0.06), y + size * 0.44, size * 0.12, size * 0.12);
    }
  },
  withdrawn(context, { x, y, size }) {
    context.lineWidth = size / 9;
    stroke(context, x + size * 0.1, y + size * 0.1, x + size * 0.9, y + size * 0.9);
  },
};

/**
 * @param {CanvasRenderingContext2D} context
 * @param {number} x @param {number} y @param {number} toX @param {number} toY
 */
function stroke(context, x, y, toX, toY) {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(toX, toY);
  context.stroke();
}

/** Pictures of devices at one size: painting one from a picture is many times faster. */
export class Sprites {
  /** @param {Palette} colours */
  constructor(colours) {
    this.colours = colours;
    /** @type {Map<string, HTMLCanvasElement>} */
    this._kept = new Map();
  }

  /**
   * @param {CanvasRenderingContext2D} context @param {import("./layout.js").Cell} cell
   * @param {{x: number, y: number, size: number}} box
   */
  paint(context, { device, isDimmed, color }, box) {
    context.globalAlpha = isDimmed ? DIMMED : 1;
    if (box.size < MARK_PIXELS_MIN || box.size > 80) {
      paintDevice(context, device, box, this.colours, color);
    } else {
      context.drawImage(this._sprite(device, color, Math.round(box.size)), box.x, box.y, box.size, box.size);
    }
    context.globalAlpha = 1;
  }

  /** @param {{state: string, level: number}} device @param {string} color @param {number} pixels */
  _sprite(device, color, pixels) {
    // Levels in steps that an eye tells apart.
    const level = device.level < 0 ? -1 : Math.round(device.level / 5) * 5;
    const key = `${device.state} ${level} ${pixels} ${color}`;
    let sprite = this._kept.get(key);
    if (!sprite) {
      if (this._kept.size > 500) this._kept.clear();
      sprite = document.createElement("canvas");
      sprite.width = sprite.height = pixels;
      const context = /** @type {CanvasRenderingContext2D} */ (sprite.getContext("2d"));
      const box = { x: 0, y: 0, size: pixels };
      paintDevice(context, { state: device.state, level }, box, this.colours, color);
      this._kept.set(key, sprite);
    }
    return sprite;
  }
}

/**
 * A picture of a state beside its name, possibly in the color of an owner.
 * @param {string} state @param {number} [level] @param {string} [color]
 */
export function swatch(state, level = state === "shared" ? 45 : -1, color = "") {
  const canvas = document.createElement("canvas");
  const [size, ratio] = [14, window.devicePixelRatio || 1];
  canvas.className = "swatch";
  canvas.setAttribute("aria-hidden", "true");
  canvas.width = canvas.height = size * ratio;
  const context = canvas.getContext("2d");
  if (context) {
    context.scale(ratio, ratio);
    paintDevice(context, { state, level }, { x: 0, y: 0, size }, palette(), color);
  }
  return canvas;
}
