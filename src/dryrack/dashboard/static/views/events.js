// Events, the latest first.

import { age } from "../ages.js";
import { badge, empty, nodeLink, objectLink, objectName } from "../parts.js";
import { nameOf } from "../store.js";
import { listView, Table } from "../table.js";

const VIEWS = { Pod: "pods", ResourceClaim: "claims", PodGroup: "gangs" };

/** @param {import("../page.js").Context} context */
export function eventsView({ store, announce }) {
  const table = new Table(
    "Events",
    [
      { key: "age", title: "Age", cell: (event) => age(event.time), value: (event) => -Date.parse(event.time) },
      { key: "type", title: "Type", cell: (event) => badge(event.type, event.type === "Normal" ? "" : "bad"), isChoice: true },
      { key: "reason", title: "Reason", cell: (event) => objectName("event", event.namespace, event.name, event.reason), isChoice: true },
      { key: "object", title: "Object", cell: subject, value: subjectName, class: "wide" },
      { key: "message", title: "Message", cell: (event) => event.message, class: "text" },
      { key: "count", title: "Count", cell: (event) => event.count, class: "number" },
      { key: "by", title: "By", cell: (event) => event.by, class: "name" },
    ],
    nameOf,
  );
  return listView({
    title: "Events",
    table,
    nothing: empty("No events yet."),
    announce,
    rows: () =>
      store.isComplete
        ? [...store.lists.events.values()].sort((a, b) => b.time.localeCompare(a.time))
        : null,
  });
}

/** @param {any} event */
function subjectName(event) {
  const { kind, namespace, name } = event.object;
  return `${kind} ${namespace ? `${namespace}/` : ""}${name}`;
}

/** @param {any} event */
function subject(event) {
  const { kind, namespace, name } = event.object;
  if (kind === "Node") return nodeLink(name);
  const view = VIEWS[/** @type {keyof typeof VIEWS} */ (kind)];
  return view ? objectLink(/** @type {any} */ (view), namespace, name) : subjectName(event);
}
