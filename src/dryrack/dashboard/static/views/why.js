// Why a pod, claim or gang is pending: what each node lacks, the closest nodes on a map, and fixes.

import { path } from "../api.js";
import { counted, fill, h } from "../dom.js";
import { Fleet } from "../map/fleet.js";
import { FleetMap } from "../map/map.js";
import { badge, detailView, deviceLink, heading, nodeLink, noDetails } from "../parts.js";
import { to, toDevice } from "../routes.js";
import { trialForm } from "./trial.js";

const NODES_ON_MAP = 12;
const LISTS = { pod: "pods", claim: "claims", gang: "gangs" };

/** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
export function whyView({ store }, route) {
  const [kind = "pod", namespace = "", ...rest] = route.names;
  const name = rest.join("/");
  const map = new NearMap(store);
  const view = detailView({
    path: `explain/${path(kind, namespace, name)}`,
    parts: ["fleet", "claims", "pods", "gangs"],
    past: () => noDetails(store),
    show: (answer) => {
      map.mark(answer);
      return caseOf(answer);
    },
  });
  const list = LISTS[/** @type {keyof typeof LISTS} */ (kind)] ?? "pods";
  const element = h(
    "div",
    { class: "why-view" },
    heading(
      `Why: ${kind} ${namespace}/${name}`,
      h("a", { href: to(list, [namespace, name]) }, `Open the ${kind}`),
    ),
    h(
      "div",
      { class: "columns" },
      h("div", null, view.element),
      h("div", null, map.element, trialForm(store, { kind, namespace, name })),
    ),
  );
  return {
    element,
    update: (/** @type {Set<string>} */ parts) => {
      view.update(parts);
      if (parts.has("fleet")) map.refresh();
    },
    themeChanged: () => map.map.themeChanged(),
    close: () => {
      view.close();
      map.map.close();
    },
  };
}

/** The case of a pod, a claim or a gang, as explain tells it. @param {any} answer */
export function caseOf(answer) {
  if (answer.gangs) return answer.gangs.map(gangCase);
  if (answer.pod) return podCase(answer);
  return claimCase(answer);
}

/** @param {any} pod */
function podCase(pod) {
  const placed = pod.node || pod.wouldGoTo;
  return [
    h(
      "p",
      { class: "lead" },
      pod.node ? badge("bound", "good") : pod.wouldGoTo ? badge("would fit", "good") : badge("does not fit", "bad"),
      placed ? [" on ", nodeLink(placed)] : null,
    ),
    pod.schedulingGates?.length ? h("p", null, `Not scheduled before these scheduling gates are removed: ${pod.schedulingGates.join(", ")}`) : null,
    // The cause names the node of the first card; the scheduler's message can name another one.
    pod.cause ? h("p", { class: "cause" }, pod.cause) : null,
    pod.message && pod.message !== pod.cause ? h("p", { class: "message" }, "Message of the scheduler: ", pod.message) : null,
    given(pod.claims),
    helps(pod.helps),
    nodes(pod.nodes),
  ];
}

/** @param {any} gang */
function gangCase(gang) {
  return h(
    "div",
    null,
    h("p", { class: "lead" }, badge(gang.status ?? (gang.message ? "does not fit" : "would fit"), gang.message || gang.why ? "bad" : "good"), ` ${gang.name ?? ""}`),
    gang.message || gang.why ? h("p", { class: "message" }, gang.message || gang.why) : null,
    members(gang),
    (gang.claims ?? []).map(claimCase),
  );
}

/** @param {any} gang */
function members(gang) {
  const pairs = (/** @type {any} */ value) => (Array.isArray(value) ? value.map((each) => [each, ""]) : Object.entries(value ?? {}));
  const rows = [
    ...pairs(gang.placed).map(([pod, node]) => h("li", null, badge("bound", "good"), ` ${pod} `, node ? nodeLink(String(node)) : null)),
    ...pairs(gang.waiting).map(([pod, message]) => h("li", null, badge("pending", "bad"), ` ${pod} `, h("span", { class: "quiet" }, String(message)))),
  ];
  return rows.length ? h("ul", { class: "plain" }, rows) : null;
}

/** @param {any} claim */
function claimCase(claim) {
  return h(
    "div",
    null,
    h("h2", null, `Claim ${claim.claim ?? `${claim.namespace}/${claim.name}`}`),
    claim.allocated || claim.devices?.length ? h("p", { class: "lead" }, badge("allocated", "good")) : null,
    (claim.devices ?? []).map((/** @type {string} */ each) => h("p", null, deviceLink(each))),
    helps(claim.helps ?? []),
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

/** @param {string[]} helps */
function helps(helps) {
  if (!helps?.length) return null;
  return h("div", { class: "helps" }, h("h2", null, "Changes that would help"), h("ul", null, helps.map((each) => h("li", null, each))));
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
    this.map.show(partOf(fleet, wanted));
    this.map.highlight(this.marks, this.nodes.slice(0, 1));
  }
}

/** What is told of nodes, wherever it is in the answer. @param {any} answer @returns {any[]} */
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
