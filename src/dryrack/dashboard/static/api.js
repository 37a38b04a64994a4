// The JSON API of the room, and its stream. Addresses are relative: a proxy may put anything
// before them.

/**
 * One answer; an Error with the server's words if there is none.
 * @param {string} path below api/v1/
 * @returns {Promise<any>}
 */
export async function get(path) {
  const response = await fetch(`api/v1/${path}`, { credentials: "same-origin" });
  const text = await response.text();
  if (!response.ok) throw new Error(reason(text) || `${response.status}`);
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

/**
 * Tells every update after a revision, and when everything has to be read anew.
 * @param {number} revision
 * @param {{update: (update: any) => void, reset: () => void, state: (state: string) => void}} told
 * @returns {() => void} ends it
 */
export function follow(revision, told) {
  const source = new EventSource(`api/v1/stream?since=${revision}`);
  source.addEventListener("open", () => told.state("live"));
  source.addEventListener("error", () => told.state("reconnecting …"));
  source.addEventListener("update", (event) => told.update(JSON.parse(event.data)));
  source.addEventListener("reset", () => {
    source.close();
    told.reset();
  });
  return () => source.close();
}
