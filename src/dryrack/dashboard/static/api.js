// The JSON API of the room, and its stream. Addresses are relative: a proxy may put anything
// before them.

/**
 * One answer; an Error with the server's words if there is none.
 * @param {string} path below api/v1/
 * @returns {Promise<any>}
 */
export function get(path) {
  return ask(path, {});
}

/** @param {string} path @param {any} body @returns {Promise<any>} */
export function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body) });
}

/** @param {string} path @param {RequestInit} options */
async function ask(path, options) {
  let response;
  try {
    response = await fetch(`api/v1/${path}`, { credentials: "same-origin", ...options });
  } catch {
    throw new Error("the server does not respond; check that dryrack is running");
  }
  const text = await response.text();
  if (!response.ok) throw new Error(reason(text) || `the server returned status ${response.status}`);
  return JSON.parse(text);
}

/** @param {string} text */
function reason(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return text;
  }
}

/** A path of names, each of which may have any letter. @param {...string} names */
export function path(...names) {
  return names.map(encodeURIComponent).join("/");
}

/**
 * Reports every update after a revision, when everything has to be read anew, what is wrong with the
 * cluster, and the state of the connection: `live`, `lost` (the browser tries again by itself) or
 * `ended` (it does not).
 * @param {number} revision
 * @param {{
 *   update: (update: any) => void,
 *   reset: () => void,
 *   cluster: (trouble: {error: string, failures: string[]}) => void,
 *   state: (state: string) => void,
 * }} told
 * @returns {() => void} ends it
 */
export function follow(revision, told) {
  const source = new EventSource(`api/v1/stream?since=${revision}`);
  source.addEventListener("open", () => told.state("live"));
  source.addEventListener("error", () =>
    told.state(source.readyState === EventSource.CLOSED ? "ended" : "lost"),
  );
  source.addEventListener("update", (event) => told.update(JSON.parse(event.data)));
  source.addEventListener("cluster", (event) => told.cluster(JSON.parse(event.data)));
  source.addEventListener("reset", () => {
    source.close();
    told.reset();
  });
  return () => source.close();
}
