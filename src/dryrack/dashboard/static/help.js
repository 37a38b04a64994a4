// Help: the keys, and the meaning of colors and marks.

import { h } from "./dom.js";
import { MEANINGS, swatch } from "./map/paint.js";

const KEYS = [
  ["/", "search"],
  ["?", "show this help"],
  ["g then f d p c g n s k e", "open fleet, devices, pending, claims, gangs, nodes, slices, classes, events"],
  ["← ↑ → ↓", "on the map: select the next device"],
  ["Shift ← ↑ → ↓", "on the map: move the map"],
  ["+  −  0", "on the map: zoom in, zoom out, show all"],
  ["Esc", "close, or clear the selection"],
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
      h("p", { class: "quiet" }, "The dashboard only reads: what you try here does not change the cluster."),
      close,
    );
    this.dialog.showModal();
    close.focus();
  }
}
