// Events, the latest first.

import { badge, clock, empty, listView, objectLink, Table } from "../parts.js";
import { nameOf } from "../store.js";

const VIEWS = { Pod: "pods", ResourceClaim: "claims", PodGroup: "gangs" };

/** @param {import("../page.js").Context} context */
export function eventsView({ store }) {
  const table = new Table(
    "Events",
    [
      { title: "Time", cell: (event) => clock(event.time) },
      { title: "Type", cell: (event) => badge(event.type, event.type === "Normal" ? "" : "bad") },
      { title: "Reason", cell: (event) => event.reason },
      { title: "Of", cell: subject, class: "wide" },
      { title: "Message", cell: (event) => event.message, class: "text" },
      { title: "Count", cell: (event) => event.count, class: "number" },
      { title: "By", cell: (event) => event.by, class: "name" },
    ],
    nameOf,
  );
  return listView({
    title: "Events",
    table,
    nothing: empty("No events yet."),
    rows: () =>
      store.isComplete
        ? [...store.lists.events.values()].sort((a, b) => b.time.localeCompare(a.time))
        : null,
    text: (event) => `${event.type} ${event.reason} ${event.object.kind} ${event.object.namespace}/${event.object.name} ${event.message} ${event.by}`,
  });
}

/** @param {any} event */
function subject(event) {
  const { kind, namespace, name } = event.object;
  const view = VIEWS[/** @type {keyof typeof VIEWS} */ (kind)];
  return view ? objectLink(/** @type {any} */ (view), namespace, name) : `${kind} ${namespace ? `${namespace}/` : ""}${name}`;
}
