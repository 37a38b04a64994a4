// Help: the keys, and what colours and marks mean.

import { h } from "./dom.js";
import { MEANINGS, swatch } from "./map/paint.js";

const KEYS = [
  ["/", "search"],
  ["?", "this help"],
  ["g then f d p c g s k e", "go to fleet, devices, pending, claims, gangs, slices, classes, events"],
  ["← ↑ → ↓", "on the map: the next device"],
  ["Shift ← ↑ → ↓", "on the map: move it"],
  ["+  −  0", "on the map: nearer, farther, all of it"],
  ["Esc", "close, or select nothing"],
];

export class Help {
  constructor() {
    this.dialog = h("dialog", { "aria-labelledby": "help-title", class: "help" });
    document.body.append(this.dialog);
    this.dialog.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      if (event.target === this.dialog) this.dialog.close();
    });
  }

  open() {
    if (this.dialog.open) return;
    const close = h("button", { type: "button", onclick: () => this.dialog.close() }, "Close");
    this.dialog.replaceChildren(
      h("h2", { id: "help-title" }, "Help"),
      h("h3", null, "Keys"),
      h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", null, h("kbd", null, key)), h("dd", null, what)]).flat()),
      h("h3", null, "Devices"),
      h("ul", { class: "meanings" }, Object.entries(MEANINGS).map(([state, text]) => h("li", null, swatch(state), h("span", null, text)))),
      h("p", { class: "quiet" }, "The page only reads; what you try here changes nothing in the cluster."),
      close,
    );
    this.dialog.showModal();
    close.focus();
  }
}
