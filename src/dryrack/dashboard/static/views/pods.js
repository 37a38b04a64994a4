// One pod: its claims, conditions, and events.

import { age } from "../ages.js";
import { path } from "../api.js";
import { h } from "../dom.js";
import {
  badge, conditions, detailView, empty, facts, happenings, heading, nodeLink, noDetails, objectLink, section,
  whyLink,
} from "../parts.js";
import { to } from "../routes.js";
import { yamlPart } from "../yaml.js";

/** @param {import("../page.js").Context} context @param {import("../routes.js").Route} route */
export function podView({ store }, route) {
  const [namespace = "", name = ""] = route.names;
  return detailView({
    path: `pod/${path(namespace, name)}`,
    parts: ["pods", "claims", "events"],
    past: () => noDetails(store),
    below: yamlPart("pod", [namespace, name]),
    show: (pod) => [
      heading(
        `Pod ${namespace}/${name}`,
        badge(pod.deleting ? "deleting" : pod.phase, pod.pending ? "bad" : "good"),
        whyLink("pod", namespace, name, pod.pending ? "Why, and try a change" : "Explain, and try a change"),
      ),
      pod.why ? h("p", { class: "message" }, pod.why) : null,
      facts([
        ["node", pod.node ? nodeLink(pod.node) : ""],
        ["nominated node", pod.nominatedNode ? [nodeLink(pod.nominatedNode), " after preemption"] : ""],
        ["disruption", pod.disruption],
        ["gang", pod.gang ? [objectLink("gangs", namespace, pod.gang), " · ", h("a", { href: to("fleet", [], { gang: `${namespace}/${pod.gang}` }) }, "show on the map")] : ""],
        ["scheduler", pod.schedulerName],
        ["priority", priority(pod)],
        ["scheduling gates", pod.schedulingGates.join(", ")],
        ["age", age(pod.created)],
      ]),
      section("Claims", claims(pod.claimsOf)),
      pod.conditions.length ? section("Conditions", conditions(pod.conditions)) : null,
      section("Events", happenings(pod.timeline)),
    ],
  });
}

/** @param {any} pod */
function priority(pod) {
  const name = pod.priorityClassName ? ` (PriorityClass ${pod.priorityClassName})` : "";
  const never = pod.preemptionPolicy === "Never" ? ", preempts no pods (preemptionPolicy Never)" : "";
  return pod.priority === null && !name && !never ? "" : `${pod.priority ?? 0}${name}${never}`;
}

/** @param {any[]} claims */
function claims(claims) {
  if (!claims.length) return empty("The pod uses no claims.");
  const rows = claims.map((each) =>
    h("li", null, objectLink("claims", each.namespace, each.name), ` ${each.state}: ${Object.values(each.requests).join(", ")}`),
  );
  return h("ul", { class: "plain" }, rows);
}
