// Parts that several views are made of.

import { age } from "./ages.js";
import { get } from "./api.js";
import { counted, h } from "./dom.js";
import { swatch } from "./map/paint.js";
import { patch } from "./patch.js";
import { to, toDevice } from "./routes.js";

/** A device's state, with its picture. @param {string} state @param {number} [level] */
export function stateBadge(state, level) {
  const picture = Object.assign(swatch(state, level), { patchKey: `${state} ${level}` });
  return h("span", { class: "state" }, picture, state);
}

/** The state of a claim, a gang or a pod. @param {string} text @param {string} [tone] */
export function badge(text, tone = "") {
  return h("span", { class: `badge ${tone}` }, text);
}

/** @param {string} id driver/pool/name */
export function deviceLink(id, /** @type {string} */ text = id) {
  return h("a", { href: toDevice(id), class: "name" }, text);
}

/** A name in a cell: short ones stay in one piece. @param {string} text */
export function nameText(text) {
  return h("span", { class: "name" }, text);
}

/** @param {string} node */
export function nodeLink(node) {
  return h("a", { href: to("nodes", [node]), class: "name" }, node);
}

/** @param {"claims" | "gangs" | "pods"} view @param {string} namespace @param {string} name */
export function objectLink(view, namespace, name) {
  return h("a", { href: to(view, [namespace, name]), class: "name" }, `${namespace}/${name}`);
}

/** An object without a view of its own: its YAML. @param {string} kind @param {string} namespace @param {string} name */
export function objectName(kind, namespace, name, /** @type {string} */ text = name) {
  const names = namespace ? [kind, namespace, name] : [kind, name];
  return h("a", { href: to("object", names), class: "name" }, text);
}

/** @param {string} kind @param {string} namespace @param {string} name */
export function whyLink(kind, namespace, name, text = "Why?") {
  return h("a", { href: to("why", [kind, namespace, name]), class: "why" }, text);
}

/** @param {string} title @param {...any} children */
export function section(title, ...children) {
  return h("section", { class: "part" }, h("h2", null, title), ...children);
}

/** @param {string} title @param {...any} children */
export function heading(title, ...children) {
  return h("div", { class: "heading" }, h("h1", null, title), ...children);
}

/** @param {string} text @param {...any} more */
export function empty(text, ...more) {
  return h("div", { class: "empty" }, h("p", null, text), ...more);
}

/** @param {unknown} error */
export function problem(error) {
  return h("div", { class: "problem", role: "alert" }, String(/** @type {any} */ (error).message ?? error));
}

export function loading() {
  return h("p", { class: "empty", role: "status" }, "Loading …");
}

/**
 * How much of something is used.
 * @param {string} label @param {number} percent @param {string} text
 */
export function meter(label, percent, text) {
  return h(
    "div",
    { class: "meter" },
    h("span", { class: "name" }, label),
    h("span", { class: "value" }, text),
    h(
      "div",
      {
        class: "bar",
        role: "meter",
        "aria-label": label,
        "aria-valuemin": 0,
        "aria-valuemax": 100,
        "aria-valuenow": percent,
        "aria-valuetext": text,
      },
      h("div", { style: { width: `${Math.min(100, percent)}%` } }),
    ),
  );
}

/** Names and values; what has no value is left out. @param {[string, any][]} pairs */
export function facts(pairs) {
  const shown = pairs.filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return h(
    "dl",
    { class: "facts" },
    shown.map(([name, value]) => [h("dt", null, name), h("dd", null, value)]).flat(),
  );
}

/**
 * What happened, in order of time; what happened to several pods in a row is one entry.
 * @param {any[]} timeline
 */
export function happenings(timeline) {
  if (!timeline.length) return empty("No events yet.");
  /** @type {{first: any, last: any, pods: Set<string>, count: number}[]} */
  const entries = [];
  for (const each of timeline) {
    const entry = entries.at(-1);
    const pod = each.pod.split("/").pop();
    if (entry && entry.first.what === each.what && entry.first.message === each.message) {
      Object.assign(entry, { last: each, count: entry.count + each.count });
      entry.pods.add(pod);
    } else entries.push({ first: each, last: each, pods: new Set([pod]), count: each.count });
  }
  return h("ol", { class: "happenings" }, entries.map(happening));
}

/** @param {{first: any, last: any, pods: Set<string>, count: number}} entry */
function happening({ first, last, pods, count }) {
  const [name] = pods;
  return h(
    "li",
    null,
    age(last.time),
    h("strong", null, first.what),
    count > pods.size ? h("span", { class: "quiet" }, `${count} times`) : null,
    h("span", { class: "quiet", title: [...pods].slice(0, 100).join(", ") }, pods.size > 1 ? `${name} and ${counted(pods.size - 1, "other pod")}` : name),
    first.message && h("p", null, first.message),
  );
}

/** The time of day. @param {string} text */
export function clock(text) {
  const time = new Date(text);
  return Number.isNaN(time.getTime()) ? text : time.toLocaleTimeString("en-GB");
}

/** The conditions of an object. @param {any[]} conditions */
export function conditions(conditions) {
  if (!conditions.length) return empty("No conditions.");
  const rows = conditions.map((each) =>
    h(
      "li",
      null,
      badge(`${each.type} ${each.status}`, isGood(each) ? "good" : "near"),
      ` ${each.reason} ${each.message} `,
      each.device ? h("span", { class: "quiet" }, ` ${each.device} `) : null,
      each.since ? h("span", { class: "quiet" }, "since ", age(each.since)) : null,
    ),
  );
  return h("ul", { class: "plain" }, rows);
}

/** Some conditions of nodes and pods are good when they are false. @param {any} condition */
function isGood({ type, status }) {
  const isBad = type.endsWith("Pressure") || type.endsWith("Unavailable") || type === "DisruptionTarget";
  return status === (isBad ? "False" : "True");
}

/**
 * What a view shows in the past if the history has no details; null in the present.
 * @param {import("./store.js").Store} store
 */
export function noDetails(store) {
  return store.past ? h("p", { class: "quiet" }, "The history has no details of single objects. Show the present to read them.") : null;
}

/**
 * A view of one object, which is read again when one of the parts changes. `past` returns what to
 * show instead while the page shows a past moment, or null. `below` stays under the details.
 * @param {{path: string, parts: string[], show: (answer: any) => any, past: () => any,
 *   below?: import("./yaml.js").Below}} options
 * @returns {{element: HTMLElement, update: (changed: Set<string>) => void, close: () => void}}
 */
export function detailView({ path, parts, show, past, below }) {
  const body = h("div", null, loading());
  const element = h("div", { class: "detail" }, body, below?.element);
  let [isAsked, isAgain, isClosed] = [false, false, false];
  const ask = async () => {
    const instead = past();
    if (instead) {
      patch(body, instead);
      return;
    }
    if (isAsked) {
      isAgain = true;
      return;
    }
    isAsked = true;
    try {
      const answer = await get(path);
      if (!isClosed) patch(body, past() ?? show(answer));
    } catch (error) {
      if (!isClosed) patch(body, problem(error));
    }
    isAsked = false;
    if (isAgain && !isClosed) {
      isAgain = false;
      ask();
    }
  };
  ask();
  return {
    element,
    update: (changed) => {
      if (!changed.has("moment") && !parts.some((each) => changed.has(each))) return;
      ask();
      below?.update();
    },
    close: () => (isClosed = true),
  };
}
