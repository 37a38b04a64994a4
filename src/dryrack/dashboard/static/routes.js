// Addresses of views, after the #: they can be kept and sent. Names may have any letter.

/** @typedef {{view: string, names: string[], query: URLSearchParams}} Route */

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

/** The moment of the page, which its links keep. */
let moment = "";

/** @param {string} at a revision or a time; "" for the present */
export function keepMoment(at) {
  moment = at;
}

/**
 * The address of a view; it is of the moment that the page shows, unless the query has another.
 * @param {string} view @param {string[]} names @param {{[key: string]: string}} [query]
 */
export function to(view, names = [], query = {}) {
  const set = Object.entries({ at: moment, ...query }).filter(([, value]) => value);
  const more = set.length ? `?${new URLSearchParams(set)}` : "";
  return `#/${[view, ...names].map(encodeURIComponent).join("/")}${more}`;
}

/** The address of a device by its id, driver/pool/name; a pool may have a / in it. */
export function toDevice(/** @type {string} */ id, /** @type {{[key: string]: string}} */ query = {}) {
  return to("fleet", idParts(id), query);
}

/** @param {string} id @returns {[string, string, string]} */
export function idParts(id) {
  const [first, last] = [id.indexOf("/"), id.lastIndexOf("/")];
  return [id.slice(0, first), id.slice(first + 1, last), id.slice(last + 1)];
}
