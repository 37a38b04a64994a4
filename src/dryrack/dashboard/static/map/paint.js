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

/** @typedef {{[name: string]: string}} Palette */

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

/**
 * One device, in pixels.
 * @param {CanvasRenderingContext2D} context
 * @param {{state: string, level: number}} device
 * @param {{x: number, y: number, size: number}} box
 * @param {Palette} colours
 */
export function paintDevice(context, device, box, colours) {
  const { x, y, size } = box;
  const colour = colours[device.state] ?? colours.quiet;
  if (size < MARK_PIXELS_MIN) {
    context.globalAlpha = device.state === "free" ? 0.55 : 1;
    context.fillStyle = colour;
    context.fillRect(x, y, size, size);
    context.globalAlpha = 1;
    return;
  }
  const line = Math.max(1, size / 14);
  context.fillStyle = context.strokeStyle = colour;
  context.lineWidth = line;
  const isSolid = ["allocated", "prepared", "conflict", "unhealthy"].includes(device.state);
  context.globalAlpha = isSolid ? 1 : 0.16;
  outline(context, x, y, size);
  context.fill();
  context.globalAlpha = 1;
  if (device.level >= 0) paintLevel(context, device.level, box);
  if (!isSolid) {
    if (DASHED.has(device.state)) context.setLineDash([size / 6, size / 8]);
    outline(context, x + line / 2, y + line / 2, size - line);
    context.stroke();
    context.setLineDash([]);
  }
  MARKS[device.state]?.(context, box, colours);
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
  context.globalAlpha = 0.75;
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

  /** @param {CanvasRenderingContext2D} context @param {{state: string, level: number}} device */
  paint(context, device, /** @type {{x: number, y: number, size: number}} */ box) {
    if (box.size < MARK_PIXELS_MIN || box.size > 80) {
      paintDevice(context, device, box, this.colours);
      return;
    }
    // Levels in steps that an eye tells apart.
    const level = device.level < 0 ? -1 : Math.round(device.level / 5) * 5;
    const pixels = Math.round(box.size);
    const key = `${device.state} ${level} ${pixels}`;
    let sprite = this._kept.get(key);
    if (!sprite) {
      if (this._kept.size > 500) this._kept.clear();
      this._kept.set(key, (sprite = this._made({ state: device.state, level }, pixels)));
    }
    context.drawImage(sprite, box.x, box.y, box.size, box.size);
  }

  /** @param {{state: string, level: number}} device @param {number} pixels */
  _made(device, pixels) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = pixels;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    paintDevice(context, device, { x: 0, y: 0, size: pixels }, this.colours);
    return canvas;
  }
}

/** A picture of a state beside its name. @param {string} state @param {number} [level] */
export function swatch(state, level = state === "shared" ? 45 : -1) {
  const canvas = document.createElement("canvas");
  const [size, ratio] = [14, window.devicePixelRatio || 1];
  canvas.className = "swatch";
  canvas.setAttribute("aria-hidden", "true");
  canvas.width = canvas.height = size * ratio;
  const context = canvas.getContext("2d");
  if (context) {
    context.scale(ratio, ratio);
    paintDevice(context, { state, level }, { x: 0, y: 0, size }, palette());
  }
  return canvas;
}
