// An object as YAML, and the kubectl commands that print it.

import { get, path } from "./api.js";
import { fill, h } from "./dom.js";
import { heading, loading, problem } from "./parts.js";

/** @typedef {{element: HTMLElement, update: () => void}} Below */

/**
 * A part of a view that reads the YAML of an object when the user opens it.
 * @param {string} kind @param {string[]} names namespace and name, or the name
 * @returns {Below}
 */
export function yamlPart(kind, names) {
  const body = h("div", null);
  const details = h("details", { class: "part yaml", ontoggle: () => update() }, h("summary", null, "YAML and kubectl"), body);
  const update = () => {
    if (details.open) show(body, kind, names);
  };
  return { element: details, update };
}

/** A view of an object that has no other view. @param {import("./page.js").Context} _ @param {import("./routes.js").Route} route */
export function objectView(_, route) {
  const [kind = "", ...names] = route.names;
  const body = h("div", { class: "yaml" }, loading());
  show(body, kind, names);
  return {
    element: h("div", null, heading(`${kind} ${names.join("/")}`), body),
    update: (/** @type {Set<string>} */ parts) => {
      if (parts.has("fleet")) show(body, kind, names);
    },
  };
}

/** @param {HTMLElement} body @param {string} kind @param {string[]} names */
async function show(body, kind, names) {
  try {
    const found = await get(`objects/${path(kind, ...names)}`);
    // The selection of the user stays if nothing changed.
    const text = JSON.stringify([found.commands, found.yaml]);
    if (body.dataset.text === text) return;
    body.dataset.text = text;
    fill(
      body,
      found.commands.map((/** @type {string} */ each) => h("div", { class: "command" }, h("code", null, each), copyButton(each, "Copy the command"))),
      h("div", { class: "source" }, copyButton(found.yaml, "Copy the YAML"), h("pre", { tabindex: 0, "aria-label": `${found.kind} as YAML` }, found.yaml)),
    );
  } catch (error) {
    delete body.dataset.text;
    fill(body, problem(error));
  }
}

/** @param {string} text @param {string} label */
export function copyButton(text, label) {
  const button = h("button", { type: "button", class: "copy", title: label, "aria-label": label, onclick: () => copy() }, "Copy");
  const copy = async () => {
    button.textContent = (await copied(text)) ? "Copied" : "Select and copy";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  };
  return button;
}

/** @param {string} text @returns {Promise<boolean>} whether the text is in the clipboard */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Behind a proxy without HTTPS, browsers offer no clipboard.
    const field = h("textarea", { class: "unseen" }, text);
    document.body.append(field);
    field.select();
    const isCopied = document.execCommand("copy");
    field.remove();
    return isCopied;
  }
}
