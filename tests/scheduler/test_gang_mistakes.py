"""Mistakes in gangs: each is reported with its remedy, and no other pod waits for the gang."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers import scenes
from tests.scheduler.gang_scenes import NAMESPACE, PREFIX, GangStage, lone, member

from dryrack.client.endpoints import CLAIMS, TEMPLATES

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.stage(kind=GangStage)


def changed(pod: Raw, **labels: str) -> Raw:
    pod["metadata"]["labels"] |= {f"{PREFIX}/{key}": value for key, value in labels.items()}
    return pod


def template(name: str, **exactly: Any) -> Raw:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu", **exactly}}]
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"metadata": metadata, "spec": {"spec": {"devices": {"requests": requests}}}}


def with_claim(pod: Raw, **source: str) -> Raw:
    pod["spec"]["resourceClaims"] = [{"name": "gpu", **source}]
    return pod


def in_two() -> Raw:
    pod = member("bad-0", "bad", 2)
    pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = "other"
    return pod


# Pods that kube-scheduler's PreEnqueue holds back get no condition.
NOTHING = ""
CASES = {
    "a minimum of zero": (
        [changed(member("bad-0", "bad", 2), **{"min-available": "0"})],
        "'0' is less than 1; set the number of pods that must run together",
    ),
    "more than ever come": (
        [member("bad-0", "bad", 9), member("bad-1", "bad", 9)],
        "pod group default/bad has 2 pods, needs at least 9; create 7 more, or lower the minimum",
    ),
    "two gangs": ([in_two()], "is in 2 gangs: pod group default/bad and PodGroup.scheduling.x-k8s"),
    "a claim that is not there": (
        [with_claim(member(f"bad-{n}", "bad", 2), resourceClaimName="gone") for n in range(2)],
        NOTHING,
    ),
    "a class that is not there": (
        [
            with_claim(member(f"bad-{n}", "bad", 2), resourceClaimTemplateName="classless")
            for n in range(2)
        ],
        "nosuch",
    ),
    "a selector that fails": (
        [
            with_claim(member(f"bad-{n}", "bad", 2), resourceClaimTemplateName="failing")
            for n in range(2)
        ],
        "no such key",
    ),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_mistake_is_told_and_keeps_nobody(stage: GangStage, name: str) -> None:
    """The condition of each member reports it; a pod and a gang beside it run."""
    pods, told = CASES[name]

    client = stage.client
    await client.create(TEMPLATES, template("classless", deviceClassName="nosuch"))
    selector = {"cel": {"expression": "device.attributes['x'].y == 1"}}
    await client.create(TEMPLATES, template("failing", selectors=[selector]))
    stage.start()
    await stage.create_pods(*pods)
    await stage.create_pods(lone("alone"), member("a", "good", 2), member("b", "good", 2))
    await stage.rest()
    assert await stage.bound() == ["a", "alone", "b"]
    for pod in pods:
        words = await stage.refusal(pod["metadata"]["name"])
        assert words == "" if told is NOTHING else told in words
    await stage.check({"good": 2, "bad": 2})


async def test_a_gang_goes_on_when_its_claim_is_made(stage: GangStage) -> None:
    """The claim that all its members share is waited for, and allocated once."""
    stage.start()
    pods = [with_claim(member(f"g{n}", "gang", 2), resourceClaimName="shared") for n in (0, 1)]
    await stage.create_pods(*pods)
    await stage.rest()
    spec = scenes.template_in(NAMESPACE)["spec"]["spec"]
    metadata = {"name": "shared", "namespace": NAMESPACE}
    await stage.client.create(CLAIMS, {"metadata": metadata, "spec": spec})
    await stage.rest()
    assert await stage.bound() == ["g0", "g1"]
    [claim] = (await stage.client.list(CLAIMS)).items
    assert sorted(user["name"] for user in claim["status"]["reservedFor"]) == ["g0", "g1"]
    assert len(await stage.allocated_devices()) == 1
