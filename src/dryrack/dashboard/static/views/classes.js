// DeviceClasses.

import { h } from "../dom.js";
import { age } from "../ages.js";
import { empty, objectName } from "../parts.js";
import { Table } from "../table.js";
import { askedList } from "./asked.js";

export function classesView() {
  const table = new Table(
    "Classes",
    [
      { key: "name", title: "Class", cell: (each) => objectName("class", "", each.name), class: "wide name" },
      {
        key: "selects",
        title: "Selects",
        value: (each) => each.selectors.join(" "),
        cell: (each) => each.selectors.map((/** @type {string} */ text) => h("code", { class: "expression" }, text)),
        class: "text",
      },
      { key: "extendedResourceName", title: "Extended resource", cell: (each) => each.extendedResourceName || "–", class: "name" },
      {
        key: "configures",
        title: "Configures",
        cell: (each) => each.configuredDrivers.join(", ") || "–",
        value: (each) => each.configuredDrivers.join(" "),
        class: "name",
      },
      { key: "age", title: "Age", cell: (each) => age(each.created), value: (each) => -Date.parse(each.created) },
    ],
    (each) => each.name,
  );
  return askedList("classes", {
    title: "Classes",
    table,
    nothing: empty("No DeviceClasses yet: claims need a DeviceClass to request devices."),
  });
}
