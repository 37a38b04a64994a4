// The fleet as it was read, and what updates change in it.

/**
 * @typedef {{
 *   id: string, driver: string, pool: string, name: string, node: string, model: string,
 *   state: string, level: number, counterSet: string, placement: Placement | null, memory: string,
 * }} Device
 * @typedef {{start: number, width: number, of: number, memory: number}} Placement the part of a
 *   physical device that a partition takes; -1 for what its counters do not tell
 * @typedef {{name: string, zone: string, rack: string, instanceType: string,
 *   ready: boolean | null, cordoned: boolean | null}} FleetNode
 */

/** @param {{driver: string, pool: string}} pool */
function keyOf(pool) {
  return `${pool.driver}/${pool.pool}`;
}

/** What decides where a device is on the map. @param {Device} device */
function placeOf(device) {
  const { name, node, model, counterSet, placement } = device;
  return `${name}\n${node}\n${model}\n${counterSet}\n${placement?.start} ${placement?.width}`;
}

export class Fleet {
  /** @param {any} document the answer of api/v1/fleet */
  constructor(document) {
    this.revision = document.revision;
    /** @type {string[]} */
    this.states = document.states;
    /** @type {any[]} */
    this.summary = document.summary;
    /** @type {string[]} */
    this.notes = document.notes ?? [];
    /** Rises with every change of a device. */
    this.version = 0;
    /** The last version in which a device of a node changed. @type {Map<string, number>} */
    this.versions = new Map();
    /** Rises when devices come, go, or move; a device that changes its state stays in its place. */
    this.arrangement = 0;
    /** @type {Map<string, FleetNode>} */
    this.nodes = new Map();
    /** @type {Map<string, Device[]>} */
    this.pools = new Map();
    /** @type {Map<string, Device>} */
    this.devices = new Map();
    this._readNodes(document.nodes);
    this._readDevices(document);
  }

  /** @param {any} nodes */
  _readNodes(nodes) {
    nodes.name.forEach((/** @type {string} */ name, /** @type {number} */ n) => {
      this.nodes.set(name, {
        name,
        zone: nodes.zone[n],
        rack: nodes.rack[n],
        instanceType: nodes.instanceType[n],
        ready: nodes.ready[n],
        cordoned: nodes.cordoned[n],
      });
    });
  }

  /** @param {any} document */
  _readDevices(document) {
    const { nodes, pools, devices, names, models, states, counterSets, memories } = document;
    /** @type {any[][]} */
    const found = pools.name.map(() => []);
    for (let n = 0; n < devices.pool.length; n++) {
      found[devices.pool[n]].push({
        name: names[devices.name[n]],
        node: nodes.name[devices.node[n]],
        model: models[devices.model[n]],
        state: states[devices.state[n]],
        level: devices.level[n],
        counterSet: counterSets[devices.counterSet[n]],
        placement: document.placements[devices.placement[n]] ?? null,
        memory: memories[devices.memory[n]],
      });
    }
    found.forEach((each, n) =>
      this._setPool({ driver: pools.driver[n], pool: pools.name[n], devices: each }),
    );
  }

  /** @param {any} change the part `fleet` of an update */
  apply(change) {
    for (const each of change.pools) this._setPool(each);
    for (const each of change.poolsGone) this._removePool(keyOf(each));
    for (const each of change.nodes) this._setNode(each);
    for (const name of change.nodesGone) {
      this.nodes.delete(name);
      this.arrangement++;
    }
    // An update of nodes alone has no summary: the last one is still true.
    if (change.summary) this.summary = change.summary;
  }

  /** @param {FleetNode} node */
  _setNode(node) {
    const known = this.nodes.get(node.name);
    const stays = known && ["zone", "rack", "instanceType"].every(
      (each) => known[/** @type {keyof FleetNode} */ (each)] === node[/** @type {keyof FleetNode} */ (each)],
    );
    if (!stays) this.arrangement++;
    this.nodes.set(node.name, node);
  }

  /** @param {{driver: string, pool: string, devices: any[]}} pool */
  _setPool(pool) {
    const key = keyOf(pool);
    const before = this.pools.get(key);
    if (before && before.length === pool.devices.length) {
      if (before.every((each, n) => placeOf(each) === placeOf(pool.devices[n]))) {
        before.forEach((each, n) => Object.assign(each, pool.devices[n]));
        this.touch(before);
        return;
      }
    }
    this._removePool(key);
    const { driver } = pool;
    const devices = pool.devices.map((each) =>
      Object.assign(each, { id: `${key}/${each.name}`, driver, pool: pool.pool }),
    );
    this.pools.set(key, devices);
    for (const each of devices) this.devices.set(each.id, each);
  }

  /** Notes that devices look different now. @param {Iterable<Device>} devices */
  touch(devices) {
    this.version++;
    for (const { node } of devices) this.versions.set(node, this.version);
  }

  /** @param {string} key */
  _removePool(key) {
    for (const each of this.pools.get(key) ?? []) this.devices.delete(each.id);
    this.pools.delete(key);
    this.arrangement++;
  }

  /**
   * Returns how many devices have each state.
   * @param {Set<string>} [without] drivers that do not count
   * @returns {Map<string, number>}
   */
  counts(without) {
    const found = new Map(this.states.map((state) => [state, 0]));
    for (const { state, driver } of this.devices.values()) {
      if (!without?.has(driver)) found.set(state, (found.get(state) ?? 0) + 1);
    }
    return found;
  }

  /** Returns the number of devices of each driver. @returns {Map<string, number>} */
  drivers() {
    const found = new Map();
    for (const devices of this.pools.values()) {
      if (!devices.length) continue;
      const { driver } = devices[0];
      found.set(driver, (found.get(driver) ?? 0) + devices.length);
    }
    return found;
  }
}
