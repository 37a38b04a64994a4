// Try a change on a copy: other requests, one node, another priority, or a suggested change. The
// form starts with the current values.

import { get, post } from "../api.js";
import { fill, h } from "../dom.js";
import { badge, problem } from "../parts.js";
import { briefOf, caseOf } from "./why.js";

/** @typedef {{name: string, class: string, count: number | null, selectors: string[], capacity: {[name: string]: string}}} Request */

export class Trial {
  /**
   * @param {import("../store.js").Store} store
   * @param {{kind: string, namespace: string, name: string}} subject
   */
  constructor(store, subject) {
    this.store = store;
    this.subject = subject;
    /** The values with which the form began. @type {any} */
    this.current = null;
    /** Claims of the form, with their elements. @type {ClaimFields[]} */
    this.claims = [];
    this.answer = h("div", { class: "answer", "aria-live": "polite", tabindex: -1 });
    this.classes = h("datalist", { id: "trial-classes" });
    this.nodes = h("datalist", { id: "trial-nodes" });
    this.node = h("input", { name: "node", list: "trial-nodes", placeholder: "any", autocomplete: "off" });
    this.priority = h("input", { name: "priority", type: "number", step: 1 });
    this.fields = h("div", null);
    this.changed = h("p", { class: "quiet", role: "status" });
    this.form = h(
      "form",
      {
        class: "trial",
        onsubmit: (/** @type {SubmitEvent} */ event) => {
          event.preventDefault();
          this._try();
        },
      },
      this.fields,
      h("div", { class: "fields" }, labeled("Only node", this.node), labeled("Priority", this.priority)),
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "submit" }, "Try"),
        h("button", { type: "button", onclick: () => this._reset() }, "Reset"),
        this.changed,
      ),
      this.classes,
      this.nodes,
    );
    this.element = h(
      "section",
      { class: "part", hidden: true },
      h("h2", null, "Try a change"),
      h("p", { class: "quiet" }, "The code of the scheduler decides on a copy. Nothing is written to the cluster."),
      this.form,
      this.answer,
    );
    this._offer();
  }

  _offer() {
    const names = [...(this.store.fleet?.nodes.keys() ?? [])].slice(0, 500);
    fill(this.nodes, names.map((each) => h("option", { value: each })));
    get("classes").then(
      (found) => fill(this.classes, found.classes.map((/** @type {any} */ each) => h("option", { value: each.name }))),
      () => {},
    );
  }

  /** Starts the form, or starts it again unless the user has changed it. @param {any} answer of `explain` */
  start(answer) {
    const text = JSON.stringify(answer.current);
    if (this.current && (text === JSON.stringify(this.current) || this._isEdited())) {
      this.changed.textContent = text === JSON.stringify(this.current) ? "" : "The current values have changed. Reset shows them.";
      this._latest = answer.current;
      return;
    }
    this._latest = answer.current;
    this._reset();
    this.element.hidden = false;
  }

  /** @type {any} */
  _latest = null;

  _reset() {
    this.current = this._latest;
    this.claims = this.current.claims.map((/** @type {any} */ each) => new ClaimFields(each));
    this.node.value = "";
    this.priority.value = this.current.priority ?? "";
    this.priority.disabled = this.current.priority === null;
    this.changed.textContent = "";
    fill(this.fields, this.claims.map((each) => each.element));
  }

  _isEdited() {
    return Object.keys(this._change()).length > 0;
  }

  /** What differs from the current values. */
  _change() {
    /** @type {{[name: string]: any}} */
    const change = {};
    const claims = this.claims.filter((each) => each.isEdited());
    if (claims.length) change.claims = claims.map((each) => ({ claim: each.name, requests: each.values() }));
    if (this.node.value.trim()) change.node = this.node.value.trim();
    const priority = this.priority.value === "" ? null : Number(this.priority.value);
    if (priority !== this.current.priority) change.priority = priority ?? 0;
    return change;
  }

  _try() {
    const change = this._change();
    if (!Object.keys(change).length) fill(this.answer, problem("Change at least one value."));
    else this._attempt({ change }, "With this change");
  }

  /** Tries a change that an explanation suggests. @param {string} help */
  suggest(help) {
    this._attempt({ help }, help);
    this.answer.scrollIntoView({ block: "nearest" });
    this.answer.focus({ preventScroll: true });
  }

  /** @param {any} body @param {string} title */
  async _attempt(body, title) {
    fill(this.answer, h("p", { class: "progress" }, h("progress", { "aria-label": "Deciding" }), h("span", { class: "quiet" }, "Deciding …")));
    try {
      const found = await post("try", { ...this.subject, ...body });
      fill(
        this.answer,
        h("h3", null, title),
        h("p", { class: "lead" }, verdictOf(found.fits)),
        h(
          "div",
          { class: "compare" },
          h("section", { class: "card" }, h("h4", null, "Before"), briefOf(found.before)),
          h("section", { class: "card" }, h("h4", null, "After"), briefOf(found.after)),
        ),
        found.fits ? null : h("details", null, h("summary", null, "Node by node after the change"), caseOf(found.after)),
      );
    } catch (error) {
      fill(this.answer, problem(error));
    }
  }
}

/** @param {boolean | null} fits whether the subject fits; null if the search stopped at its limit */
function verdictOf(fits) {
  if (fits === null) return badge("unknown: the search stopped at its limit", "near");
  return fits ? badge("fits with this change", "good") : badge("does not fit with this change", "bad");
}

/** @param {string} label @param {HTMLElement} input */
function labeled(label, input) {
  return h("label", null, h("span", null, label), input);
}

/** The requests of one claim: a list in which the user adds, edits, and removes. */
class ClaimFields {
  /** @param {{claim: string, alike: number, requests: Request[]}} current */
  constructor(current) {
    this.name = current.claim;
    this.before = JSON.stringify(current.requests);
    /** @type {RequestFields[]} */
    this.requests = [];
    this.list = h("ul", { class: "plain" });
    const alike = current.alike > 1 ? ` and ${current.alike - 1} like it` : "";
    this.element = h(
      "fieldset",
      null,
      h("legend", null, `Claim ${current.claim}${alike}`),
      this.list,
      h("button", { type: "button", class: "add", onclick: () => this._add() }, "+ Request"),
    );
    for (const each of current.requests) this._put(each);
  }

  /** @param {Request} request */
  _put(request) {
    const fields = new RequestFields(request, () => {
      this.requests = this.requests.filter((each) => each !== fields);
      fields.element.remove();
    });
    this.requests.push(fields);
    this.list.append(fields.element);
    return fields;
  }

  _add() {
    const like = this.requests.at(-1)?.value();
    let number = this.requests.length + 1;
    while (this.requests.some((each) => each.value().name === `request-${number}`)) number++;
    this._put({ name: `request-${number}`, class: like?.class ?? "", count: 1, selectors: [], capacity: {} }).focus();
  }

  values() {
    return this.requests.map((each) => each.value());
  }

  isEdited() {
    return JSON.stringify(this.values()) !== this.before;
  }
}

class RequestFields {
  /** @param {Request} request @param {() => void} remove */
  constructor(request, remove) {
    this.name = h("input", { name: "request", value: request.name, required: true, autocomplete: "off" });
    this.class = h("input", { name: "class", value: request.class, list: "trial-classes", required: true, autocomplete: "off" });
    this.count = h("input", { name: "count", type: "number", min: 1, max: 32, value: request.count ?? 1, disabled: request.count === null });
    this.all = h("input", { type: "checkbox", name: "all", checked: request.count === null, onchange: () => (this.count.disabled = this.all.checked) });
    this.selectors = h("ul", { class: "plain" });
    this.amounts = Object.entries(request.capacity).map(([name, amount]) => ({ name, input: h("input", { name: "capacity", value: amount, autocomplete: "off" }) }));
    for (const each of request.selectors) this._select(each);
    this.element = h(
      "li",
      { class: "request card" },
      h(
        "div",
        { class: "fields" },
        labeled("Request", this.name),
        labeled("Class", this.class),
        labeled("Count", this.count),
        h("label", { class: "check" }, this.all, " all that match"),
        this.amounts.map(({ name, input }) => labeled(name, input)),
      ),
      this.selectors,
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "button", class: "add", onclick: () => this._select("").focus() }, "+ Selector"),
        h("button", { type: "button", class: "remove", onclick: remove }, "Remove request"),
      ),
    );
  }

  /** @param {string} expression */
  _select(expression) {
    const input = h("input", { name: "selectors", "aria-label": "Selector (CEL)", value: expression, placeholder: "device.driver == \"…\"", autocomplete: "off", spellcheck: "false" });
    const row = h(
      "li",
      { class: "selector" },
      input,
      h("button", { type: "button", class: "icon", "aria-label": "Remove the selector", title: "Remove the selector", onclick: () => row.remove() }, "×"),
    );
    this.selectors.append(row);
    return input;
  }

  focus() {
    this.class.focus();
  }

  /** @returns {Request} */
  value() {
    const inputs = /** @type {HTMLInputElement[]} */ ([...this.selectors.querySelectorAll("input")]);
    const amounts = this.amounts.map(({ name, input }) => [name, input.value.trim()]);
    return {
      name: this.name.value.trim(),
      class: this.class.value.trim(),
      count: this.all.checked ? null : Number(this.count.value),
      selectors: inputs.map((each) => each.value.trim()).filter(Boolean),
      capacity: Object.fromEntries(amounts.filter(([, amount]) => amount)),
    };
  }
}
