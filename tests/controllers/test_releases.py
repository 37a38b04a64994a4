"""What the controllers of 1.37 do differently from those of 1.36."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from tests.controllers.scenes import POD_SPEC
from tests.controllers.volumes import VolumeStage, claim, user, volume
from tests.controllers.worlds import World

from dryrack.client.endpoints import (
    CLAIMS,
    CONTROLLER_REVISIONS,
    PODS,
    STATEFUL_SETS,
    TEMPLATES,
    VOLUME_CLAIMS,
)
from dryrack.client.informer import Informers, Name
from dryrack.cluster import SeededChance
from dryrack.controllers.claims import creation
from dryrack.controllers.objects import condition_of, is_ready, labels_of, status_of
from dryrack.controllers.revisions import HASH_LABEL
from dryrack.controllers.statefulsets import StatefulSetInputs, plan
from dryrack.controllers.workloads import pod_from
from dryrack.controllers.writes import Apply, EngineContext, Report
from dryrack.kinds.releases import CONTROLLERS, FeatureSet, Release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.stage import Stage

    from dryrack.kinds.raw import Raw

NAME = Name("default", "db")
BOTH = pytest.mark.parametrize("release", Release)
READY: Raw = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
CONDITION: Raw = {"type": "Reviewed", "status": "True"}


class StatefulSetWorld:
    """A StatefulSet, its controller, and a kubelet."""

    def __init__(self, release: Release, replicas: int, **spec: Any) -> None:
        self.world = World()
        self._behaviour = CONTROLLERS[release]
        self._has_budget = FeatureSet(release).is_on("MaxUnavailableStatefulSet")
        labels = {"app": "db"}
        template = {"metadata": {"labels": labels}, "spec": POD_SPEC}
        whole = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        metadata = {"name": NAME.name, "namespace": NAME.namespace}
        self.world.create(STATEFUL_SETS, {"metadata": metadata, "spec": whole | spec})

    @property
    def stateful_set(self) -> Raw:
        stored = self.world.get(STATEFUL_SETS, NAME)
        assert stored is not None
        return stored

    def step(self) -> set[str]:
        """Run the controller once; return the names of the pods that it deletes."""
        before = {each["metadata"]["name"] for each in self.world.all(PODS)}
        revisions = self.world.all(CONTROLLER_REVISIONS)
        pods = self.world.all(PODS)
        inputs = StatefulSetInputs(
            self.stateful_set,
            pods,
            revisions,
            self.world.now,
            self._behaviour,
            has_budget=self._has_budget,
        )
        self.world.carry_out(plan(inputs).writes)
        return before - {each["metadata"]["name"] for each in self.world.all(PODS)}

    def start_pods(self, *, but: Sequence[str] = ()) -> None:
        for pod in self.world.all(PODS):
            if pod["metadata"]["name"] not in but:
                self.world.put(PODS, pod | {"status": READY})

    def settle(self) -> None:
        for _ in range(50):
            self.step()
            self.start_pods()

    def change(self, image: str = "v2", **spec: Any) -> None:
        old = self.stateful_set
        template = old["spec"]["template"]
        containers = [{"name": "main", "image": image}]
        template = template | {"spec": template["spec"] | {"containers": containers}}
        self.world.put(STATEFUL_SETS, old | {"spec": old["spec"] | {"template": template} | spec})

    def images(self) -> list[str]:
        return [pod["spec"]["containers"][0]["image"] for pod in self.world.all(PODS)]


def rolling(count: int | str, partition: int = 0) -> Raw:
    update = {"maxUnavailable": count, "partition": partition}
    return {"type": "RollingUpdate", "rollingUpdate": update}


@pytest.mark.parametrize(
    ("release", "count", "deleted"),
    [
        (Release.V1_36, 2, {"db-4"}),
        (Release.V1_37, 2, {"db-4", "db-3"}),
        (Release.V1_37, "50%", {"db-4", "db-3"}),
        # Rounded down, but never to 0.
        (Release.V1_37, "1%", {"db-4"}),
    ],
)
@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_as_many_pods_are_replaced_at_once_as_may_be_unavailable(
    release: Release, count: int | str, deleted: set[str], policy: str
) -> None:
    """1.36 replaces one pod, whatever `maxUnavailable` is."""
    world = StatefulSetWorld(release, 5, podManagementPolicy=policy, updateStrategy=rolling(count))
    world.settle()
    world.change()

    assert world.step() == deleted
    # Their successors are not available yet, so no other pod goes.
    assert world.step() == set()
    world.settle()
    assert world.images() == ["v2"] * 5
    status = status_of(world.stateful_set)
    assert status["currentRevision"] == status["updateRevision"]


def test_parallel_deletes_unavailable_old_pods_first_and_outside_the_budget() -> None:
    """Available pods are deleted while the budget lasts."""
    world = StatefulSetWorld(
        Release.V1_37, 6, podManagementPolicy="Parallel", updateStrategy=rolling(3)
    )
    world.settle()
    for name in ("db-0", "db-1"):
        pod = world.world.get(PODS, Name("default", name))
        assert pod is not None
        world.world.put(PODS, pod | {"status": {"phase": "Running"}})
    world.change()

    # Two are unavailable, and a budget of three has room for one more.
    assert world.step() == {"db-0", "db-1", "db-5"}


def test_a_broken_rollout_goes_on_with_parallel_though_the_budget_is_spent() -> None:
    """A new template can repair a set none of whose pods is available."""
    world = StatefulSetWorld(
        Release.V1_37, 3, podManagementPolicy="Parallel", updateStrategy=rolling(1)
    )
    world.step()
    world.change()

    assert world.step() == {"db-0", "db-1", "db-2"}


@BOTH
def test_a_partition_counts_from_the_first_ordinal(release: Release) -> None:
    """Pods below `ordinals.start` + `partition` keep the old revision."""
    world = StatefulSetWorld(
        release, 3, ordinals={"start": 10}, updateStrategy=rolling(1, partition=2)
    )
    world.settle()
    world.change()
    world.settle()

    revisions = {
        pod["metadata"]["name"]: labels_of(pod)[HASH_LABEL] for pod in world.world.all(PODS)
    }
    assert revisions["db-10"] == revisions["db-11"] != revisions["db-12"]


@pytest.mark.parametrize(("release", "completes"), [(Release.V1_36, False), (Release.V1_37, True)])
def test_on_delete_completes_when_all_pods_are_new(release: Release, completes: bool) -> None:
    """1.36 never changes the current revision with OnDelete."""
    world = StatefulSetWorld(release, 2, updateStrategy={"type": "OnDelete"})
    world.settle()
    world.change()
    world.settle()
    assert "v2" not in world.images()
    for pod in world.world.all(PODS):
        ended = pod["metadata"] | {"deletionTimestamp": "2027-01-01T00:00:00Z"}
        world.world.put(PODS, pod | {"metadata": ended})
    world.settle()

    status = status_of(world.stateful_set)
    assert world.images() == ["v2", "v2"]
    assert (status["currentRevision"] == status["updateRevision"]) == completes


@pytest.mark.parametrize(("release", "kept"), [(Release.V1_36, None), (Release.V1_37, [CONDITION])])
def test_conditions_of_others_stay(release: Release, kept: list[Raw] | None) -> None:
    """1.36 drops the conditions that another client has set."""
    world = StatefulSetWorld(release, 1)
    world.settle()
    status = status_of(world.stateful_set) | {"conditions": [CONDITION]}
    world.world.put(STATEFUL_SETS, world.stateful_set | {"status": status})
    world.settle()

    assert status_of(world.stateful_set).get("conditions") == kept
    assert all(map(is_ready, world.world.all(PODS)))


@pytest.mark.parametrize(
    ("release", "written"),
    [
        (Release.V1_36, ["main", "aux"]),
        (Release.V1_37, ["aux", "foreign", "main"]),
    ],
)
def test_names_of_claims_join_those_in_the_status(release: Release, written: list[str]) -> None:
    """1.37 keeps the entries that exist, and sorts all by name."""
    entries = [{"name": each, "resourceClaimTemplateName": "t"} for each in ("main", "aux")]
    template = {"metadata": {}, "spec": POD_SPEC | {"resourceClaims": entries}}
    owner = {"metadata": {"name": "x", "namespace": "default", "uid": "u"}}
    pod = pod_from(template, owner, STATEFUL_SETS)
    statuses = [{"name": "foreign", "resourceClaimName": "f"}]
    metadata = pod["metadata"] | {"name": "p", "uid": "uid-p"}
    pod = pod | {"metadata": metadata, "status": {"resourceClaimStatuses": statuses}}
    claims = {}
    for entry in ("main", "aux"):
        reference = {"uid": "uid-p", "name": "p", "kind": "Pod", "apiVersion": "v1"}
        given = {
            "name": f"p-{entry}",
            "namespace": "default",
            "annotations": {"resource.kubernetes.io/pod-claim-name": entry},
            "ownerReferences": [reference | {"controller": True}],
        }
        claims[Name("default", f"p-{entry}")] = {"metadata": given}

    (write,) = creation.plan(pod, claims, {}, behaviour=CONTROLLERS[release]).writes

    assert isinstance(write, Apply)
    assert [each["name"] for each in write.object["status"]["resourceClaimStatuses"]] == written


@pytest.mark.stage(only=("claims",))
async def test_a_claim_that_the_cache_lacks_is_not_created_again(stage: Stage) -> None:
    """The server is asked whether the claim in the status exists before a second one is made."""
    client = stage.client
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    await stage.create(TEMPLATES, {"metadata": {"name": "t", "namespace": "default"}, "spec": spec})
    entries = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    pod_spec = POD_SPEC | {"resourceClaims": entries}
    await stage.create(PODS, {"metadata": {"name": "p", "namespace": "default"}, "spec": pod_spec})
    await stage.advance(2)
    (made,) = (await client.list(CLAIMS)).items

    chance = SeededChance(0)
    informers = Informers(client, clock=stage.clock, chance=chance)
    controller = creation.ClaimCreation(EngineContext(client, informers, stage.clock, chance))
    # Only the cache of pods is filled.
    task = asyncio.create_task(informers.of(PODS).run())
    await informers.of(PODS).synced.wait()
    known = await controller.decide(Name("default", "p"))
    await client.delete(CLAIMS, made["metadata"]["name"], namespace="default")
    gone = await controller.decide(Name("default", "p"))
    task.cancel()

    assert known.writes == ()
    assert [type(each) for each in gone.writes] == [Report]


@pytest.mark.parametrize(("release", "created"), [(Release.V1_36, True), (Release.V1_37, False)])
@pytest.mark.stage(only=(), feature_gates={"GenericWorkload": True}, release=Release.V1_37)
async def test_a_pod_of_a_group_gets_no_claim_while_there_are_no_groups(
    stage: Stage, release: Release, created: bool
) -> None:
    """The pod was created while the API server had the feature gate GenericWorkload on."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    await stage.create(TEMPLATES, {"metadata": {"name": "t", "namespace": "default"}, "spec": spec})
    entries = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
    own = {"resourceClaims": entries, "schedulingGroup": {"podGroupName": "group"}}
    metadata = {"name": "p", "namespace": "default"}
    await stage.create(PODS, {"metadata": metadata, "spec": POD_SPEC | own})

    chance = SeededChance(0)
    informers = Informers(stage.client, clock=stage.clock, chance=chance)
    context = EngineContext(stage.client, informers, stage.clock, chance, release=release)
    # It is not started, so it does not know whether the server has groups.
    controller = creation.ClaimCreation(context)
    task = asyncio.create_task(informers.run())
    for each in controller.reads:
        await each.synced.wait()
    plan_of_pod = await controller.decide(Name("default", "p"))
    task.cancel()

    assert bool(plan_of_pod.writes) == created


async def unused(stage: Stage, name: str) -> tuple[str, str, str] | None:
    found = condition_of(await stage.client.get(VOLUME_CLAIMS, name, "default"), "Unused")
    return None if found is None else (found["status"], found["reason"], found["message"])


@pytest.mark.stage(kind=VolumeStage, release=Release.V1_37)
async def test_a_bound_claim_says_whether_a_pod_refers_to_it(stage: VolumeStage) -> None:
    """The condition follows the pods, and a pending claim has none."""
    await stage.make(volume("v", "5Gi"), claim("idle", storageClassName="manual"))
    is_idle = ("True", "NoPodsUsingPVC", "No pods are currently referencing this PVC")
    is_used = ("False", "PodUsingPVC", "A pod is currently referencing this PVC")
    await stage.make(claim("waiting", storageClassName="manual"))
    await stage.advance(5)
    assert await unused(stage, "idle") == is_idle
    # Only a bound claim is said to be unused.
    assert await unused(stage, "waiting") is None

    before = condition_of(await stage.client.get(VOLUME_CLAIMS, "idle", "default"), "Unused")
    await stage.create(PODS, user("p", "idle"))
    await stage.advance(5)
    after = condition_of(await stage.client.get(VOLUME_CLAIMS, "idle", "default"), "Unused")
    assert await unused(stage, "idle") == is_used
    assert before is not None
    assert after is not None
    assert after["lastTransitionTime"] > before["lastTransitionTime"]

    await stage.client.delete(PODS, "p", namespace="default")
    await stage.advance(60)
    assert await unused(stage, "idle") == is_idle


@pytest.mark.stage(kind=VolumeStage, release=Release.V1_36)
async def test_claims_of_1_36_say_nothing_about_their_pods(stage: VolumeStage) -> None:
    """A bound claim has no condition."""
    await stage.make(volume("v", "5Gi"), claim("idle", storageClassName="manual"))
    await stage.advance(5)

    assert await unused(stage, "idle") is None
