"""PodGroups of `scheduling.k8s.io/v1beta1`, which the scheduler decides about as kube-scheduler."""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import dryrack
from tests.realcluster import programs, readiness
from tests.realcluster.releases import RELEASES
from tests.scheduler.builders import native_group, native_member
from tests.scheduler.gang_scenes import NAMESPACE, GangStage, lone

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.client import MERGE_PATCH
from dryrack.client.endpoints import POD_GROUPS_V1BETA1, PODS
from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dryrack.kinds.raw import Raw

BETA = pytest.mark.stage(
    kind=GangStage,
    release=Release.V1_37,
    runtime_config=RuntimeConfig({"scheduling.k8s.io/v1beta1": True}),
    feature_gates={"GenericWorkload": True},
)
GATES = "GenericWorkload=true"
# What dryrack tells a pod that kube-scheduler holds back without a word.
TOLD_BY_US_ALONE = ("PodGroup few", "Pod w-0")
# The conditions are settled when they are the same so many times.
LOOKS = 12
CLASSES = [
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": 1000,
        "preemptionPolicy": policy,
    }
    for name, policy in (("high", "PreemptLowerPriority"), ("polite", "Never"))
]


async def create_group(stage: GangStage, name: str, minimum: int, size: int, **spec: Any) -> None:
    group = native_group(name, minimum)
    await stage.client.create(POD_GROUPS_V1BETA1, group | {"spec": group["spec"] | spec})
    priority = {key: spec[key] for key in ("priorityClassName",) if key in spec}
    members = [native_member(f"{name}-{number}", name) for number in range(size)]
    await stage.create_pods(*(each | {"spec": each["spec"] | priority} for each in members))


async def condition(stage: GangStage, name: str) -> tuple[str, str, str]:
    group = await stage.client.get(POD_GROUPS_V1BETA1, name, NAMESPACE)
    (found,) = group["status"]["conditions"]
    assert found["type"] == "PodGroupInitiallyScheduled"
    return found["status"], found["reason"], found["message"]


@BETA
async def test_a_group_is_scheduled_once_and_stays_so(stage: GangStage) -> None:
    """Its condition stays true when a member goes."""
    stage.start()
    await create_group(stage, "group", 3, 3)
    await stage.rest()
    assert await stage.bound() == ["group-0", "group-1", "group-2"]
    assert await condition(stage, "group") == ("True", "Scheduled", "")
    await stage.remove("group-0")
    await stage.rest()
    assert await condition(stage, "group") == ("True", "Scheduled", "")


@BETA
async def test_a_group_fits_as_soon_as_its_minimum_is_lowered(stage: GangStage) -> None:
    """From 1.37 on the minimum of a group can change."""
    stage.start()
    await create_group(stage, "group", 5, 5)
    await stage.rest()
    _, reason, message = await condition(stage, "group")
    assert reason == "Unschedulable"
    assert message.startswith("minCount (5) cannot be satisfied: 4 scheduled, 0 remaining, ")
    fewer = {"spec": {"schedulingPolicy": {"gang": {"minCount": 4}}}}
    await stage.client.patch(
        POD_GROUPS_V1BETA1, "group", fewer, namespace=NAMESPACE, media_type=MERGE_PATCH
    )
    await stage.rest(60)
    assert len(await stage.bound()) == 4
    assert await condition(stage, "group") == ("True", "Scheduled", "")


@BETA
async def test_victims_are_told_which_group_preempts_them(stage: GangStage) -> None:
    """And the group is told how many have to go."""
    await stage.make_priority("high", 1000)
    stage.start()
    await stage.create_pods(*(lone(f"low-{number}") for number in range(3)))
    await stage.rest()
    await create_group(stage, "group", 2, 2, priorityClassName="high")
    await stage.rest(90)
    assert len(await stage.bound()) == 4
    ((_, told),) = await stage.events_of_pods("Preempted")
    group = await stage.client.get(POD_GROUPS_V1BETA1, "group", NAMESPACE)
    assert told == f"Preempted by podgroup {group['metadata']['uid']} on node cluster"
    texts = [text for _, text in await stage.events_of_pods("FailedScheduling")]
    found = "pod group preemption: found a placement for podgroup, preempting 1 victims"
    assert any(found in each for each in texts)


@BETA
async def test_members_of_another_priority_than_the_group_are_an_error(stage: GangStage) -> None:
    """The group and its pods get the words of kube-scheduler."""
    await stage.make_priority("high", 1000)
    stage.start()
    await stage.client.create(POD_GROUPS_V1BETA1, native_group("group", 2))
    await stage.create_pods(
        *(
            lone(n, priorityClassName="high", schedulingGroup={"podGroupName": "group"})
            for n in "ab"
        )
    )
    await stage.rest()
    text = (
        "all pods in a single pod group should have the same priority as the pod group's priority, "
        "got 1000 and 0"
    )
    assert await condition(stage, "group") == ("False", "SchedulerError", text)
    pod = await stage.client.get(PODS, "a", NAMESPACE)
    (told,) = pod["status"]["conditions"]
    assert (told["reason"], told["message"]) == ("SchedulerError", text)


def objects() -> list[Raw]:
    """Groups that fit, do not fit, lack members, and mix priorities."""
    found = [pod_group("fits", 2), pod_group("big", 3), pod_group("few", 2), pod_group("mixed", 2)]
    found += [pod(f"f-{number}", "fits", "1") for number in range(2)]
    found += [pod(f"b-{number}", "big", "20") for number in range(3)]
    found += [pod("w-0", "few", "1")]
    found += [pod(f"m-{number}", "mixed", "1", priorityClassName="high") for number in range(2)]
    return [*CLASSES, *found]


def preemptors() -> list[Raw]:
    """A group that does not fit even on empty nodes, and one whose pods may not preempt."""
    high = {"priorityClassName": "high"}
    polite = {"priorityClassName": "polite"}
    return [
        pod_group("huge", 2, **high),
        pod_group("polite", 2, **polite),
        pod("h-0", "huge", "40", **high),
        pod("h-1", "huge", "1", **high),
        # Each is as large as a node, on which another pod runs.
        *(pod(f"p-{number}", "polite", "32", **polite) for number in range(2)),
    ]


def pod_group(name: str, minimum: int, **spec: Any) -> Raw:
    kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup"}
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    return {**kind, "metadata": {"name": name}, "spec": {**spec, **policy}}


def pod(name: str, group: str, cpu: str, **spec: Any) -> Raw:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}
    members = {"schedulingGroup": {"podGroupName": group}, "containers": [container]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {**members, **spec},
    }


Conditions = dict[str, tuple[str, str, str]]


@contextmanager
def cluster(name: str, *options: str) -> Iterator[Callable[..., str]]:
    """A cluster of dryrack with two nodes; yields kubectl of the release."""
    release = RELEASES["1.37"]
    with tempfile.TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRYRACK_HOME", home)
        served = ("--runtime-config", "scheduling.k8s.io/v1beta1=true", "--feature-gates", GATES)
        up = dryrack(
            *("up", "--name", name, "--detach", "--nodes", "2", "--release", "1.37"),
            *(*served, *options),
        )
        assert up.returncode == 0, up.stderr
        kubeconfig = Path(home) / name / "kubeconfig"
        program = programs.kubernetes("kubectl", release)

        def kubectl(*words: str, stdin: str = "") -> str:
            command = [str(program), f"--kubeconfig={kubeconfig}", *words]
            done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        try:
            yield kubectl
        finally:
            assert dryrack("down", "--name", name).returncode == 0


@contextmanager
def kube_scheduler(kubectl: Callable[..., str]) -> Iterator[None]:
    """Kube-scheduler 1.37 with native groups, for the length of a block."""
    config = kubectl("config", "view", "--raw", "--flatten")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kubeconfig"
        path.write_text(config)
        program = programs.kubernetes("kube-scheduler", RELEASES["1.37"])
        options = ("--secure-port=0", "--leader-elect=false", f"--feature-gates={GATES}")
        command = [str(program), f"--kubeconfig={path}", *options]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as running:
            try:
                yield
                assert running.poll() is None, "kube-scheduler ended"
            finally:
                running.kill()


def conditions(kubectl: Callable[..., str]) -> Conditions:
    """Return status, reason and message of what pods and groups are told about scheduling."""
    items = json.loads(kubectl("get", "pods,podgroups", "-o", "json"))["items"]
    return {
        f"{each['kind']} {each['metadata']['name']}": (
            found["status"],
            found.get("reason", ""),
            found.get("message", ""),
        )
        for each in items
        for found in each.get("status", {}).get("conditions", [])
        if found["type"] in ("PodScheduled", "PodGroupInitiallyScheduled")
    }


def told_in(kubectl: Callable[..., str], made: Sequence[Raw], names: set[str]) -> Conditions:
    """Create objects, and return the conditions when all these have one."""
    kubectl("create", "-f", "-", stdin="\n---\n".join(map(json.dumps, made)))
    seen: list[Conditions] = []

    async def is_settled() -> bool:
        seen.append(conditions(kubectl))
        return names <= seen[-1].keys() and seen[-LOOKS:] == seen[-1:] * LOOKS

    asyncio.run(readiness.until("the conditions settle", is_settled))
    return seen[-1]


@pytest.mark.real
@pytest.mark.timeout(400)
def test_pods_and_groups_are_told_the_same_by_kube_scheduler() -> None:
    """Each message begins as that of kube-scheduler 1.37; the cause follows."""
    first = {"PodGroup fits", "PodGroup big", "PodGroup mixed", "Pod b-2", "Pod m-1", "Pod f-1"}
    second = {"PodGroup huge", "PodGroup polite", "Pod h-0", "Pod h-1", "Pod p-0", "Pod p-1"}
    told: dict[str, Conditions] = {}
    with cluster("theirs", "--without", "scheduler") as kubectl, kube_scheduler(kubectl):
        told["theirs"] = told_in(kubectl, objects(), first)
        told["theirs"] |= told_in(kubectl, preemptors(), second)
    with cluster("ours") as kubectl:
        told["ours"] = told_in(kubectl, objects(), first)
        told["ours"] |= told_in(kubectl, preemptors(), second)

    ours = {name: each for name, each in told["ours"].items() if name not in TOLD_BY_US_ALONE}
    assert ours.keys() == told["theirs"].keys()
    for name, (status, reason, message) in told["theirs"].items():
        assert ours[name][:2] == (status, reason), name
        assert ours[name][2].startswith(message), (name, ours[name][2], message)
