// Why a pod, claim, or gang is pending: what each node lacks, the closest nodes on a map, and changes.

import { counted, fill, h } from "../dom.js";
import { Explained } from "../explained.js";
import { Fleet } from "../map/fleet.js";
import { auxiliaryDrivers } from "../map/kinds.js";
import { FleetMap } from "../map/map.js";
import { badge, deviceLink, empty, heading, nodeLink, noDetails, problem } from "../parts.js";
import { patch } from "../patch.js";
import { idParts, to, toDevice } from "../routes.js";
import { Trial } from "./trial.js";

const NODES_ON_MAP = 12;
const MEMBERS_MAX = 100;
const LISTS = { pod: "pods", claim: "claims", gang: "gangs" };

/** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
export function whyView({ store }, route) {
  const [kind = "pod", namespace = "", ...rest] = route.names;
  const name = rest.join("/");
  const map = new NearMap(store);
  const trial = new Trial(store, { kind, namespace, name });
  const body = h("div", null, empty("Deciding …"));
  const fail = (/** @type {unknown} */ error) => patch(body, problem(error));
  const show = (/** @type {any} */ answer) => {
    if (store.past) return;
    map.mark(answer);
    trial.start(answer);
    const canTry = new Set(answer.canTry);
    patch(body, caseOf(answer, (help) => (canTry.has(help) ? () => trial.suggest(help) : null)));
  };
  const explained = new Explained(store, [kind, namespace, name], show, fail);
  const showMoment = () => {
    aside.hidden = store.past !== null;
    if (store.past) patch(body, noDetails(store));
    else if (explained.answer) show(explained.answer);
    else explained.ask();
  };
  // Decisions are about the present.
  const aside = h("div", null, map.element, trial.element);
  const list = LISTS[/** @type {keyof typeof LISTS} */ (kind)] ?? "pods";
  const element = h(
    "div",
    { class: "why-view" },
    heading(
      `Why: ${kind} ${namespace}/${name}`,
      h("a", { href: to(list, [namespace, name]) }, `Open the ${kind}`),
      explained.element,
    ),
    h(
      "div",
      { class: "columns" },
      h("div", null, body),
      aside,
    ),
  );
  showMoment();
  return {
    element,
    update: (/** @type {Set<string>} */ parts) => {
      if (parts.has("moment")) showMoment();
      if (parts.has("decisions") && !store.past) explained.changed();
      if (parts.has("fleet")) map.refresh();
    },
    themeChanged: () => map.map.themeChanged(),
    close: () => {
      explained.close();
      map.map.close();
    },
  };
}

/**
 * The explanation of a pod, a claim, or a gang. `tryOf` returns what tries a suggested change; null if
 * it cannot be tried.
 * @param {any} answer @param {TryOf} [tryOf]
 * @typedef {(help: string) => (() => void) | null} TryOf
 */
export function caseOf(answer, tryOf = () => null) {
  if (answer.gangs) return answer.gangs.map((/** @type {any} */ each) => gangCase(each, tryOf));
  if (answer.pod) return podCase(answer, tryOf);
  return claimCase(answer, tryOf);
}

/** The result of an explanation, without the nodes: for a comparison. @param {any} answer */
export function briefOf(answer) {
  if (answer.gangs) return answer.gangs.map((/** @type {any} */ each) => [gangVerdict(each), members(each)]);
  if (answer.pod) return [podVerdict(answer), answer.cause ? h("p", { class: "cause" }, answer.cause) : null, given(answer.claims)];
  return claimCase({ ...answer, nodes: [], helps: [] }, () => null);
}

/** @param {any} pod */
function podVerdict(pod) {
  const placed = pod.node || pod.wouldGoTo;
  const fits = pod.preempts ? badge("fits after preemption", "near") : badge("would fit", "good");
  return [
    h(
      "p",
      { class: "lead" },
      pod.node ? badge("bound", "good") : pod.wouldGoTo ? fits : badge(pod.refused ? "not created" : "does not fit", "bad"),
      placed ? [" on ", nodeLink(placed)] : null,
    ),
    pod.preempts ? h("p", { class: "preempts" }, `Preempts ${pod.preempts}`) : null,
  ];
}

/** @param {any} pod @param {TryOf} tryOf */
function podCase(pod, tryOf) {
  return [
    podVerdict(pod),
    pod.schedulingGates?.length ? h("p", null, `Not scheduled before these scheduling gates are removed: ${pod.schedulingGates.join(", ")}`) : null,
    // The cause names the node of the first card; the scheduler's message can name another one.
    pod.cause ? h("p", { class: "cause" }, pod.cause) : null,
    pod.message && pod.message !== pod.cause ? h("p", { class: "message" }, "Message of the scheduler: ", pod.message) : null,
    pod.siblings ? h("p", null, pod.siblings) : null,
    given(pod.claims),
    helps(pod.helps, tryOf),
    nodes(pod.nodes),
  ];
}

/** How many members of a gang fit; "" if the scheduler's code did not place them. @param {any} gang */
export function fitOf(gang) {
  /** @type {any[]} */
  const pods = gang.pods ?? [];
  const isTried = gang.fits || pods.some((each) => each.node || each.message);
  return isTried ? `${pods.filter((each) => !each.message).length} of ${pods.length} fit` : "";
}

/** @param {any} gang */
function gangVerdict(gang) {
  // An explanation has the pods that fit; a gang that is placed has its state.
  const text = gang.status ?? (gang.fits === null ? "unknown: the search stopped at its limit" : gang.fits ? "would fit" : "does not fit");
  const count = fitOf(gang);
  const tone = gang.fits === null ? "near" : gang.message || gang.why ? "bad" : "good";
  return h("p", { class: "lead" }, badge(text, tone), h("b", null, gang.gang ?? gang.name ?? ""), count ? h("span", null, count) : null);
}

/** @param {any} gang @param {TryOf} tryOf */
function gangCase(gang, tryOf) {
  return h(
    "div",
    null,
    gangVerdict(gang),
    gang.message || gang.why ? h("p", { class: "message" }, gang.message || gang.why) : null,
    (gang.claims ?? []).map((/** @type {any} */ each) => claimCase(each, tryOf)),
    members(gang),
  );
}

/** The members of a gang; those with the same message together. @param {any} gang */
function members(gang) {
  if (!gang.pods) return memberList("bound", gang.placed ?? [], "good").concat(memberList("pending", gang.waiting ?? [], "bad"));
  /** @type {Map<string, any[]>} */
  const groups = new Map();
  for (const each of gang.pods) {
    // Messages name the claim of each member.
    const key = each.node ? "would fit" : (each.message ?? "").replace(/claim \S+: /g, "");
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups].flatMap(([message, pods]) => {
    const names = pods.map((/** @type {any} */ each) => [each.pod, each.node ?? ""].filter(Boolean).join(" on "));
    if (message === "would fit") return memberList(message, names, "good");
    return message ? memberList("does not fit", names, "bad", message) : memberList("waits for the others", names, "near");
  });
}

/** @param {string} state @param {string[]} names @param {string} tone @param {string} [message] */
function memberList(state, names, tone, message) {
  if (!names.length) return [];
  const shown = names.slice(0, MEMBERS_MAX);
  return [
    h(
      "details",
      { class: "members" },
      h("summary", null, badge(state, tone), ` ${counted(names.length, "pod")}`),
      message ? h("p", { class: "quiet" }, message) : null,
      h("ul", { class: "plain" }, shown.map((each) => h("li", { class: "name" }, each))),
      names.length > shown.length ? h("p", { class: "quiet" }, `and ${names.length - shown.length} more`) : null,
    ),
  ];
}

/** @param {any} claim @param {TryOf} tryOf */
function claimCase(claim, tryOf) {
  const title = claim.claim ?? `${claim.namespace}/${claim.name}`;
  return h(
    "div",
    null,
    h("h2", null, title.startsWith("pod ") ? title : `Claim ${title}`),
    claim.allocated || claim.devices?.length ? h("p", { class: "lead" }, badge("allocated", "good")) : null,
    (claim.devices ?? []).map((/** @type {string} */ each) => h("p", null, deviceLink(each))),
    claim.allocation ? given({ [title]: claim.allocation }) : null,
    helps(claim.helps ?? [], tryOf),
    nodes(claim.nodes ?? []),
  );
}

/** @param {{[claim: string]: any}} claims */
function given(claims) {
  const rows = Object.entries(claims ?? {}).map(([claim, allocation]) => {
    const results = allocation.devices?.results ?? [];
    const links = results.map((/** @type {any} */ each) =>
      h("li", null, `${each.request} → `, deviceLink(`${each.driver}/${each.pool}/${each.device}`)),
    );
    return h("li", null, `claim ${claim}`, h("ul", { class: "plain" }, links));
  });
  return rows.length ? h("ul", { class: "plain" }, rows) : null;
}

/** @param {string[]} helps @param {TryOf} tryOf */
function helps(helps, tryOf) {
  if (!helps?.length) return null;
  const rows = helps.map((each) => {
    const attempt = tryOf(each);
    return h("li", null, h("span", null, each), attempt ? h("button", { type: "button", class: "try", onclick: attempt, "aria-label": `Try: ${each}` }, "Try") : null);
  });
  return h("div", { class: "helps" }, h("h2", null, "Changes that would help"), h("ul", null, rows));
}

/** @param {any[]} nodes */
function nodes(nodes) {
  if (!nodes.length) return null;
  const cards = nodes.map((each, n) =>
    h(
      "li",
      { class: "card" },
      h(
        "p",
        { class: "lead" },
        nodeLink(each.node),
        n === 0 ? badge("closest node", "near") : null,
        each.alike.length ? h("span", { class: "quiet", title: each.alike.join(", ") }, `and ${counted(each.alike.length, "node")} like it`) : null,
      ),
      h("ul", { class: "reasons" }, each.reasons.map(reason)),
    ),
  );
  return h("div", null, h("h2", null, "Node by node"), h("ol", { class: "plain" }, cards));
}

/** @param {any} each */
function reason(each) {
  const shown = each.devices.slice(0, 8);
  return h(
    "li",
    null,
    each.request ? h("code", null, each.request) : null,
    ` ${each.fact}`,
    each.remedy ? h("span", { class: "remedy" }, ` → ${each.remedy}`) : null,
    shown.length
      ? h("span", { class: "devices" }, shown.map((/** @type {string} */ id) => deviceLink(id, id.split("/").pop())), each.devices.length > 8 ? ` and ${each.devices.length - 8} more` : null)
      : null,
  );
}

/** A map of the closest nodes. */
class NearMap {
  /** @param {import("../store.js").Store} store */
  constructor(store) {
    this.store = store;
    /** @type {string[]} */
    this.nodes = [];
    /** @type {string[]} */
    this.marks = [];
    this.place = h("div", { class: "place small" });
    this.caption = h("figcaption", { class: "quiet" });
    this.element = h("figure", { class: "near", hidden: true }, this.place, this.caption);
    this.map = new FleetMap(this.place, {
      label: "Map of the closest nodes",
      select: (id) => (location.hash = toDevice(id)),
    });
  }

  /** @param {any} answer */
  mark(answer) {
    const stories = storiesOf(answer);
    this.nodes = [...new Set(stories.map((each) => each.node))].slice(0, NODES_ON_MAP);
    /** The devices whose release would let the pod fit, as the decider found them. */
    this.marks = answer.inTheWay ?? [];
    this.element.hidden = !this.nodes.length;
    fill(
      this.caption,
      this.marks.length
        ? `The closest nodes. If the claims of the marked devices are deleted, the pod fits on node ${this.nodes[0]}. `
        : "The closest nodes. ",
      this.nodes.length ? h("a", { href: to("fleet", [], { node: this.nodes[0] }) }, "Show on the whole map") : null,
    );
    this.refresh();
  }

  refresh() {
    const { fleet } = this.store;
    if (!fleet || !this.nodes.length) return;
    const wanted = new Set(this.nodes);
    const marked = new Set(this.marks.map((id) => idParts(id)[0]));
    this.map.collapse(auxiliaryDrivers(fleet.drivers().keys()).filter((each) => !marked.has(each)));
    this.map.show(partOf(fleet, wanted));
    this.map.highlight(this.marks, this.nodes.slice(0, 1));
  }
}

/** The explanations of nodes, wherever they are in the answer. @param {any} answer @returns {any[]} */
function storiesOf(answer) {
  if (answer.gangs) return answer.gangs.flatMap((/** @type {any} */ gang) => (gang.claims ?? []).flatMap(storiesOf));
  return answer.nodes ?? [];
}

/** @param {Fleet} fleet @param {Set<string>} nodes */
function partOf(fleet, nodes) {
  const part = Object.create(Fleet.prototype);
  const devices = [...fleet.devices].filter(([, each]) => nodes.has(each.node));
  return Object.assign(part, fleet, { devices: new Map(devices) });
}
