// Updates a part of the document in place. What stays equal is not touched, so that the focus, the
// selected text, and the scroll position survive an update.

import { fill, h } from "./dom.js";

/**
 * Makes the content of an element equal to the children.
 *
 * An element with a `patchKey` is one piece: it stays while the key stays, whatever it contains.
 * @param {Element} parent @param {...any} children
 */
export function patch(parent, ...children) {
  const made = h("div", null);
  fill(made, ...children);
  patchChildren(parent, made);
}

/** Makes the children of `old` equal to those of `made`, whose nodes it may take. @param {Node} old @param {Node} made */
export function patchChildren(old, made) {
  const olds = [...old.childNodes];
  const news = [...made.childNodes];
  let first = 0;
  while (first < olds.length && first < news.length && isSame(olds[first], news[first])) first++;
  let [oldEnd, newEnd] = [olds.length, news.length];
  while (oldEnd > first && newEnd > first && isSame(olds[oldEnd - 1], news[newEnd - 1])) {
    oldEnd--;
    newEnd--;
  }
  const after = olds[oldEnd] ?? null;
  for (let n = first; n < Math.max(oldEnd, newEnd); n++) {
    const [was, is] = [n < oldEnd ? olds[n] : null, n < newEnd ? news[n] : null];
    if (was && is) patchNode(was, is);
    else if (was) /** @type {ChildNode} */ (was).remove();
    else if (is) old.insertBefore(is, after);
  }
}

/** An element that stays in its place over updates: the element, or a mark that keeps it. @param {any} element */
export function kept(element) {
  element.patchKey ??= Symbol("kept");
  return element.isConnected ? Object.assign(h("div", null), { patchKey: element.patchKey }) : element;
}

/** @param {any} old @param {any} made */
function isSame(old, made) {
  if (old.patchKey || made.patchKey) return old.patchKey === made.patchKey;
  if (!(old instanceof Element) || !(made instanceof Element)) return old.isEqualNode(made);
  const [details, others] = [all(old, "details"), all(made, "details")];
  // What the user opened stays open.
  if (details.length === others.length) details.forEach((each, n) => (others[n].open = each.open));
  // The pixels of a canvas are no part of the comparison of nodes.
  const [before, after] = [all(old, "canvas"), all(made, "canvas")];
  return old.isEqualNode(made) && before.every((each, n) => each.patchKey === after[n].patchKey);
}

/** @param {Element} element @param {string} selector @returns {any[]} */
function all(element, selector) {
  return [...(element.matches(selector) ? [element] : []), ...element.querySelectorAll(selector)];
}

/** @param {any} old @param {any} made */
function patchNode(old, made) {
  if (isSame(old, made)) return;
  const isText = old.nodeType === Node.TEXT_NODE && made.nodeType === Node.TEXT_NODE;
  if (isText) old.data = made.data;
  else if (isPatchable(old, made)) {
    for (const { name } of [...old.attributes]) if (!made.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of made.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    patchChildren(old, made);
  } else {
    const isFocused = old.contains?.(document.activeElement);
    old.replaceWith(made);
    if (isFocused) (made.matches?.("a, button, input, select") ? made : made.querySelector?.("a, button, input, select"))?.focus({ preventScroll: true });
  }
}

/** Handlers of an element may speak of what it was: such an element is replaced. @param {any} old @param {any} made */
function isPatchable(old, made) {
  return (
    old instanceof HTMLElement && made instanceof HTMLElement && old.nodeName === made.nodeName &&
    !(old instanceof HTMLCanvasElement) && !(/** @type {any} */ (old).isHandled || /** @type {any} */ (made).isHandled) &&
    !(/** @type {any} */ (old).patchKey || /** @type {any} */ (made).patchKey)
  );
}
