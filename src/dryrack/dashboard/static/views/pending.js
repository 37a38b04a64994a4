// Pods that wait, and what the scheduler said to them.

import { h } from "../dom.js";
import { age } from "../ages.js";
import { empty, objectLink, whyLink } from "../parts.js";
import { nameOf } from "../store.js";
import { listView, namespaceChoice, Table } from "../table.js";

/** @param {import("../page.js").Context} context */
export function pendingView({ store, announce }) {
  const table = new Table(
    "Pending pods",
    [
      { key: "name", title: "Pod", value: nameOf, cell: (pod) => objectLink("pods", pod.namespace, pod.name), class: "wide" },
      namespaceChoice(),
      { key: "why", title: "Reason", cell: waitsFor, class: "text" },
      { key: "gang", title: "Gang", isChoice: true, cell: (pod) => (pod.gang ? objectLink("gangs", pod.namespace, pod.gang) : "–") },
      { key: "age", title: "Age", cell: (pod) => age(pod.created), value: (pod) => -Date.parse(pod.created) },
      { key: "case", title: "", isFixed: true, cell: (pod) => whyLink("pod", pod.namespace, pod.name) },
    ],
    nameOf,
  );
  const nothing = empty("No pending pods: every pod has a node.");
  return listView({
    title: "Pending",
    table,
    nothing,
    rows: () => (store.isComplete ? store.pendingPods() : null),
    announce,
  });
}

/** @param {any} pod */
function waitsFor(pod) {
  if (pod.schedulingGates.length) return `scheduling gates ${pod.schedulingGates.join(", ")}`;
  return pod.why || h("span", { class: "quiet" }, "no scheduler has reported on this pod yet");
}
