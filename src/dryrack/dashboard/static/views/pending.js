// Pending pods: by cause and gang, as the scheduler's code explains them, and one by one.

import { age } from "../ages.js";
import { get } from "../api.js";
import { counted, h } from "../dom.js";
import { Explained } from "../explained.js";
import { badge, empty, objectLink, problem, whyLink } from "../parts.js";
import { patch } from "../patch.js";
import { to } from "../routes.js";
import { nameOf } from "../store.js";
import { listView, namespaceChoice, Table } from "../table.js";
import { fitOf } from "./why.js";

/** Decisions take time: groups after these are explained on request. */
const EXPLAINED_MAX = 24;
const AGAIN_MS = 1000;

/**
 * @typedef {{namespace: string, gang: string, pods: string[], schedulingGates: string[],
 *   requests: string[], claimsMissing: number, priority: number, oldest: string, newest: string, why: string}} Group
 */

/** @param {import("../page.js").Context} context */
export function pendingView({ store, announce }) {
  const table = new Table(
    "Pending pods",
    [
      { key: "name", title: "Pod", cell: (pod) => objectLink("pods", pod.namespace, pod.name), value: nameOf, class: "wide" },
      namespaceChoice(),
      { key: "why", title: "Message of the scheduler", cell: waitsFor, value: (pod) => pod.why, class: "text" },
      { key: "gang", title: "Gang", cell: (pod) => (pod.gang ? objectLink("gangs", pod.namespace, pod.gang) : "–"), isChoice: true },
      { key: "age", title: "Age", cell: (pod) => age(pod.created), value: (pod) => -Date.parse(pod.created) },
      { key: "case", title: "Explanation", cell: (pod) => whyLink("pod", pod.namespace, pod.name), isFixed: true },
    ],
    nameOf,
  );
  const groups = new Groups(store);
  const view = listView({
    title: "Pending",
    table,
    nothing: empty("No pending pods: every pod has a node."),
    rows: () => (store.isComplete ? store.pendingPods() : null),
    about: groups.element,
    announce,
  });
  return {
    ...view,
    update: (/** @type {Set<string>} */ parts) => {
      view.update();
      groups.update(parts);
    },
    close: () => groups.close(),
  };
}

/** @param {any} pod */
function waitsFor(pod) {
  if (pod.schedulingGates.length) return `scheduling gates ${pod.schedulingGates.join(", ")}`;
  return pod.why || h("span", { class: "quiet" }, "no scheduler has reported on this pod yet");
}

/** Groups of pods with the same explanation, under their cause. */
class Groups {
  /** @param {import("../store.js").Store} store */
  constructor(store) {
    this.store = store;
    /** @type {Group[]} */
    this.groups = [];
    /** What the scheduler's code says of the groups. @type {Map<string, Explained>} */
    this.explained = new Map();
    this.element = h("section", { class: "groups", "aria-label": "Pending pods by cause" });
    this._isWaiting = false;
    this._isClosed = false;
    this._isExplaining = false;
    this._ask();
  }

  /** @param {Set<string>} parts */
  update(parts) {
    if (parts.has("moment")) this._show();
    if (parts.has("decisions")) this._explain();
    if (!(parts.has("pods") || parts.has("claims") || parts.has("gangs")) || this._isWaiting) return;
    this._isWaiting = true;
    setTimeout(() => this._ask(), AGAIN_MS);
  }

  async _ask() {
    this._isWaiting = false;
    if (this._isClosed) return;
    try {
      this.groups = (await get("pending")).groups;
      this._show();
      this._explain();
    } catch (error) {
      patch(this.element, problem(error));
    }
  }

  /** Explains the groups one after the other: the server decides one at a time. */
  async _explain() {
    if (this._isExplaining || this.store.past) return;
    this._isExplaining = true;
    const names = new Set(this.groups.map(keyOf));
    for (const [name, each] of this.explained) {
      if (names.has(name)) continue;
      each.close();
      this.explained.delete(name);
    }
    for (const group of this.groups.slice(0, EXPLAINED_MAX)) {
      if (this._isClosed || this.store.past) break;
      const known = this.explained.get(keyOf(group));
      if (known) known.changed();
      else {
        const shown = () => this._show();
        const explained = new Explained(this.store, subjectOf(group), shown, shown);
        this.explained.set(keyOf(group), explained);
        this._show();
        await explained.ask();
      }
    }
    this._isExplaining = false;
  }

  _show() {
    if (this._isClosed) return;
    // The history has the pods of a moment, but no decisions.
    if (this.store.past || !this.groups.length) {
      patch(this.element);
      return;
    }
    /** @type {Map<string, Group[]>} */
    const causes = new Map();
    for (const each of this.groups) {
      const { cause } = this._causeOf(each);
      causes.set(cause, [...(causes.get(cause) ?? []), each]);
    }
    const shown = [...causes].map(([cause, groups]) => {
      const count = groups.reduce((sum, each) => sum + each.pods.length, 0);
      return h(
        "li",
        { class: "card" },
        h("p", { class: "lead" }, groups.length > 1 ? h("b", null, counted(count, "pod")) : null, this._causeOf(groups[0]).badge, h("span", { class: "cause" }, cause)),
        h("ul", { class: "plain" }, groups.map((each) => this._group(each))),
      );
    });
    patch(this.element, h("h2", null, "By cause"), h("ul", { class: "plain" }, shown), h("h2", null, "All pending pods"));
  }

  /** @param {Group} group @returns {{cause: string, badge: any, fits: string}} */
  _causeOf(group) {
    const explained = this.explained.get(keyOf(group));
    const answer = explained?.answer;
    if (group.schedulingGates.length) {
      return { cause: `Scheduling gates: ${group.schedulingGates.join(", ")}`, badge: badge("gated", "near"), fits: "" };
    }
    if (explained?.error) return { cause: String(/** @type {any} */ (explained.error).message), badge: badge("not explained", "near"), fits: "" };
    if (!answer) {
      return { cause: group.why || "No scheduler has reported on these pods yet.", badge: h("span", { class: "quiet" }, explained ? "deciding …" : "not explained yet"), fits: "" };
    }
    if (answer.gangs) return ofGang(answer.gangs[0]);
    if (answer.node || answer.wouldGoTo) {
      const cause = answer.preempts ? `The next pod fits on ${answer.wouldGoTo} after it preempts ${answer.preempts}.` : `The next pod fits on ${answer.node || answer.wouldGoTo}.`;
      return { cause, badge: badge(answer.preempts ? "preemption" : "would fit", answer.preempts ? "near" : "good"), fits: "" };
    }
    const isQuota = (answer.cause ?? "").startsWith("exceeded quota");
    const reason = isQuota ? "quota" : answer.refused ? "not created" : (answer.nodes[0]?.reasons[0]?.reason ?? "");
    return { cause: answer.cause || answer.message, badge: badge(labelOf(reason), "bad"), fits: "" };
  }

  /** @param {Group} group */
  _group(group) {
    const { namespace, gang, pods } = group;
    const { fits } = this._causeOf(group);
    const names = pods.slice(0, 3).flatMap((each, n) => [n ? ", " : "", objectLink("pods", namespace, each)]);
    const more = pods.length > 3 ? h("a", { href: to("pending", [], { filter: gang ? `gang:${gang}` : prefixOf(pods) }) }, `and ${pods.length - 3} more`) : null;
    const [kind, , name] = subjectOf(group);
    return h(
      "li",
      { class: "group" },
      h("b", null, counted(pods.length, "pod"), gang ? [": gang ", objectLink("gangs", namespace, gang)] : null, fits ? `, ${fits}` : null),
      h("span", { class: "quiet" }, group.requests.length ? group.requests.join(", ") : group.claimsMissing ? null : "no claims"),
      group.claimsMissing ? h("span", { class: "quiet" }, `${counted(group.claimsMissing, "claim")} of each pod not created`) : null,
      h("span", { class: "quiet" }, `priority ${group.priority}`),
      h("span", { class: "quiet" }, "oldest ", age(group.oldest), group.newest !== group.oldest ? [", newest ", age(group.newest)] : null),
      gang ? null : h("span", { class: "names" }, names, " ", more),
      whyLink(kind, namespace, name, "Why, and try a change"),
    );
  }

  close() {
    this._isClosed = true;
    for (const each of this.explained.values()) each.close();
  }
}

/** @param {Group} group */
function keyOf({ namespace, gang, pods, requests, priority }) {
  return gang ? `gang ${namespace}/${gang}` : JSON.stringify([namespace, pods[0], requests, priority]);
}

/** Kind, namespace, and name of what is explained for a group. @param {Group} group */
function subjectOf({ namespace, gang, pods }) {
  return gang ? ["gang", namespace, gang] : ["pod", namespace, pods[0]];
}

/** The part of the names that the pods share. @param {string[]} pods */
function prefixOf(pods) {
  let end = 0;
  while (end < pods[0].length && pods.every((each) => each[end] === pods[0][end])) end++;
  while (end && "-.0123456789".includes(pods[0][end - 1])) end--;
  return pods[0].slice(0, end);
}

/** @param {any} gang */
function ofGang(gang) {
  const fits = fitOf(gang);
  const reason = gang.claims?.[0]?.nodes?.[0]?.reasons?.[0]?.reason ?? "gang";
  if (gang.fits === null) return { cause: gang.message, badge: badge("unknown", "near"), fits };
  if (gang.fits) return { cause: `${gang.gang} fits.`, badge: badge("would fit", "good"), fits };
  return { cause: gang.message || gang.why, badge: badge(labelOf(reason), "bad"), fits };
}

/** @param {string} reason the code of a reason */
function labelOf(reason) {
  return reason.replaceAll("-", " ") || "does not fit";
}
