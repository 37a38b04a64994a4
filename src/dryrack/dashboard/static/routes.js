// Addresses of views, after the #: `#/view/name/name?parameter=value`. You can keep and send them.
// Names may have any letter. The parameters are the state of the page that is worth sending:
//
//   at                 the moment: a revision, a time, or `now` with the time axis (all views)
//   model, state, namespace, gang, queue, zone, pool
//                      filters: the map dims the devices that do not match, and tables may omit
//                      them; the values of one filter are alternatives, several filters all apply
//   group, color       what the map groups and colors by
//   open               drivers that the map shows in full, though they are not accelerators
//   node, mark         a node and devices that the map rings
//
// A view may have more parameters. It reads them with `parameter` or `parameters`, and changes them
// with `setParameters`; the page then calls `follow(route)` of the view.

/**
 * @typedef {{view: string, names: string[], query: URLSearchParams}} Route
 * @typedef {{[name: string]: string | string[]}} Parameters
 */

/** @param {string} hash @returns {Route} */
export function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view, ...names] = path.split("/").map(decoded);
  return { view: view || "fleet", names, query: new URLSearchParams(query ?? "") };
}

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The filters of devices, in the order in which the page shows them. */
export const FILTERS = ["model", "state", "namespace", "gang", "queue", "zone", "pool"];

/** Returns a parameter of the address; "" if it is not set. @param {string} name */
export function parameter(name) {
  return parse(location.hash).query.get(name) ?? "";
}

/** Returns all values of a parameter of the address. @param {string} name @returns {string[]} */
export function parameters(name) {
  return parse(location.hash).query.getAll(name);
}

/**
 * Changes parameters of the address, and keeps the others; "" and [] remove a parameter. The change
 * is not a step that the Back button returns to, unless `isStep`.
 * @param {Parameters} changes @param {{isStep?: boolean}} [options]
 */
export function setParameters(changes, { isStep = false } = {}) {
  const { view, names, query } = parse(location.hash);
  /** @type {Parameters} */
  const all = { at: "" };
  for (const name of query.keys()) all[name] = query.getAll(name);
  const address = to(view, names, { ...all, ...changes });
  if (isStep) location.hash = address;
  else location.replace(address);
}

/** Adds a value to a parameter of the address, or removes it. @param {string} name @param {string} value */
export function toggleParameter(name, value) {
  const before = parameters(name);
  const others = before.filter((each) => each !== value);
  setParameters({ [name]: others.length < before.length ? others : [...before, value] });
}

/** The filters of the address that are set. @returns {{[name: string]: string[]}} */
export function filters() {
  const pairs = FILTERS.map((name) => [name, parameters(name)]);
  return Object.fromEntries(pairs.filter(([, values]) => values.length));
}

/** The moment of the page, which its links keep. */
let moment = "";

/** @param {string} at a revision or a time; "" for the present */
export function keepMoment(at) {
  moment = at;
}

/**
 * The address of a view; it is of the moment that the page shows, unless the query has another.
 * @param {string} view @param {string[]} names @param {Parameters} [query]
 */
export function to(view, names = [], query = {}) {
  const search = new URLSearchParams();
  for (const [name, values] of Object.entries({ at: moment, ...query })) {
    for (const value of [values].flat()) if (value) search.append(name, value);
  }
  const more = search.size ? `?${search}` : "";
  return `#/${[view, ...names].map(encodeURIComponent).join("/")}${more}`;
}

/** The address of a device by its id, driver/pool/name; a pool may have a / in it. */
export function toDevice(/** @type {string} */ id, /** @type {Parameters} */ query = {}) {
  return to("fleet", idParts(id), query);
}

/** @param {string} id @returns {[string, string, string]} */
export function idParts(id) {
  const [first, last] = [id.indexOf("/"), id.lastIndexOf("/")];
  return [id.slice(0, first), id.slice(first + 1, last), id.slice(last + 1)];
}
