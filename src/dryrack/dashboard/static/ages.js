// Ages: how long ago something was, by the clock of the server. The exact time is in the title.

import { h } from "./dom.js";

const AGAIN_MS = 5000;
/** Units in seconds, from which their lower unit is not shown. As `kubectl get` shows ages. */
const [MINUTE, HOUR, DAY, YEAR] = [60, 3600, 86400, 365 * 86400];

/** The clock of the server minus that of the browser, in milliseconds. */
let offset = 0;
/** The moment that the page shows, in milliseconds; null for the present. @type {number | null} */
let moment = null;

/** Sets the clock. @param {string} time the time of an answer that has just come */
export function setClock(time) {
  const at = Date.parse(time);
  if (!Number.isNaN(at)) offset = at - Date.now();
  refresh();
}

/** Makes ages those at a moment. @param {string} time "" for the present */
export function setMoment(time) {
  moment = time ? Date.parse(time) : null;
  refresh();
}

/** Returns the time of the server, or of the moment that the page shows. */
export function now() {
  return moment ?? Date.now() + offset;
}

/** How long ago something was, kept up to date. @param {string} time an RFC 3339 time */
export function age(time) {
  if (!time) return h("span", { class: "quiet" }, "–");
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return time;
  const exact = at.toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });
  return h("time", { class: "age", datetime: time, title: `${exact} (${time})` }, ageText(at.getTime()));
}

/** @param {number} at */
function ageText(at) {
  return duration((now() - at) / 1000);
}

/** Returns a duration as kubectl writes it. @param {number} given seconds @returns {string} */
export function duration(given) {
  const seconds = Math.floor(given);
  // Clocks differ a little.
  if (seconds < 0) return seconds < -2 ? `in ${duration(-given)}` : "0s";
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 10 * MINUTE) return two(seconds, MINUTE, "m", 1, "s");
  if (seconds < 3 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 8 * HOUR) return two(seconds, HOUR, "h", MINUTE, "m");
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  if (seconds < 8 * DAY) return two(seconds, DAY, "d", HOUR, "h");
  if (seconds < 2 * YEAR) return `${Math.floor(seconds / DAY)}d`;
  return two(seconds, YEAR, "y", DAY, "d");
}

/** @param {number} seconds @param {number} unit @param {string} name @param {number} lower @param {string} lowerName */
function two(seconds, unit, name, lower, lowerName) {
  const rest = Math.floor((seconds % unit) / lower);
  return `${Math.floor(seconds / unit)}${name}${rest ? `${rest}${lowerName}` : ""}`;
}

function refresh() {
  for (const each of /** @type {NodeListOf<HTMLTimeElement>} */ (document.querySelectorAll("time.age"))) {
    const text = ageText(Date.parse(each.dateTime));
    if (each.textContent !== text) each.textContent = text;
  }
}

setInterval(() => document.hidden || refresh(), AGAIN_MS);
