// DeviceClasses: what claims ask for by name.

import { h } from "../dom.js";
import { clock, empty, Table } from "../parts.js";
import { askedList } from "./asked.js";

export function classesView() {
  const table = new Table(
    "Classes",
    [
      { title: "Class", cell: (each) => each.name, class: "wide name" },
      {
        title: "Selects",
        cell: (each) => each.selectors.map((/** @type {string} */ text) => h("code", { class: "expression" }, text)),
        class: "text",
      },
      { title: "Extended resource", cell: (each) => each.extendedResourceName || "–", class: "name" },
      { title: "Configures", cell: (each) => each.configuredDrivers.join(", ") || "–", class: "name" },
      { title: "Since", cell: (each) => clock(each.created) },
    ],
    (each) => each.name,
  );
  return askedList("classes", {
    title: "Classes",
    table,
    nothing: empty("No DeviceClasses yet: claims need a DeviceClass to request devices."),
    text: (/** @type {any} */ each) => `${each.name} ${each.selectors.join(" ")} ${each.extendedResourceName}`,
  });
}
