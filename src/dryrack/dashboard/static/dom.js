// Elements. What comes from the cluster becomes text, never markup: there is no way here to make
// elements of a string.

/**
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {{[name: string]: any}} Properties
 */

/**
 * An element: `class`, `style` (an object) and handlers (`onclick`) are set as such, all else as
 * attributes; what is null or false is left out.
 * @param {string} tag
 * @param {Properties | null} [properties]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) set(made, name, value);
  made.append(...texts(children));
  return made;
}

/** @param {HTMLElement} element @param {string} name @param {any} value */
function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name === "class") element.className = value;
  else if (name === "style") {
    for (const [key, each] of Object.entries(value)) element.style.setProperty(key, String(each));
  } else if (name.startsWith("on")) {
    element.addEventListener(name.slice(2), value);
    // `patch` replaces such an element as a whole.
    Object.assign(element, { isHandled: true });
  } else element.setAttribute(name, value === true ? "" : String(value));
}

/** @param {(Child | Child[])[]} children @returns {(Node | string)[]} */
function texts(children) {
  return children
    .flat(Infinity)
    .filter((each) => each !== null && each !== undefined && each !== false)
    .map((each) => (each instanceof Node ? each : String(each)));
}

/** @param {Element} parent @param {...(Child | Child[])} children */
export function fill(parent, ...children) {
  parent.replaceChildren(...texts(children));
}

/**
 * Shows items in order, and replaces the elements of items that changed. The focus stays on the same
 * part of its item.
 * @template Item
 * @param {Element} parent
 * @param {Item[]} items
 * @param {(item: Item) => string} key
 * @param {(item: Item) => HTMLElement} make
 */
export function sync(parent, items, key, make) {
  let focused = () => {};
  const before = new Map([...parent.children].map((each) => [/** @type {any} */ (each).key, each]));
  const after = items.map((item) => {
    const name = key(item);
    const text = JSON.stringify(item);
    const known = /** @type {any} */ (before.get(name));
    if (known && known.text === text) return known;
    const made = Object.assign(make(item), { key: name, text });
    const place = known ? focusable(known).indexOf(document.activeElement) : -1;
    if (place >= 0) focused = () => focusable(made)[place]?.focus({ preventScroll: true });
    return made;
  });
  const stays = new Set(after);
  for (const each of [...parent.children]) if (!stays.has(each)) each.remove();
  after.forEach((each, n) => {
    if (parent.children[n] !== each) parent.insertBefore(each, parent.children[n] ?? null);
  });
  focused();
}

/** What in an element can have the focus. @param {Element} element @returns {any[]} */
function focusable(element) {
  return [...element.querySelectorAll("a[href], button, input, select, summary, [tabindex]")];
}

/** @param {number} count @param {string} one @param {string} [many] */
export function counted(count, one, many) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : (many ?? `${one}s`)}`;
}

/**
 * When something was, for people; the whole time is in the title.
 * @param {string} text an RFC 3339 time
 */
export function when(text) {
  if (!text) return h("span", { class: "quiet" }, "–");
  const time = new Date(text);
  const shown = Number.isNaN(time.getTime()) ? text : time.toLocaleTimeString("en-GB");
  return h("time", { datetime: text, title: text }, shown);
}
