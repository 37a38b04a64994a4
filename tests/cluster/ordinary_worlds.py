"""
Worlds of ordinary workloads, and what people do to them, drawn by chance.

Every kind that a controller looks after is here, with deadlines, finalizers, budgets, quotas,
claims and faults. What has no rest on a real cluster either is not: a container that crashes for
ever, and pods that a quota refuses, which are asked for again every quarter of an hour.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from tests.controllers import scenes

from dryrack.client.endpoints import (
    CLAIMS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    QUOTAS,
    STATEFUL_SETS,
    TEMPLATES,
    Endpoint,
)
from dryrack.client.errors import ApiError
from dryrack.client.informer import Name

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.client.client import Client
    from dryrack.client.timekeeping import VirtualClock
    from dryrack.kinds.raw import Raw


NAMESPACE = "default"
NODE_NAMES = ("node-a", "node-b")
DEVICES = 2
GANG = "pod-group.scheduling.kubenexus.io"


@dataclass(frozen=True, slots=True)
class Workload:
    """An object to create, of a kind."""

    endpoint: Endpoint
    object: Raw


@dataclass(frozen=True, slots=True)
class Deed:
    """What somebody does to one of the workloads, or to a node, after some time."""

    word: str
    target: int
    seconds: int


@dataclass(frozen=True, slots=True)
class World:
    """All that happens."""

    workloads: tuple[Workload, ...]
    deeds: tuple[Deed, ...]


def _metadata(number: int, kind: str, **more: Any) -> Raw:
    return {"name": f"{kind}-{number}", "namespace": NAMESPACE, **more}


@st.composite
def _pod_parts(draw: st.DrawFn, *, ends: bool) -> tuple[Raw, Raw]:
    """The annotations and the spec of a pod; one that ends does so after some seconds."""
    claim = draw(st.sampled_from(["template", "template", "shared", "extended", ""]))
    spec = dict(scenes.POD_SPEC)
    if claim == "extended":
        amounts = {"deviceclass.resource.kubernetes.io/gpu": "1"}
        resources = {"requests": amounts, "limits": amounts}
        spec["containers"] = [spec["containers"][0] | {"resources": resources}]
    elif claim:
        source = {"resourceClaimTemplateName": "gpu"}
        if claim == "shared":
            source = {"resourceClaimName": "shared"}
        container = spec["containers"][0] | {"resources": {"claims": [{"name": "gpu"}]}}
        spec |= {"resourceClaims": [{"name": "gpu", **source}], "containers": [container]}
    if draw(st.integers(0, 4)) == 0:
        spec["nodeSelector"] = {"nosuch": "yes"}
    if draw(st.integers(0, 4)) == 0:
        spec["activeDeadlineSeconds"] = draw(st.integers(1, 60))
    annotations = {"dryrack.dev/stop-seconds": str(draw(st.sampled_from([0, 0, 5, 100])))}
    if ends:
        annotations["dryrack.dev/run-seconds"] = str(draw(st.sampled_from([0, 1, 30])))
        annotations["dryrack.dev/exit-code"] = str(draw(st.sampled_from([0, 0, 1])))
    return annotations, spec


@st.composite
def _jobs(draw: st.DrawFn, number: int) -> Workload:
    annotations, pod = draw(_pod_parts(ends=True))
    pod |= {"restartPolicy": draw(st.sampled_from(["Never", "OnFailure"]))}
    spec: Raw = {
        "template": {"metadata": {"annotations": annotations}, "spec": pod},
        "completions": draw(st.integers(1, 4)),
        "parallelism": draw(st.sampled_from([1, 2, 3, 0])),
        "backoffLimit": draw(st.integers(0, 2)),
        "suspend": draw(st.integers(0, 5)) == 0,
        "completionMode": draw(st.sampled_from(["NonIndexed", "Indexed"])),
        "podReplacementPolicy": draw(st.sampled_from(["Failed", "TerminatingOrFailed"])),
    }
    if draw(st.booleans()):
        spec["activeDeadlineSeconds"] = draw(st.integers(1, 60))
    if draw(st.integers(0, 3)) == 0:
        spec["ttlSecondsAfterFinished"] = draw(st.integers(0, 100))
    return Workload(JOBS, {"metadata": _metadata(number, "job"), "spec": spec})


@st.composite
def _gangs(draw: st.DrawFn, number: int) -> Workload:
    """Pods that run together or not at all, some of them never: more are needed than come."""
    endpoint = draw(st.sampled_from([JOBS, JOBS, DEPLOYMENTS]))
    labels = {
        "app": f"gang-{number}",
        f"{GANG}/name": f"gang-{number}",
        f"{GANG}/min-available": str(draw(st.integers(2, 4))),
    }
    annotations, pod = draw(_pod_parts(ends=endpoint is JOBS))
    size = draw(st.integers(1, 4))
    template = {"metadata": {"annotations": annotations, "labels": labels}, "spec": pod}
    metadata = _metadata(number, "gang")
    if endpoint is DEPLOYMENTS:
        pod.pop("activeDeadlineSeconds", None)
        spec = {"selector": {"matchLabels": labels}, "template": template, "replicas": size}
        return Workload(endpoint, {"metadata": metadata, "spec": spec})
    pod |= {"restartPolicy": "Never"}
    spec = {"template": template, "completions": size, "parallelism": size, "backoffLimit": 1}
    return Workload(endpoint, {"metadata": metadata, "spec": spec})


@st.composite
def _bare_pods(draw: st.DrawFn, number: int) -> Workload:
    annotations, spec = draw(_pod_parts(ends=False))
    spec |= {"restartPolicy": draw(st.sampled_from(["Never", "Always"]))}
    metadata = _metadata(number, "pod", annotations=annotations, labels={"app": "bare"})
    if draw(st.integers(0, 3)) == 0:
        metadata["finalizers"] = ["example.com/kept"]
    return Workload(PODS, {"metadata": metadata, "spec": spec})


@st.composite
def _sets(draw: st.DrawFn, number: int) -> Workload:
    endpoint = draw(st.sampled_from([DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS]))
    labels = {"app": f"set-{number}"}
    annotations, pod = draw(_pod_parts(ends=False))
    # Neither is allowed in a pod that is to run for ever.
    pod.pop("activeDeadlineSeconds", None)
    template = {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod}
    spec: Raw = {"selector": {"matchLabels": labels}, "template": template}
    if endpoint is not DAEMON_SETS:
        spec["replicas"] = draw(st.integers(0, 4))
    if endpoint is STATEFUL_SETS:
        spec["serviceName"] = "nobody"
    return Workload(endpoint, {"metadata": _metadata(number, "set"), "spec": spec})


@st.composite
def _budgets(draw: st.DrawFn, number: int) -> Workload:
    bound = draw(st.sampled_from(["minAvailable", "maxUnavailable"]))
    labels = {"app": draw(st.sampled_from(["bare", "set-0", "set-1", "set-2"]))}
    amount = draw(st.sampled_from([0, 1, 2, "50%"]))
    spec = {"selector": {"matchLabels": labels}, bound: amount}
    budget = {"metadata": _metadata(number, "budget"), "spec": spec}
    return Workload(POD_DISRUPTION_BUDGETS, budget)


@st.composite
def _quotas(draw: st.DrawFn, number: int) -> Workload:
    hard = {"pods": str(draw(st.integers(100, 200)))}
    return Workload(QUOTAS, {"metadata": _metadata(number, "quota"), "spec": {"hard": hard}})


WORDS = (
    *("wait", "evict", "scale", "suspend", "resume", "delete", "foreground", "orphan"),
    *("cordon", "uncordon", "silence", "wake", "lose-node", "free"),
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """A few workloads, and a few deeds."""
    makers = (_jobs, _jobs, _bare_pods, _sets, _sets, _gangs, _gangs, _budgets, _quotas)
    size = draw(st.integers(1, 5))
    workloads = tuple(draw(draw(st.sampled_from(makers))(number)) for number in range(size))
    deed = st.builds(
        Deed, st.sampled_from(WORDS), st.integers(0, size - 1), st.sampled_from([0, 1, 20, 400])
    )
    return World(workloads, tuple(draw(st.lists(deed, max_size=6))))


def _job(name: str, pod: Raw, **spec: Any) -> Workload:
    template = {"metadata": {}, "spec": {**pod, "restartPolicy": "Never"}}
    metadata = {"name": name, "namespace": NAMESPACE}
    return Workload(JOBS, {"metadata": metadata, "spec": {"template": template, **spec}})


_CLAIMING = scenes.pod_with_claim(Name(NAMESPACE, "x"))["spec"]

# Each of these once kept a plane busy for ever, or stopped it.
RESTLESS = (
    World((_job("ends", _CLAIMING),), ()),
    World(
        (_job("late", {**scenes.POD_SPEC, "nodeSelector": {"a": "b"}}, activeDeadlineSeconds=2),),
        (),
    ),
    World(
        (
            Workload(
                PODS,
                scenes.pod_with_claim(Name(NAMESPACE, "kept"), finalizers=["example.com/kept"]),
            ),
        ),
        (Deed("delete", 0, 20),),
    ),
)


async def play(world: World, client: Client, clock: VirtualClock) -> None:
    """Makes all of it, and does all that is done to it; refusals are answers too."""
    await scenes.make_class(client)
    await client.create(TEMPLATES, scenes.template_in(NAMESPACE))
    shared = scenes.template_in(NAMESPACE)["spec"]["spec"]
    metadata = {"name": "shared", "namespace": NAMESPACE}
    await client.create(CLAIMS, {"metadata": metadata, "spec": shared})
    for name in NODE_NAMES:
        await scenes.make_node(client, name, devices=DEVICES)
    for workload in world.workloads:
        with suppress(ApiError):
            await client.create(workload.endpoint, workload.object)
    for deed in world.deeds:
        await clock.advance(deed.seconds)
        with suppress(ApiError):
            await _do(deed, world.workloads[deed.target], client)


async def _do(deed: Deed, workload: Workload, client: Client) -> None:
    node = NODE_NAMES[deed.target % len(NODE_NAMES)]
    match deed.word:
        case "delete" | "foreground" | "orphan":
            await _delete(deed.word, workload, client)
        case "evict":
            await _evict_one(client, deed.target)
        case "scale" | "suspend" | "resume":
            await _change(deed.word, workload, client)
        case "cordon" | "uncordon":
            patch = {"spec": {"unschedulable": deed.word == "cordon"}}
            await client.patch(NODES, node, patch)
        case "silence" | "wake":
            told = "true" if deed.word == "silence" else None
            await client.patch(
                NODES, node, {"metadata": {"annotations": {"dryrack.dev/silent": told}}}
            )
        case "lose-node":
            await client.delete(NODES, node)
        case "free":
            await _free(client)


async def _delete(word: str, workload: Workload, client: Client) -> None:
    propagation = {"foreground": "Foreground", "orphan": "Orphan"}.get(word, "Background")
    name = workload.object["metadata"]["name"]
    await client.delete(workload.endpoint, name, namespace=NAMESPACE, propagation=propagation)


async def _change(word: str, workload: Workload, client: Client) -> None:
    changes: dict[str, Callable[[], Raw]] = {
        "scale": lambda: {"replicas": 1} if workload.endpoint is not JOBS else {"parallelism": 1},
        "suspend": lambda: {"suspend": True},
        "resume": lambda: {"suspend": False},
    }
    name = workload.object["metadata"]["name"]
    patch = {"spec": changes[word]()}
    await client.patch(workload.endpoint, name, patch, namespace=NAMESPACE)


async def _evict_one(client: Client, number: int) -> None:
    pods = (await client.list(PODS)).items
    if not pods:
        return
    metadata = {
        "name": pods[number % len(pods)]["metadata"]["name"],
        "namespace": NAMESPACE,
    }
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    await client.create(PODS, body, subresource="eviction")


async def _free(client: Client) -> None:
    """Whoever kept pods by a finalizer of its own lets them go."""
    for pod in (await client.list(PODS)).items:
        if "example.com/kept" in (pod["metadata"].get("finalizers") or ()):
            patch = {"metadata": {"finalizers": None}}
            await client.patch(PODS, pod["metadata"]["name"], patch, namespace=NAMESPACE)
