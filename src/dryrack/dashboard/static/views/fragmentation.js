// Fragmentation: how many devices are free on how many nodes, and the pods whose move frees whole
// nodes, which the server tries on a copy of the cluster.

import { get, path } from "../api.js";
import { counted, fill, h } from "../dom.js";
import { empty, heading, loading, nodeLink, objectLink, problem, section } from "../parts.js";
import { Table } from "../table.js";

const BINS_MAX = 16;
const NODES_SHOWN_MAX = 20;

/** @param {import("../page.js").Context} context */
export function fragmentationView({ store, announce }) {
  const parts = h("div", null, loading());
  /** @type {Map<string, Driver>} */
  const drivers = new Map();
  const update = () => {
    const { fleet } = store;
    if (!fleet) return;
    const names = [...new Set(fleet.summary.map((each) => each.driver))].sort();
    for (const name of names) if (!drivers.has(name)) drivers.set(name, new Driver(name, store, announce));
    const shown = names.map((name) => {
      const driver = /** @type {Driver} */ (drivers.get(name));
      driver.show(fleet.summary.filter((each) => each.driver === name));
      return driver.element;
    });
    const same = shown.length === parts.children.length && shown.every((each, n) => parts.children[n] === each);
    if (!same) fill(parts, shown.length ? shown : empty("No devices yet."));
  };
  update();
  const about = h(
    "p",
    { class: "quiet" },
    "A free device is one that can be allocated together with all others that are counted: partitions that overlap count once.",
  );
  return {
    element: h("div", { class: "fragmentation-view" }, heading("Fragmentation"), about, parts),
    update: (/** @type {Set<string>} */ changed) => changed.has("fleet") && update(),
  };
}

/** The models of a driver, and the moves that free whole nodes of it. */
class Driver {
  /** @param {string} name @param {import("../store.js").Store} store @param {(text: string) => void} announce */
  constructor(name, store, announce) {
    this.name = name;
    this.store = store;
    this.announce = announce;
    /** @type {any} */
    this.answer = null;
    this.models = h("div", { class: "histograms" });
    this.button = h("button", { type: "button", onclick: () => this._find() }, "Find pods to move");
    this.note = h("p", { class: "quiet" });
    this.result = h("div", null);
    this.element = section(name, this.models, h("div", { class: "lead" }, this.button, this.note), this.result);
    this._shown = "";
  }

  /** @param {any[]} summary */
  show(summary) {
    const text = JSON.stringify(summary.map((each) => [each.model, each.nodes, each.freeIsAtLeast]));
    if (text !== this._shown) {
      this._shown = text;
      fill(this.models, summary.map((each) => histogram(each)));
    }
    this.button.disabled = this.store.past !== null;
    const past = "The history has no details of pods: moves are found for the present only.";
    const stale = this.answer && this.answer.revision !== this.store.present?.revision;
    this.note.textContent = this.store.past ? past : stale ? "The cluster has changed since then. Find again to see what is true now." : "";
    this.result.hidden = this.store.past !== null;
    this.result.classList.toggle("stale", Boolean(stale));
  }

  async _find() {
    this.button.disabled = true;
    fill(this.result, h("p", { role: "status" }, "Trying moves on a copy of the cluster …"));
    try {
      this.answer = await get(`defragment/${path(this.name)}`);
      fill(this.result, found(this.answer));
      this.announce(sentence(this.answer));
    } catch (error) {
      this.answer = null;
      fill(this.result, problem(error));
    }
    this.button.disabled = false;
  }
}

/**
 * The number of nodes by free devices: a bar for each number.
 * @param {any} model @param {any} [after] the same model after the moves
 */
function histogram(model, after) {
  const counts = byFree(model);
  const later = after ? byFree(after) : null;
  const most = Math.max(1, ...counts.values(), ...(later?.values() ?? []));
  const numbers = [...new Set([...counts.keys(), ...(later?.keys() ?? [])])].sort((a, b) => a - b);
  const devices = Math.max(0, ...model.nodes.map((/** @type {any} */ each) => each.devices));
  // A few numbers are shown without gaps.
  const keys = devices <= BINS_MAX ? Array.from({ length: Math.max(devices, numbers.at(-1) ?? 0) + 1 }, (_, n) => n) : numbers;
  const label = keys.map((free) => `${counts.get(free) ?? 0} nodes with ${free} free${later ? `, then ${later.get(free) ?? 0}` : ""}`).join("; ");
  return h(
    "figure",
    { class: "histogram card" },
    h("figcaption", null, h("b", null, model.model || model.driver), h("span", { class: "quiet" }, ` ${model.freeIsAtLeast ? "at least " : ""}${model.free.toLocaleString("en")} of ${model.devices.toLocaleString("en")} free`)),
    h(
      "div",
      { class: "bars", role: "img", "aria-label": label },
      keys.map((free) =>
        h(
          "div",
          { class: "bin", title: `${counted(counts.get(free) ?? 0, "node")} with ${free} free${later ? `, after the moves ${later.get(free) ?? 0}` : ""}` },
          h("span", { class: "count" }, amounts(counts.get(free) ?? 0, later?.get(free) ?? (later ? 0 : null))),
          h(
            "span",
            { class: "pair" },
            h("i", { style: { height: `${(100 * (counts.get(free) ?? 0)) / most}%` } }),
            later ? h("i", { class: "after", style: { height: `${(100 * (later.get(free) ?? 0)) / most}%` } }) : null,
          ),
          h("span", { class: "free" }, free),
        ),
      ),
    ),
    h("p", { class: "quiet" }, `free devices on a node${devices ? ` of up to ${devices}` : ""}; bars: nodes${later ? ", before and after" : ""}`),
  );
}

/** @param {number} before @param {number | null} after */
function amounts(before, after) {
  if (!before && !after) return "";
  if (after === null || after === before) return before.toLocaleString("en");
  return [before.toLocaleString("en"), h("br", null), `→ ${after.toLocaleString("en")}`];
}

/** @param {any} model @returns {Map<number, number>} the number of nodes by free devices */
function byFree({ nodes }) {
  const counts = new Map();
  for (const each of nodes) counts.set(each.free, (counts.get(each.free) ?? 0) + each.nodes);
  return counts;
}

/** @param {any} answer */
function sentence({ moves, freed, isComplete, tried, whole, nodes }) {
  const now = `${whole.toLocaleString("en")} of ${counted(nodes, "node")} ${whole === 1 ? "is" : "are"} whole`;
  if (!freed.length) {
    const search = isComplete ? "No pods can be moved so that a node becomes whole" : `No node of the first ${counted(tried, "node")} that were tried can be freed`;
    return `${search}. ${now}.`;
  }
  const limit = isComplete ? "" : ` The search stopped after ${counted(tried, "node")}.`;
  return `Moving ${counted(moves.length, "pod")} frees ${counted(freed.length, "whole node")}. Now ${now}.${limit}`;
}

/** @param {any} answer */
function found(answer) {
  const { moves, freed, fixed } = answer;
  const places = {
    any: "Cordon the freed nodes, then delete the pods of one node after the other: the scheduler places all of them, and no other node is used up.",
    pinned: "Pin each pod to its node: left to itself, the scheduler does not place all of them like this.",
  };
  return [
    h("p", { class: "helps" }, h("b", null, sentence(answer))),
    answer.notes.map((/** @type {string} */ each) => h("p", { class: "quiet" }, each)),
    moves.length
      ? [
          h("p", null, places[/** @type {"any" | "pinned"} */ (answer.placement)]),
          freedNodes(freed),
          h("p", { class: "quiet" }, answer.before.length ? "Free devices on the nodes of the moves, before and after:" : "There are too many partitions to count the free devices after the moves."),
          h("div", { class: "histograms" }, answer.before.map((/** @type {any} */ each) => histogram(each, answer.after.find((/** @type {any} */ one) => one.model === each.model)))),
          movesTable(moves),
        ]
      : null,
    fixed.length ? fixedPods(answer) : null,
  ];
}

/** @param {string[]} freed */
function freedNodes(freed) {
  const links = [...freed]
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }))
    .flatMap((each, n) => [n ? ", " : "", nodeLink(each)]);
  if (freed.length <= NODES_SHOWN_MAX) return h("p", null, "Freed: ", links);
  return h("details", null, h("summary", null, `Freed: ${counted(freed.length, "node")}`), h("p", null, links));
}

/** @param {any[]} moves */
function movesTable(moves) {
  const table = new Table(
    "Moves",
    [
      { key: "pod", title: "Pod", cell: (row) => podLink(row.pod), class: "wide" },
      { key: "from", title: "From", cell: (row) => nodeLink(row.from) },
      { key: "to", title: "To", cell: (row) => (row.from === row.to ? "same node, created again" : nodeLink(row.to)) },
      { key: "gang", title: "Gang", cell: (row) => (row.gang ? linkOf("gangs", row.gang) : "–") },
    ],
    (row) => row.pod,
  );
  table.show(moves);
  return table.element;
}

/** @param {any} answer */
function fixedPods({ fixed, fixedOmitted }) {
  const table = new Table(
    "Pods that cannot be moved",
    [
      { key: "name", title: "Pod or claim", cell: (row) => (row.why.startsWith("the claim ") ? linkOf("claims", row.name) : podLink(row.name)), class: "wide" },
      { key: "node", title: "Node", cell: (row) => nodeLink(row.node) },
      { key: "why", title: "Why", cell: (row) => row.why, class: "text" },
    ],
    (row) => `${row.node}/${row.name}`,
  );
  table.show(fixed);
  return h(
    "details",
    null,
    h("summary", null, `${counted(fixed.length + fixedOmitted, "pod or claim", "pods and claims")} cannot be moved`),
    table.element,
    fixedOmitted ? h("p", { class: "quiet" }, `and ${fixedOmitted.toLocaleString("en")} more`) : null,
  );
}

/** @param {string} name */
function podLink(name) {
  return linkOf("pods", name);
}

/** @param {"pods" | "gangs" | "claims"} view @param {string} name */
function linkOf(view, name) {
  const [namespace, ...rest] = name.split("/");
  return objectLink(view, namespace, rest.join("/"));
}
