// The claims that have each device, with the gangs and queues of their pods.

/**
 * @typedef {{namespace: string, claim: string, pods: string[], gangs: string[], queues: string[]}} Owner
 *   names of pods and gangs are namespace/name
 */

export class Owners {
  /** @param {import("../store.js").Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Map<string, any>} */
    this._rows = new Map();
    /** The claims of a device, by name. @type {Map<string, Set<string>>} */
    this._claims = new Map();
  }

  /** Reads the claims that changed; returns the devices whose owners differ. @returns {Set<string>} */
  refresh() {
    const rows = this.store.lists.claims;
    /** @type {Set<string>} */
    const changed = new Set();
    for (const [name, row] of rows) {
      const before = this._rows.get(name);
      if (before === row) continue;
      this._set(name, before, row, changed);
    }
    if (this._rows.size > rows.size) {
      for (const [name, row] of [...this._rows]) if (!rows.has(name)) this._set(name, row, null, changed);
    }
    return changed;
  }

  /** @param {string} name @param {any} before @param {any} after @param {Set<string>} changed */
  _set(name, before, after, changed) {
    for (const id of before?.devices ?? []) {
      const claims = this._claims.get(id);
      claims?.delete(name);
      if (!claims?.size) this._claims.delete(id);
      changed.add(id);
    }
    for (const id of after?.devices ?? []) {
      const claims = this._claims.get(id);
      if (claims) claims.add(name);
      else this._claims.set(id, new Set([name]));
      changed.add(id);
    }
    if (after) this._rows.set(name, after);
    else this._rows.delete(name);
  }

  /** Whether a claim has a device. @param {string} id */
  has(id) {
    return this._claims.has(id);
  }

  /** Returns the owners of a device. @param {string} id @returns {Owner[]} */
  of(id) {
    const claims = this._claims.get(id);
    return claims ? [...claims].map((each) => this._owner(each)) : [];
  }

  /** @param {string} name @returns {Owner} */
  _owner(name) {
    const { namespace, pods: names } = this._rows.get(name);
    const pods = names.map((/** @type {string} */ each) => `${namespace}/${each}`);
    const rows = pods.map((/** @type {string} */ each) => this.store.lists.pods.get(each)).filter(Boolean);
    const gangs = rows.filter((/** @type {any} */ row) => row.gang).map((/** @type {any} */ row) => `${namespace}/${row.gang}`);
    const queues = rows.filter((/** @type {any} */ row) => row.queue).map((/** @type {any} */ row) => row.queue);
    return { namespace, claim: name, pods, gangs: [...new Set(gangs)], queues: [...new Set(queues)] };
  }

  /** Returns the devices of the pods of gangs. @param {Set<string>} gangs @returns {string[]} */
  devicesOf(gangs) {
    return [...this._claims.keys()].filter((id) =>
      this.of(id).some((owner) => owner.gangs.some((each) => gangs.has(each))),
    );
  }
}
