// What the address says about the look of the map: filters, which dim the devices that do not match,
// and colors by the gang, namespace or queue that has a device.

/**
 * @typedef {import("./fleet.js").Device} Device
 * @typedef {import("./fleet.js").Fleet} Fleet
 * @typedef {import("./owners.js").Owners} Owners
 * @typedef {{
 *   matches: ((device: Device) => boolean) | null,
 *   colorOf: ((device: Device) => string) | null,
 *   linesOf: (device: Device) => string[],
 * }} Style `colorOf` returns "" for a device that no owner colors
 */

/** By what the map can color devices, other than by their state. */
export const COLORS = ["gang", "namespace", "queue"];
// Green is last: it is the color of free devices.
const HUES = [212, 28, 325, 265, 48, 185, 2, 95, 240, 150];
const OTHERS = "others";
/** The value of devices whose owners have none. */
export const NONE = "\n";
/** Of others, and of devices without a value; in a light and in a dark theme. */
const GRAY = [
  ["hsl(0 0% 38%)", "hsl(0 0% 66%)"],
  ["hsl(215 18% 55%)", "hsl(215 14% 52%)"],
];

/**
 * Returns the values of a device by which filters and colors work.
 * @param {string} name @param {Device} device @param {Fleet} fleet @param {Owners} owners
 * @returns {string[]}
 */
export function valuesOf(name, device, fleet, owners) {
  if (name === "model") return [device.model || device.driver];
  if (name === "state") return [device.state];
  if (name === "pool") return [`${device.driver}/${device.pool}`];
  if (name === "zone") return [fleet.nodes.get(device.node)?.zone ?? ""];
  const of = owners.of(device.id);
  if (name === "namespace") return of.map((each) => each.namespace);
  if (name === "gang") return of.flatMap((each) => each.gangs);
  if (name === "queue") return of.flatMap((each) => each.queues);
  return [];
}

/**
 * Returns whether a device matches every filter; null without filters.
 * @param {{[name: string]: string[]}} filters @param {Fleet} fleet @param {Owners} owners
 * @returns {((device: Device) => boolean) | null}
 */
export function matcher(filters, fleet, owners) {
  const wanted = Object.entries(filters);
  if (!wanted.length) return null;
  return (device) =>
    wanted.every(([name, values]) => {
      const has = valuesOf(name, device, fleet, owners);
      return values.some((each) => has.includes(each));
    });
}

/** The colors of values: the most frequent ones have their own, and keep them. */
export class Coloring {
  constructor() {
    this.name = "";
    /** @type {Map<string, number>} */
    this._places = new Map();
    /** @type {Map<string, number>} */
    this.counts = new Map();
    /** Devices of claims without a value. */
    this.without = 0;
  }

  /**
   * Counts the values anew.
   * @param {string} name @param {Fleet} fleet @param {Owners} owners
   */
  refresh(name, fleet, owners) {
    if (name !== this.name) this._places.clear();
    this.name = name;
    const counts = new Map();
    this.without = 0;
    for (const device of fleet.devices.values()) {
      const values = valuesOf(name, device, fleet, owners);
      for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
      if (!values.length && owners.has(device.id)) this.without++;
    }
    this.counts = new Map([...counts].sort(([a, n], [b, m]) => m - n || a.localeCompare(b)));
    for (const value of this._places.keys()) if (!counts.has(value)) this._places.delete(value);
    for (const value of this.counts.keys()) {
      if (this._places.has(value) || this._places.size === HUES.length) continue;
      const used = new Set(this._places.values());
      this._places.set(value, HUES.findIndex((_, place) => !used.has(place)));
    }
  }

  /** @param {string} value @param {boolean} isDark */
  colorOf(value, isDark) {
    const place = this._places.get(value);
    if (place === undefined) return GRAY[value === NONE ? 1 : 0][isDark ? 1 : 0];
    return `hsl(${HUES[place]} 70% ${isDark ? 66 : 38}%)`;
  }

  /**
   * Returns the values with their own colors, and the number of devices of all others.
   * @returns {[string, number][]}
   */
  legend() {
    /** @type {[string, number][]} */
    const own = [...this.counts].filter(([value]) => this._places.has(value));
    const rest = [...this.counts].filter(([value]) => !this._places.has(value));
    const more = rest.reduce((sum, [, count]) => sum + count, 0);
    return more ? [...own, [OTHERS, more]] : own;
  }
}

/** Whether the page is dark, by the brightness of its background. @param {string} back a CSS color */
export function isDark(back) {
  const [red = 255, green = 255, blue = 255] = (back.match(/[\d.]+/g) ?? []).map(Number);
  return red + green + blue < 384;
}

/** What a device says of itself when it is near. @param {Device} device @param {Owners} owners */
export function linesOf(device, owners) {
  const of = owners.of(device.id);
  const [first] = of;
  const owner = first ? (first.pods[0] ?? first.claim) : "";
  const more = of.length > 1 ? ` and ${of.length - 1} more` : "";
  const level = device.level >= 0 ? `${device.level}% used` : "";
  return [
    device.name,
    // A card has room for one or two words: the name of the vendor is the least informative.
    device.model.replace(/^(NVIDIA|AMD|Intel|Google|AWS) /, ""),
    owner && `${owner}${more}`,
    [gibibytes(device.memory), level].filter(Boolean).join(", "),
  ].filter(Boolean);
}

/** @param {string} quantity */
function gibibytes(quantity) {
  const [, mebibytes] = quantity.match(/^(\d+)Mi$/) ?? [];
  return Number(mebibytes) >= 1024 ? `${(Number(mebibytes) / 1024).toFixed(1)}Gi` : quantity;
}
