// Lists that are not in the stream: read when the view opens, and again when devices change.

import { get } from "../api.js";
import { fill } from "../dom.js";
import { sortedBy } from "../order.js";
import { problem } from "../parts.js";
import { listView } from "../table.js";

const AGAIN_MS = 1000;

/**
 * @param {string} what the path, and the field of the answer
 * @param {any} options of `listView`, without rows
 */
export function askedList(what, options) {
  /** @type {any[] | null} */
  let rows = null;
  let [isClosed, isWaiting] = [false, false];
  const view = listView({ ...options, rows: () => rows });
  const ask = async () => {
    isWaiting = false;
    try {
      const answer = (await get(what))[what];
      rows = sortedBy(answer, (each) => `${each.driver ?? ""}\n${each.pool ?? ""}\n${each.name}`);
      if (!isClosed) view.update();
    } catch (error) {
      if (!isClosed && !rows) fill(view.element, problem(error));
    }
  };
  ask();
  return {
    ...view,
    update: (/** @type {Set<string>} */ parts) => {
      if (!parts.has("fleet") || isWaiting || isClosed) return;
      isWaiting = true;
      setTimeout(ask, AGAIN_MS);
    },
    close: () => (isClosed = true),
  };
}
