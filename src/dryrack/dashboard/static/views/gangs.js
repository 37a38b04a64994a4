// Gangs: which members are placed, what the rest lacks, and what happened.

import { path } from "../api.js";
import { h } from "../dom.js";
import {
  badge, clock, detailView, empty, facts, happenings, heading, listView, meter, nodeLink,
  noDetails, objectLink, section, Table, whyLink,
} from "../parts.js";
import { nameOf } from "../store.js";

/** @param {string} status */
function gangBadge(status) {
  return badge(status, status === "placed" ? "good" : "bad");
}

/** @param {import("../page.js").Context} context */
export function gangsView({ store }) {
  const table = new Table(
    "Gangs",
    [
      { title: "Gang", cell: (gang) => objectLink("gangs", gang.namespace, gang.name), class: "wide" },
      { title: "Kind", cell: (gang) => gang.dialect },
      { title: "Status", cell: (gang) => gangBadge(gang.status) },
      { title: "Placed", cell: (gang) => `${gang.placed.length} of ${gang.placed.length + gang.waiting.length}, needs ${gang.minCount}` },
      { title: "Why", cell: (gang) => gang.why || "–", class: "text" },
      { title: "Since", cell: (gang) => clock(gang.created) },
    ],
    (gang) => `${gang.dialect}/${nameOf(gang)}`,
  );
  return listView({
    title: "Gangs",
    table,
    nothing: empty("No gangs: no PodGroup, JobSet or other group that is scheduled all-or-nothing."),
    rows: () => (store.isComplete ? store.sorted("gangs") : null),
    text: (gang) => `${nameOf(gang)} ${gang.dialect} ${gang.status} ${gang.why}`,
  });
}

/** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
export function gangView({ store }, route) {
  const [namespace, ...rest] = route.names;
  const name = rest.join("/");
  return detailView({
    path: `gangs/${path(namespace, name)}`,
    parts: ["gangs", "pods", "claims"],
    past: () => noDetails(store),
    show: (gang) => [
      heading(`Gang ${namespace}/${name}`, gangBadge(gang.status), whyLink("gang", namespace, name, "Why, and try a change")),
      facts([["kind", gang.dialect], ["created", gang.created]]),
      meter("placed", (100 * gang.placed.length) / Math.max(1, gang.minCount), `${gang.placed.length} bound, ${gang.waiting.length} pending, at least ${gang.minCount} start together`),
      gang.missing ? h("p", null, `${gang.missing} more must be created first.`) : null,
      gang.why ? h("p", { class: "message" }, gang.why) : null,
      section("Members", members(gang)),
      section("Events", happenings(gang.timeline)),
    ],
  });
}

/** @param {any} gang */
function members({ members, why }) {
  if (!members.length) return empty("The gang has no pods yet.");
  const table = new Table(
    "Members",
    [
      { title: "Pod", cell: (pod) => objectLink("pods", pod.namespace, pod.name), class: "wide" },
      { title: "State", cell: (pod) => (pod.pending ? badge("waits", "bad") : badge(pod.phase, "good")) },
      { title: "Node", cell: (pod) => (pod.node ? nodeLink(pod.node) : "–") },
      { title: "Claims", cell: (pod) => claims(pod), class: "text" },
      { title: "Why", cell: (pod) => (pod.why === why ? "as the gang" : pod.why) || "–", class: "text" },
    ],
    nameOf,
  );
  table.show(members);
  return table.element;
}

/** @param {any} pod */
function claims(pod) {
  if (!pod.claimsOf.length) return "–";
  return pod.claimsOf.map((/** @type {any} */ claim) => h("div", null, objectLink("claims", claim.namespace, claim.name), ` ${claim.state}`));
}
