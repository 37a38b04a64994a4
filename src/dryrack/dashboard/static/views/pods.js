// One pod: its claims, its conditions and what happened to it.

import { path } from "../api.js";
import { h } from "../dom.js";
import {
  badge, detailView, empty, facts, happenings, heading, nodeLink, noDetails, objectLink, section,
  whyLink,
} from "../parts.js";

/** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
export function podView({ store }, route) {
  const [namespace = "", name = ""] = route.names;
  return detailView({
    path: `pod/${path(namespace, name)}`,
    parts: ["pods", "claims", "events"],
    past: () => noDetails(store),
    show: (pod) => [
      heading(
        `Pod ${namespace}/${name}`,
        badge(pod.deleting ? "deleting" : pod.phase, pod.pending ? "bad" : "good"),
        whyLink("pod", namespace, name, pod.pending ? "Why, and try a change" : "Explain, and try a change"),
      ),
      pod.why ? h("p", { class: "message" }, pod.why) : null,
      facts([
        ["node", pod.node ? nodeLink(pod.node) : ""],
        ["nominated node", pod.nominatedNode],
        ["gang", pod.gang ? objectLink("gangs", namespace, pod.gang) : ""],
        ["scheduler", pod.schedulerName],
        ["priority", pod.priority],
        ["scheduling gates", pod.schedulingGates.join(", ")],
        ["created", pod.created],
      ]),
      section("Claims", claims(pod.claimsOf)),
      pod.conditions.length ? section("Conditions", conditions(pod.conditions)) : null,
      section("Events", happenings(pod.timeline)),
    ],
  });
}

/** @param {any[]} claims */
function claims(claims) {
  if (!claims.length) return empty("The pod uses no claims.");
  const rows = claims.map((each) =>
    h("li", null, objectLink("claims", each.namespace, each.name), ` ${each.state}: ${Object.values(each.requests).join(", ")}`),
  );
  return h("ul", { class: "plain" }, rows);
}

/** @param {any[]} conditions */
function conditions(conditions) {
  const rows = conditions.map((each) =>
    h("li", null, badge(`${each.type} ${each.status}`, each.status === "True" ? "good" : "near"), ` ${each.reason ?? ""} ${each.message ?? ""}`),
  );
  return h("ul", { class: "plain" }, rows);
}
