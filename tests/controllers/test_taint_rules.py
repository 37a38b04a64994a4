"""DeviceTaintRules: their status, and the evictions that they cause."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

import pytest
from tests.cluster.one_gpu import add_gpu_node, pod
from tests.controllers import scenes
from tests.controllers.test_kube_controller_manager import our_kubelet
from tests.realcluster.controlplane import Options

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.client.endpoints import (
    CLAIMS,
    EVENTS,
    POD_GROUPS,
    PODS,
    SLICES,
    TAINT_RULES,
    TAINT_RULES_V1,
    TEMPLATES,
)
from dryrack.client.informer import Name
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import embedded
from dryrack.controllers.claims.device_taints import CONDITION, Counts, Rule, plan_status
from dryrack.controllers.objects import condition_of
from dryrack.controllers.writes import NOTHING, Apply
from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from tests.realcluster.fixtures import StartCluster
    from tests.stage import Stage

    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw

# Not served unless it is asked for.
WITH_RULES = RuntimeConfig({"resource.k8s.io/v1beta2": True})
WITH_RULES_AND_GROUPS = RuntimeConfig(
    {"resource.k8s.io/v1beta2": True, "scheduling.k8s.io/v1alpha2": True}
)
NOW = 1_800_000_000.0
AGO = "2027-01-15T07:59:55Z"
PATIENT = {
    "metadata": {"name": "patient", "namespace": "default"},
    "spec": {
        "devices": {
            "requests": [
                {
                    "name": "gpu",
                    "exactly": {
                        "deviceClassName": "gpu",
                        "tolerations": [
                            {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}
                        ],
                    },
                }
            ]
        }
    },
}


def rule(effect: str, **selector: str) -> Raw:
    return {
        "metadata": {"name": "broken", "uid": "u", "generation": 1},
        "spec": {"deviceSelector": selector, "taint": {"key": "broken", "effect": effect}},
    }


def told(raw: Raw, counts: Counts) -> tuple[str, str, str]:
    (write,) = plan_status(Rule.of(raw), lambda: counts, NOW).writes
    assert isinstance(write, Apply)
    (condition,) = write.object["status"]["conditions"]
    assert condition["lastTransitionTime"] == "2027-01-15T08:00:00Z"
    return condition["status"], condition["reason"], condition["message"]


@pytest.mark.parametrize(
    ("effect", "counts", "expected"),
    [
        ("NoExecute", Counts(), ("False", "NotStarted", "")),
        (
            "NoExecute",
            Counts(pending=1, namespaces=1),
            ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace."),
        ),
        (
            "NoExecute",
            Counts(pending=3, namespaces=2, evicted=1),
            (
                "True",
                "PodsPendingEviction",
                (
                    "3 pods need to be evicted in 2 different namespaces. "
                    "1 pod evicted since starting the controller."
                ),
            ),
        ),
        (
            "NoExecute",
            Counts(evicted=4),
            ("False", "Completed", "4 pods evicted since starting the controller."),
        ),
        (
            "NoSchedule",
            Counts(),
            ("False", "OtherEffect", "Eviction only happens for the NoExecute effect."),
        ),
        (
            "None",
            Counts(pending=1, namespaces=1, published=8, allocated=1),
            (
                "False",
                "NoEffect",
                (
                    "8 published devices selected. 1 allocated device selected. 1 pod would be "
                    "evicted in 1 namespace if the effect was NoExecute. This information will "
                    "not be updated again. Recreate the DeviceTaintRule to trigger an update."
                ),
            ),
        ),
    ],
)
def test_a_rule_is_told_what_it_does(
    effect: str, counts: Counts, expected: tuple[str, str, str]
) -> None:
    """In the words of the real controller."""
    assert told(rule(effect), counts) == expected


def test_a_rule_is_told_every_ten_seconds_at_most() -> None:
    """Unless its spec has changed meanwhile; and not at all if there is nothing new."""
    raw = rule("NoExecute")
    condition = {
        "type": CONDITION,
        "status": "False",
        "reason": "NotStarted",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": AGO,
    }
    seen = raw | {"status": {"conditions": [condition]}}
    early = plan_status(Rule.of(seen), lambda: Counts(pending=1, namespaces=1), NOW)
    late = plan_status(Rule.of(seen), lambda: Counts(pending=1, namespaces=1), NOW + 6)
    same = plan_status(Rule.of(seen), Counts, NOW + 6)
    renewed = seen | {"metadata": raw["metadata"] | {"generation": 2}}
    changed = plan_status(Rule.of(renewed), Counts, NOW)

    assert (early.writes, early.again_seconds) == ((), 5.0)
    assert len(late.writes) == 1
    assert same is NOTHING
    assert len(changed.writes) == 1


def test_a_rule_without_a_selector_drives_nobody_out() -> None:
    """A rule without a selector evicts no pod; one with an empty selector evicts all."""
    result = {"driver": "d", "pool": "p", "device": "x"}
    nobody = rule("NoExecute")
    del nobody["spec"]["deviceSelector"]

    assert not Rule.of(nobody).evicts(result)
    assert Rule.of(rule("NoExecute")).evicts(result)
    assert Rule.of(rule("NoExecute", driver="d", device="x")).evicts(result)
    assert not Rule.of(rule("NoExecute", pool="other")).evicts(result)


async def _has_said(stage: Stage, name: str, reason: str) -> Raw:
    """Wait until the condition of a rule has a message, and return it."""
    found: list[Raw] = []

    async def holds() -> bool:
        condition = condition_of(await stage.client.get(TAINT_RULES, name), CONDITION)
        if condition is not None and condition["reason"] == reason:
            found.append(condition)
        return bool(found)

    await stage.until(holds)
    return found[0]


async def _run_a_pod(stage: Stage) -> None:
    await add_gpu_node(stage)
    await stage.create(PODS, pod("p"))
    await stage.until(lambda: stage.is_in_phase("p", "Running"))


def _made(name: str, effect: str, **selector: str) -> Raw:
    made = rule(effect, **selector)
    return made | {"metadata": {"name": name}}


def _member(name: str, *, uses_claim: bool = True) -> Raw:
    made = pod(name)
    made["spec"]["schedulingGroup"] = {"podGroupName": "group"}
    if not uses_claim:
        del made["spec"]["resourceClaims"]
        for container in made["spec"]["containers"]:
            container.pop("resources", None)
    return made


async def _run_a_group(stage: Stage) -> None:
    """Create a PodGroup with a claim, two pods that use it, and one that does not."""
    await add_gpu_node(stage)
    group = {
        "metadata": {"name": "group", "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 3}},
            "resourceClaims": pod("any")["spec"]["resourceClaims"],
        },
    }
    await stage.create(POD_GROUPS, group)
    for name in ("user-0", "user-1", "bystander"):
        await stage.create(PODS, _member(name, uses_claim=name != "bystander"))
    for name in ("user-0", "user-1", "bystander"):
        await stage.until(partial(stage.is_in_phase, name, "Running"))
    (claim,) = (await stage.client.list(CLAIMS)).items
    assert [each["resource"] for each in claim["status"]["reservedFor"]] == ["podgroups"]


_of_a_pod = pytest.mark.stage(prepare=_run_a_pod, runtime_config=WITH_RULES)
_of_a_group = pytest.mark.stage(
    prepare=_run_a_group, runtime_config=WITH_RULES_AND_GROUPS, release=Release.V1_36
)


@_of_a_pod
async def test_pods_go_because_of_a_rule(stage: Stage) -> None:
    """First it is asked what would happen, then it does; the rule counts."""
    await stage.client.create(TAINT_RULES, _made("asking", "None", driver="gpu.example.com"))
    foreseen = await _has_said(stage, "asking", "NoEffect")
    assert foreseen["message"].startswith(
        "1 published device selected. 1 allocated device selected. 1 pod would be evicted in 1"
    )
    await stage.client.create(TAINT_RULES, _made("doing", "NoExecute", device="gpu-0"))

    await stage.until(lambda: stage.is_gone(PODS, "p"))
    done = await _has_said(stage, "doing", "Completed")
    assert done["message"] == "1 pod evicted since starting the controller."
    events = (await stage.client.list(EVENTS)).items
    assert "DeviceTaintManagerEviction" in {each["reason"] for each in events}


@_of_a_pod
async def test_a_rule_that_selects_nothing_drives_nobody_out(stage: Stage) -> None:
    """The condition shows that no eviction has begun."""
    await stage.client.create(TAINT_RULES, _made("other", "NoExecute", device="gpu-7"))
    said = await _has_said(stage, "other", "NotStarted")
    assert said["message"] == ""
    assert "deletionTimestamp" not in (await stage.pod("p"))["metadata"]


@_of_a_pod
async def test_a_rule_that_goes_in_time_drives_nobody_out(stage: Stage) -> None:
    """A claim that tolerates for a while is left alone when the rule is gone by then."""
    await stage.client.create(CLAIMS, PATIENT)
    patient = pod("patient")
    patient["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "patient"}]
    await stage.client.delete(PODS, "p", namespace="default")
    await stage.client.create(PODS, patient)
    await stage.until(lambda: stage.is_in_phase("patient", "Running"), seconds=120)
    made = await stage.client.create(TAINT_RULES, _made("passing", "NoExecute", device="gpu-0"))
    await _has_said(stage, "passing", "PodsPendingEviction")
    await stage.advance(30)
    await stage.client.delete(TAINT_RULES, made["metadata"]["name"])
    await stage.advance(60)
    events = (await stage.client.list(EVENTS)).items
    told = [each["message"] for each in events if each["reason"] == "DeviceTaintManagerEviction"]
    assert told == ["Cancelling deletion"]
    assert "deletionTimestamp" not in (await stage.pod("patient"))["metadata"]


@_of_a_group
async def test_pods_of_a_group_go_because_of_a_rule(stage: Stage) -> None:
    """A claim that is reserved for a PodGroup drives out the pods that use it, and no others."""
    await stage.client.create(TAINT_RULES, _made("asking", "None", device="gpu-0"))
    foreseen = await _has_said(stage, "asking", "NoEffect")
    assert "1 allocated device selected. 2 pods would be evicted in 1" in foreseen["message"]
    await stage.client.create(TAINT_RULES, _made("doing", "NoExecute", device="gpu-0"))
    for name in ("user-0", "user-1"):
        await stage.until(partial(stage.is_gone, PODS, name))
    done = await _has_said(stage, "doing", "Completed")
    assert done["message"] == "2 pods evicted since starting the controller."
    assert "deletionTimestamp" not in (await stage.pod("bystander"))["metadata"]


@_of_a_group
async def test_a_pod_that_joins_a_group_on_a_tainted_device_goes(stage: Stage) -> None:
    """The claim of the group does not change when a pod gets its node; it is looked at still."""
    await stage.client.create(TAINT_RULES, _made("doing", "NoExecute", device="gpu-0"))
    await stage.until(lambda: stage.is_gone(PODS, "user-0"))
    await stage.client.create(PODS, _member("late"))
    # The claim has its device already, so the scheduler does not look at taints any more.
    await stage.until(lambda: stage.is_gone(PODS, "late"))


async def _everything_said(client: Client) -> tuple[list[Raw], set[tuple[str, str]]]:
    """Return the conditions of rules with every effect, and the events."""
    await scenes.make_class(client)
    await scenes.make_node(client, "node-a", devices=2)
    await scenes.make_namespace(client, "play")
    await client.create(TEMPLATES, scenes.template_in("play"))
    for name in ("one", "two"):
        where = Name("play", name)
        await client.create(PODS, scenes.pod_with_claim(where))
        await scenes.settled_one(client, PODS, where, lambda it: scenes.is_true(it, "Ready"))
    (published,) = (await client.list(SLICES)).items
    driver = published["spec"]["driver"]
    said = [
        await _last_word(client, _made("asking", "None", driver=driver), "NoEffect"),
        await _last_word(client, _made("other", "NoSchedule", driver=driver), "OtherEffect"),
        await _last_word(client, _made("nobody", "NoExecute", device="none"), "NotStarted"),
        await _last_word(client, _made("doing", "NoExecute", driver=driver), "Completed"),
    ]
    events = (await client.list(EVENTS)).items
    about = {(each["reason"], each["message"]) for each in events if "Taint" in each["reason"]}
    return said, about


async def _last_word(client: Client, made: Raw, reason: str) -> Raw:
    """Create a rule, and wait until its condition has a message."""
    await client.create(TAINT_RULES, made)

    def is_said(found: Raw | None) -> bool:
        condition = condition_of(found, CONDITION) if found is not None else None
        return condition is not None and condition["reason"] == reason

    name = Name("", made["metadata"]["name"])
    found = await scenes.settled_one(client, TAINT_RULES, name, is_said)
    condition = condition_of(found or {}, CONDITION) or {}
    return {key: value for key, value in condition.items() if key != "lastTransitionTime"}


@pytest.mark.real
@pytest.mark.timeout(300)
def test_rules_are_told_the_same_by_kube_controller_manager(start_cluster: StartCluster) -> None:
    """Reasons, messages, counts and events, for a rule of every effect."""
    options = Options(
        runtime_config=WITH_RULES.switches,
        feature_gates={"DRADeviceTaintRules": True},
    )
    kubeconfig = start_cluster(options).plane.kubeconfig

    async def real() -> tuple[list[Raw], set[tuple[str, str]]]:
        async with our_kubelet(kubeconfig) as client:
            return await _everything_said(client)

    async def ours() -> tuple[list[Raw], set[tuple[str, str]]]:
        async with embedded(ControlPlaneOptions(runtime_config=WITH_RULES)) as cluster:
            return await _everything_said(cluster.client)

    assert asyncio.run(ours()) == asyncio.run(real())


@pytest.mark.stage(prepare=_run_a_pod, release=Release.V1_37)
async def test_a_default_cluster_of_1_37_acts_on_rules_in_v1(stage: Stage) -> None:
    """Pods are evicted and not scheduled again, without any gate or version to enable."""
    await stage.client.create(TAINT_RULES_V1, _made("doing", "NoExecute", device="gpu-0"))
    await stage.until(lambda: stage.is_gone(PODS, "p"))
    await stage.create(PODS, pod("next"))
    await stage.advance(30)
    condition = condition_of(await stage.client.get(TAINT_RULES_V1, "doing"), CONDITION)

    assert condition is not None
    assert (condition["status"], condition["reason"]) == ("False", "Completed")
    assert condition["message"] == "1 pod evicted since starting the controller."
    assert await stage.is_in_phase("next", "Pending")
