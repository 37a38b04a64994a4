"""Find the pod of a workload that a local program stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.client.client import Selection
from dryrack.client.endpoints import (
    DAEMON_SETS,
    DEPLOYMENTS,
    EVENTS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from dryrack.client.errors import NotFoundError
from dryrack.kinds.paths import get, metadata_of, spec_of, status_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw

_REVISION = "deployment.kubernetes.io/revision"
_NAMES_MAX = 5
KINDS: dict[str, Endpoint] = {
    "deployment": DEPLOYMENTS,
    "statefulset": STATEFUL_SETS,
    "daemonset": DAEMON_SETS,
    "pod": PODS,
}
_SHORT = {"deploy": "deployment", "sts": "statefulset", "ds": "daemonset", "po": "pod"}


class OperatorError(DryrackError):
    """The program cannot stand for the pod."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The workload of a pod; its text is `deployment/NAME`."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def endpoint(self) -> Endpoint:
        return KINDS[self.kind]


def kind_named(text: str) -> str:
    """Return the kind that a word names, as kubectl reads it, or ""."""
    word = text.lower().removesuffix(".apps")
    for candidate in (word, word.removesuffix("s")):
        if candidate in KINDS:
            return candidate
        if candidate in _SHORT:
            return _SHORT[candidate]
    return ""


async def check_exists(client: Client, workload: Workload) -> None:
    """Raise if the workload does not exist, or has no pods."""
    try:
        obj = await client.get(workload.endpoint, workload.name, workload.namespace)
    except NotFoundError:
        listing = await client.list(workload.endpoint, Selection(namespace=workload.namespace))
        names = sorted(each["metadata"]["name"] for each in listing.items)
        shown = ", ".join(names[:_NAMES_MAX]) + (", …" if len(names) > _NAMES_MAX else "")
        others = f"there is: {shown}" if names else f"the namespace has no {workload.kind}"
        raise OperatorError(f"{workload}: not found; {others}; name it, or another -n") from None
    if spec_of(obj).get("replicas") == 0:
        raise OperatorError(
            f"{workload}: has 0 replicas, so no pod; scale it, for example: kubectl scale -n "
            f"{workload.namespace} {workload.kind}/{workload.name} --replicas=1"
        )


async def pod_of(client: Client, workload: Workload) -> Raw | None:
    """Return the pod of the workload to stand for; None if it has none at the moment."""
    if workload.kind == "pod":
        return await client.get(PODS, workload.name, workload.namespace)
    obj = await client.get(workload.endpoint, workload.name, workload.namespace)
    owner: Raw | None = obj
    selection = Selection(namespace=workload.namespace, labels=_selector(obj))
    if workload.kind == "deployment":
        listing = await client.list(REPLICA_SETS, selection)
        owned = [each for each in listing.items if _is_owned(each, obj)]
        owner = max(owned, key=_revision, default=None)
    if owner is None:
        return None
    pods = [
        each
        for each in (await client.list(PODS, selection)).items
        if _is_owned(each, owner)
        and "deletionTimestamp" not in metadata_of(each)
        and status_of(each).get("phase") not in ("Succeeded", "Failed")
    ]
    # The same pod after a restart of this command, and one that runs rather than one that waits.
    return min(
        pods,
        key=lambda pod: (status_of(pod).get("phase") != "Running", metadata_of(pod)["name"]),
        default=None,
    )


def _is_owned(obj: Raw, owner: Raw) -> bool:
    owners = get(obj, "metadata.ownerReferences", ())
    return any(each.get("uid") == owner["metadata"]["uid"] for each in owners)


def _revision(replica_set: Raw) -> int:
    return int(get(replica_set, "metadata.annotations", {}).get(_REVISION) or 0)


def _selector(workload: Raw) -> str:
    selector = get(workload, "spec.selector", {})
    parts = [f"{key}={value}" for key, value in get(selector, "matchLabels", {}).items()]
    for each in get(selector, "matchExpressions", ()):
        values = f"({','.join(get(each, 'values', ()))})"
        match each["operator"]:
            case "In":
                parts.append(f"{each['key']} in {values}")
            case "NotIn":
                parts.append(f"{each['key']} notin {values}")
            case "Exists":
                parts.append(each["key"])
            case _:
                parts.append(f"!{each['key']}")
    return ",".join(parts)


async def reason_to_wait(client: Client, pod: Raw | None, workload: Workload) -> str:
    """Return why a pod does not run yet, with the last warning about it."""
    if pod is None:
        return f"{workload}: waiting for a pod; see why with: dryrack explain, or kubectl describe"
    name = pod["metadata"]["name"]
    selection = Selection(
        namespace=workload.namespace, fields=f"involvedObject.name={name},type=Warning"
    )
    events: Sequence[Raw] = (await client.list(EVENTS, selection)).items
    latest = max(events, key=lambda each: str(each.get("lastTimestamp") or ""), default={})
    why = latest.get("message") or f"its phase is {status_of(pod).get('phase', 'Pending')}"
    return f"pod {workload.namespace}/{name}: waiting until it runs: {why}"
