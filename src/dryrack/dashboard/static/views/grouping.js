// By what the map is grouped: what is known of every device, or any attribute, which is asked for.

import { get } from "../api.js";
import { fill, h } from "../dom.js";

const ATTRIBUTE = "attribute:";
/** What people group by first, where devices have it: the ends of names. */
const FIRST = ["numaNode", "numa", "nvlink", "nvlinkDomain", "cliqueID", "pcieRoot"];

/**
 * @typedef {import("../map/fleet.js").Fleet} Fleet
 * @typedef {(device: import("../map/fleet.js").Device) => string} GroupOf
 * @typedef {{groupOf: GroupOf, isOfNode: boolean}} Grouping `isOfNode` if all devices of a node are
 *   in the same group
 */

/** What is the same for all devices of a node. */
const OF_NODE = ["nothing", "zone", "rack", "instance type"];

/** @type {{[name: string]: (fleet: () => Fleet | null) => GroupOf}} */
const KNOWN = {
  nothing: () => () => "",
  zone: (fleet) => (device) => fleet()?.nodes.get(device.node)?.zone || "no zone",
  rack: (fleet) => (device) => fleet()?.nodes.get(device.node)?.rack || "no rack",
  "instance type": (fleet) => (device) => fleet()?.nodes.get(device.node)?.instanceType || "no type",
  driver: () => (device) => device.driver,
  model: () => (device) => device.model || device.driver,
  pool: () => (device) => `${device.driver}/${device.pool}`,
  state: () => (device) => device.state,
};

/** Whether it is an attribute, whose values have to be asked for. @param {string} name */
export function isAsked(name) {
  return name.startsWith(ATTRIBUTE);
}

/**
 * Returns how devices are grouped by something that is known of every device.
 * @param {() => Fleet | null} fleet @param {string} name @returns {Grouping}
 */
export function knownGrouping(fleet, name) {
  const known = KNOWN[name] ? name : "nothing";
  return { groupOf: KNOWN[known](fleet), isOfNode: OF_NODE.includes(known) };
}

/**
 * Reads the values of an attribute; returns how devices are grouped by them.
 * @param {string} name @returns {Promise<Grouping>}
 */
export async function attributeGrouping(name) {
  const attribute = name.slice(ATTRIBUTE.length);
  const answer = await get(`fleet?attribute=${encodeURIComponent(attribute)}`);
  const values = valuesOf(answer, attribute);
  const none = `no ${short(attribute)}`;
  /** @type {GroupOf} */
  const groupOf = (device) => {
    const value = values.get(device.id);
    return value === undefined ? none : `${short(attribute)} ${value}`;
  };
  return { groupOf, isOfNode: false };
}

/** @param {any} answer @param {string} attribute @returns {Map<string, string>} */
function valuesOf(answer, attribute) {
  const { pools, devices, names } = answer;
  const { values, column } = answer.attributes[attribute];
  const found = new Map();
  for (let n = 0; n < column.length; n++) {
    if (column[n] < 0) continue;
    const pool = devices.pool[n];
    const id = `${pools.driver[pool]}/${pools.name[pool]}/${names[devices.name[n]]}`;
    found.set(id, values[column[n]]);
  }
  return found;
}

/** @param {string} attribute */
function short(attribute) {
  return attribute.slice(attribute.lastIndexOf("/") + 1);
}

/** The field in which one is chosen; attributes come when they are known. */
export class GroupingField {
  /** @param {(name: string) => void} chosen */
  constructor(chosen) {
    this._wanted = "nothing";
    this.attributes = h("optgroup", { label: "Attribute" });
    this.select = h(
      "select",
      { onchange: () => chosen(this.select.value) },
      Object.keys(KNOWN).map((each) => h("option", { value: each }, each)),
      this.attributes,
    );
    this.element = h("label", { class: "grouping" }, "Group by ", this.select);
  }

  /** Asks which attributes there are. */
  async load() {
    const { attributes } = await get("attributes").catch(() => ({ attributes: [] }));
    // An attribute that every device has another value of makes no groups.
    const useful = attributes.filter((/** @type {any} */ each) => each.distinct <= Math.max(1, each.devices / 2));
    useful.sort((/** @type {any} */ a, /** @type {any} */ b) => rank(a.name) - rank(b.name) || a.name.localeCompare(b.name));
    fill(
      this.attributes,
      useful.map((/** @type {any} */ each) => h("option", { value: ATTRIBUTE + each.name }, `${each.name} (${each.distinct})`)),
    );
    this.show(this._wanted);
  }

  /** @param {string} name */
  show(name) {
    this._wanted = name;
    this.select.value = name;
    if (this.select.value !== name) this.select.value = "nothing";
  }
}

/** @param {string} name */
function rank(name) {
  const place = FIRST.findIndex((each) => short(name).toLowerCase() === each.toLowerCase());
  return place < 0 ? FIRST.length : place;
}
