// Try a change on a copy: another class, selector, count or node.

import { get, post } from "../api.js";
import { fill, h } from "../dom.js";
import { badge, problem } from "../parts.js";
import { caseOf } from "./why.js";

/**
 * @param {import("../store.js").Store} store
 * @param {{kind: string, namespace: string, name: string}} subject
 */
export function trialForm(store, subject) {
  const classes = h("datalist", { id: "trial-classes" });
  const nodes = h("datalist", { id: "trial-nodes" });
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const form = h(
    "form",
    {
      class: "trial",
      onsubmit: (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        attempt(subject, form, answer);
      },
    },
    field("class", "Class", { list: "trial-classes", placeholder: "unchanged" }),
    field("count", "Count", { type: "number", min: 1, max: 32, placeholder: "unchanged" }),
    field("selectors", "Selectors (CEL)", { placeholder: "device.driver == \"…\"" }),
    field("node", "Only node", { list: "trial-nodes", placeholder: "any" }),
    field("request", "Only request", { placeholder: "all" }),
    h("button", { type: "submit" }, "Try"),
    classes,
    nodes,
  );
  fill(nodes, [...(store.fleet?.nodes.keys() ?? [])].slice(0, 500).map((each) => h("option", { value: each })));
  get("classes").then(
    (found) => fill(classes, found.classes.map((/** @type {any} */ each) => h("option", { value: each.name }))),
    () => {},
  );
  return h(
    "section",
    { class: "part" },
    h("h2", null, "Try a change"),
    h("p", { class: "quiet" }, "The code of the scheduler decides on a copy. Nothing is written to the cluster."),
    form,
    answer,
  );
}

/** @param {string} name @param {string} label @param {any} properties */
function field(name, label, properties) {
  return h("label", null, h("span", null, label), h("input", { name, autocomplete: "off", ...properties }));
}

/** @param {any} subject @param {HTMLFormElement} form @param {HTMLElement} answer */
async function attempt(subject, form, answer) {
  const change = changeOf(new FormData(form));
  if (!Object.keys(change).length) {
    fill(answer, problem("Fill in at least one field."));
    return;
  }
  fill(answer, h("p", { class: "quiet" }, "Deciding …"));
  try {
    const found = await post("try", { ...subject, change });
    fill(
      answer,
      h("p", { class: "lead" }, verdictOf(found.fits)),
      caseOf(found.after),
    );
  } catch (error) {
    fill(answer, problem(error));
  }
}

/** @param {boolean | null} fits whether the subject fits; null if the search stopped at its limit */
function verdictOf(fits) {
  if (fits === null) return badge("unknown: the search stopped at its limit", "near");
  return fits ? badge("fits with this change", "good") : badge("does not fit with this change", "bad");
}

/** @param {FormData} data */
function changeOf(data) {
  /** @type {{[name: string]: any}} */
  const change = {};
  for (const [name, value] of data) {
    const text = String(value).trim();
    if (!text) continue;
    if (name === "count") change.count = Number(text);
    else if (name === "selectors") change.selectors = [text];
    else change[name] = text;
  }
  return change;
}
