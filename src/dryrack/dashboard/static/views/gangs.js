// Gangs: which members are placed, what the rest lacks, and what happened.

import { age } from "../ages.js";
import { path } from "../api.js";
import { h } from "../dom.js";
import {
  badge, detailView, empty, facts, happenings, heading, meter, nodeLink, noDetails, objectLink,
  section, whyLink,
} from "../parts.js";
import { sortedBy } from "../order.js";
import { to } from "../routes.js";
import { nameOf } from "../store.js";
import { listView, namespaceChoice, Table } from "../table.js";
import { yamlPart } from "../yaml.js";

/** @param {string} status */
function gangBadge(status) {
  return badge(status, status === "placed" ? "good" : "bad");
}

/** @param {import("../page.js").Context} context */
export function gangsView({ store, announce }) {
  const table = new Table(
    "Gangs",
    [
      { key: "name", title: "Gang", cell: (gang) => objectLink("gangs", gang.namespace, gang.name), value: nameOf, class: "wide" },
      namespaceChoice(),
      { key: "kind", title: "Kind", cell: (gang) => gang.dialect, value: (gang) => gang.dialect, isChoice: true },
      { key: "status", title: "Status", cell: (gang) => gangBadge(gang.status), isChoice: true },
      {
        key: "placed",
        title: "Placed",
        cell: (gang) => `${gang.placed.length} of ${gang.placed.length + gang.waiting.length}, needs ${gang.minCount}`,
        value: (gang) => gang.placed.length,
      },
      { key: "why", title: "Why", cell: (gang) => gang.why || "–", class: "text" },
      { key: "age", title: "Age", cell: (gang) => age(gang.created), value: (gang) => -Date.parse(gang.created) },
    ],
    (gang) => `${gang.dialect}/${nameOf(gang)}`,
  );
  return listView({
    title: "Gangs",
    table,
    nothing: empty("No gangs: no PodGroup, JobSet or other group that is scheduled all-or-nothing."),
    rows: () => (store.isComplete ? store.sorted("gangs") : null),
    announce,
  });
}

/** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
export function gangView({ store }, route) {
  const [namespace, ...rest] = route.names;
  const name = rest.join("/");
  const members = memberTable();
  return detailView({
    path: `gangs/${path(namespace, name)}`,
    parts: ["gangs", "pods", "claims"],
    past: () => noDetails(store),
    below: yamlPart("gang", [namespace, name]),
    show: (gang) => [
      heading(`Gang ${namespace}/${name}`, gangBadge(gang.status), whyLink("gang", namespace, name, "Why, and try a change"), h("a", { href: to("fleet", [], { gang: `${namespace}/${name}` }) }, "Show on the map")),
      facts([["kind", gang.dialect], ["age", age(gang.created)]]),
      meter("placed", (100 * gang.placed.length) / Math.max(1, gang.minCount), `${gang.placed.length} bound, ${gang.waiting.length} pending, at least ${gang.minCount} start together`),
      gang.missing ? h("p", null, `${gang.missing} more must be created first.`) : null,
      gang.why ? h("p", { class: "message" }, gang.why) : null,
      section("Members", members(gang)),
      section("Events", happenings(gang.timeline)),
    ],
  });
}

/** A table of members, which stays when its rows change. */
function memberTable() {
  const table = new Table(
    "Members",
    [
      { key: "name", title: "Pod", cell: (pod) => objectLink("pods", pod.namespace, pod.name), class: "wide" },
      { key: "state", title: "State", cell: (pod) => (pod.pending ? badge("pending", "bad") : badge(pod.phase, "good")), value: (pod) => (pod.pending ? "pending" : pod.phase) },
      { key: "node", title: "Node", cell: (pod) => (pod.node ? nodeLink(pod.node) : "–") },
      { key: "claims", title: "Claims", cell: (pod) => claims(pod), value: (pod) => pod.claims.length, class: "text" },
      { key: "why", title: "Why", cell: (pod) => pod.why || "–", class: "text" },
    ],
    nameOf,
  );
  return (/** @type {any} */ gang) => {
    if (!gang.members.length) return empty("The gang has no pods yet.");
    const members = sortedBy(/** @type {any[]} */ (gang.members), nameOf);
    table.show(members.map((/** @type {any} */ each) => (each.why && each.why === gang.why ? { ...each, why: "as the gang" } : each)));
    return table.kept();
  };
}

/** @param {any} pod */
function claims(pod) {
  if (!pod.claimsOf.length) return "–";
  return pod.claimsOf.map((/** @type {any} */ claim) => h("div", null, objectLink("claims", claim.namespace, claim.name), ` ${claim.state}`));
}
