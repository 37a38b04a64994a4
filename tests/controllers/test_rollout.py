"""Rollouts under any order of events: the limits hold at every moment, and they come to an end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.scenes import deployment
from tests.controllers.worlds import World

from dryrack.client.endpoints import DEPLOYMENTS, PODS, REPLICA_SETS
from dryrack.client.informer import Name
from dryrack.controllers import replicasets
from dryrack.controllers.deployments import rollout
from dryrack.controllers.deployments.scaling import Limits, limits_of
from dryrack.controllers.objects import is_controlled_by, is_ready, status_of, uid_of
from dryrack.controllers.workloads import is_active, template_hash

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

NAME = Name("default", "web")
SIZES = st.sampled_from([0, 1, 2, "0%", "25%", "50%", "100%"])


class Play:
    """A deployment, its controllers, and a kubelet that takes its time."""

    def __init__(self, replicas: int, strategy: Raw) -> None:
        self.world = World()
        wanted = deployment(NAME, replicas=replicas, strategy=strategy)
        self.world.create(DEPLOYMENTS, wanted)

    @property
    def deployment(self) -> Raw:
        found = self.world.get(DEPLOYMENTS, NAME)
        assert found is not None
        return found

    def pods(self) -> list[Raw]:
        return [pod for pod in self.world.all(PODS) if is_active(pod)]

    def roll(self, up_to: int | None = None) -> int:
        sets = self.world.all(REPLICA_SETS)
        pods = {
            uid_of(each): [pod for pod in self.world.all(PODS) if is_controlled_by(pod, each)]
            for each in sets
        }
        plan = rollout.plan(self.deployment, sets, pods, self.world.now)
        self.world.carry_out(plan.writes, up_to=up_to)
        return len(plan.writes)

    def replicate(self, up_to: int | None = None) -> int:
        count = 0
        for each in self.world.all(REPLICA_SETS):
            plan = replicasets.plan(each, self.world.all(PODS), self.world.now)
            self.world.carry_out(plan.writes, up_to=up_to)
            count += len(plan.writes)
        return count

    def turn_ready(self, number: int) -> int:
        waiting = [pod for pod in self.pods() if not is_ready(pod)]
        for pod in waiting[: number + 1]:
            ready = {"type": "Ready", "status": "True"}
            status = {"phase": "Running", "conditions": [ready]}
            self.world.put(PODS, pod | {"status": status})
        return len(waiting[: number + 1])

    def edit(self, **spec: Any) -> None:
        old = self.deployment
        generation = old["metadata"]["generation"] + 1
        metadata = old["metadata"] | {"generation": generation}
        self.world.put(DEPLOYMENTS, old | {"metadata": metadata, "spec": old["spec"] | spec})

    def change_image(self, number: int) -> None:
        self.edit(template=deployment(NAME, replicas=1, image=f"v{number}")["spec"]["template"])

    def finish(self) -> None:
        for _ in range(200):
            if not self.roll() + self.replicate() + self.turn_ready(0):
                return
        raise AssertionError("the rollout has no end")


STEPS = st.lists(
    st.tuples(st.sampled_from(["roll", "replicate", "ready", "crash"]), st.integers(0, 3)),
    max_size=40,
)


@settings(max_examples=150)
@given(st.integers(1, 6), SIZES, SIZES, STEPS)
def test_a_rolling_update_keeps_its_limits(
    replicas: int, surge: int | str, gap: int | str, steps: list[tuple[str, int]]
) -> None:
    """Never more pods than the surge allows, never fewer available than the gap allows."""
    play = Play(
        replicas,
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": gap}},
    )
    play.finish()
    limits = limits_of(play.deployment)
    play.change_image(2)
    for word, number in steps:
        do(play, word, number)
        check(play, limits)
    play.finish()
    images = {pod["spec"]["containers"][0]["image"] for pod in play.pods()}

    assert images == {"v2"}
    assert len(play.pods()) == replicas
    assert status_of(play.deployment)["updatedReplicas"] == replicas


def do(play: Play, word: str, number: int) -> None:
    match word:
        case "roll":
            play.roll()
        case "replicate":
            play.replicate()
        case "ready":
            play.turn_ready(number)
        case "crash":
            play.roll(up_to=number)
            play.replicate(up_to=number)


def check(play: Play, limits: Limits) -> None:
    pods = play.pods()
    wanted = sum(each["spec"]["replicas"] for each in play.world.all(REPLICA_SETS))
    assert wanted <= limits.total_max
    assert len(pods) <= limits.total_max
    assert sum(is_ready(pod) for pod in pods) >= limits.available_min


@settings(max_examples=60)
@given(st.integers(1, 5), STEPS)
def test_recreate_never_mixes_templates(replicas: int, steps: list[tuple[str, int]]) -> None:
    """With Recreate, old and new pods never exist together."""
    play = Play(replicas, {"type": "Recreate"})
    play.finish()
    play.change_image(2)
    for word, number in steps:
        do(play, word, number)
        images = {pod["spec"]["containers"][0]["image"] for pod in play.pods()}
        assert len(images) <= 1
    play.finish()

    assert {pod["spec"]["containers"][0]["image"] for pod in play.pods()} == {"v2"}


@settings(max_examples=60)
@given(st.integers(1, 6), st.integers(0, 8), STEPS, STEPS)
def test_a_deployment_scaled_in_the_middle_ends_at_its_size(
    before: int, after: int, first: list[tuple[str, int]], second: list[tuple[str, int]]
) -> None:
    """The rollout ends with the wanted number of pods after any change of the size."""
    play = Play(before, {"type": "RollingUpdate"})
    play.finish()
    play.change_image(2)
    for word, number in first:
        do(play, word, number)
    play.edit(replicas=after)
    for word, number in second:
        do(play, word, number)
    play.finish()

    assert len(play.pods()) == after


def test_old_templates_are_remembered_to_the_limit() -> None:
    """The newest old replica sets are kept, up to the history limit."""
    play = Play(1, {"type": "RollingUpdate"})
    play.edit(revisionHistoryLimit=2)
    for number in range(6):
        play.change_image(number)
        play.finish()
    revisions = [rollout.revision_of(each) for each in play.world.all(REPLICA_SETS)]

    assert sorted(revisions) == [4, 5, 6]


@given(st.integers(0, 100), st.integers(0, 100))
def test_hashes_follow_templates(left: int, right: int) -> None:
    """Equal templates have equal hashes, others others."""
    one, other = ({"spec": {"n": number, "m": 1}} for number in (left, right))

    assert (template_hash(one) == template_hash(other)) == (left == right)
    assert template_hash({"spec": {"m": 1, "n": left}}) == template_hash(one)
