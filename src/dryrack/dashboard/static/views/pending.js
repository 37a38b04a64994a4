// Pods that wait, and what the scheduler said to them.

import { h } from "../dom.js";
import { clock, empty, listView, objectLink, Table, whyLink } from "../parts.js";
import { nameOf } from "../store.js";

/** @param {import("../page.js").Context} context */
export function pendingView({ store }) {
  const table = new Table(
    "Pending pods",
    [
      { title: "Pod", cell: (pod) => objectLink("pods", pod.namespace, pod.name), class: "wide" },
      { title: "Reason", cell: waitsFor, class: "text" },
      { title: "Gang", cell: (pod) => (pod.gang ? objectLink("gangs", pod.namespace, pod.gang) : "–") },
      { title: "Since", cell: (pod) => clock(pod.created) },
      { title: "Case", cell: (pod) => whyLink("pod", pod.namespace, pod.name) },
    ],
    nameOf,
  );
  const nothing = empty("No pending pods: every pod has a node.");
  return listView({
    title: "Pending",
    table,
    nothing,
    rows: () => (store.isComplete ? store.pendingPods() : null),
    text: (pod) => `${nameOf(pod)} ${pod.gang} ${pod.why}`,
  });
}

/** @param {any} pod */
function waitsFor(pod) {
  if (pod.schedulingGates.length) return `scheduling gates ${pod.schedulingGates.join(", ")}`;
  return pod.why || h("span", { class: "quiet" }, "no scheduler has reported on this pod yet");
}
