// Rows that the stream does not tell: asked for when the view opens, and when devices change.

import { get } from "../api.js";
import { fill } from "../dom.js";
import { listView, problem } from "../parts.js";

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
      rows = (await get(what))[what];
      if (!isClosed) view.update();
    } catch (error) {
      if (!isClosed && !rows) fill(view.element, problem(error));
    }
  };
  ask();
  return {
    element: view.element,
    update: (/** @type {Set<string>} */ parts) => {
      if (!parts.has("fleet") || isWaiting || isClosed) return;
      isWaiting = true;
      setTimeout(ask, AGAIN_MS);
    },
    close: () => (isClosed = true),
  };
}
