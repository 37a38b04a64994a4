// The fleet as it was read, and what updates change in it.

export class Fleet {
  /** @param {any} document the answer of api/v1/fleet */
  constructor(document) {
    this.revision = document.revision;
    this.states = document.states;
    this.summary = document.summary;
    /** @type {Map<string, any>} */
    this.nodes = new Map();
    /** @type {Map<string, {driver: string, pool: string, devices: any[]}>} */
    this.pools = new Map();
    const { nodes, pools, devices } = document;
    nodes.name.forEach((name, n) => {
      this.nodes.set(name, {
        name,
        zone: nodes.zone[n],
        ready: nodes.ready[n],
        cordoned: nodes.cordoned[n],
      });
    });
    const found = pools.name.map((pool, n) => ({ driver: pools.driver[n], pool, devices: [] }));
    for (const each of found) this.pools.set(key(each), each);
    for (let n = 0; n < devices.pool.length; n++) {
      found[devices.pool[n]].devices.push({
        name: document.names[devices.name[n]],
        node: nodes.name[devices.node[n]],
        model: document.models[devices.model[n]],
        state: document.states[devices.state[n]],
        level: devices.level[n],
        counterSet: document.counterSets[devices.counterSet[n]],
      });
    }
  }

  /** @param {any} change the part `fleet` of an update */
  apply(change) {
    for (const each of change.pools) this.pools.set(key(each), each);
    for (const each of change.poolsGone) this.pools.delete(key(each));
    for (const each of change.nodes) this.nodes.set(each.name, each);
    for (const name of change.nodesGone) this.nodes.delete(name);
    if (change.summary.length) this.summary = change.summary;
  }

  /** Devices by the node that they are on. */
  byNode() {
    /** @type {Map<string, any[]>} */
    const found = new Map([...this.nodes.keys()].map((name) => [name, []]));
    for (const { driver, pool, devices } of this.pools.values()) {
      for (const device of devices) {
        if (!found.has(device.node)) found.set(device.node, []);
        found.get(device.node).push({ driver, pool, ...device });
      }
    }
    return found;
  }
}

/** @param {{driver: string, pool: string}} pool */
function key(pool) {
  return `${pool.driver}/${pool.pool}`;
}
