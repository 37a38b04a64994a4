"""Daemon sets under any order of events: a new template reaches every node within its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.controllers.worlds import World

from dryrack.client.endpoints import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from dryrack.client.informer import Name
from dryrack.controllers.daemonsets import DaemonSetInputs, plan, target_of
from dryrack.controllers.objects import is_ready
from dryrack.controllers.workloads import is_active

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw


NAME = Name("default", "agent")
STEPS = st.lists(st.tuples(st.sampled_from(["look", "ready"]), st.integers(0, 3)), max_size=30)


class Play:
    """A daemon set on some nodes, and a kubelet that takes its time."""

    def __init__(self, nodes: int, rolling: Raw) -> None:
        self.world = World()
        for number in range(nodes):
            self.world.create(NODES, {"metadata": {"name": f"node-{number}"}, "spec": {}})
        self.world.create(DAEMON_SETS, _daemon_set("v1", rolling))

    @property
    def pods(self) -> list[Raw]:
        return [pod for pod in self.world.all(PODS) if is_active(pod)]

    @property
    def images(self) -> dict[str, list[str]]:
        """By node: the images that are there."""
        found: dict[str, list[str]] = {}
        for pod in self.pods:
            found.setdefault(target_of(pod), []).append(pod["spec"]["containers"][0]["image"])
        return found

    def look(self, up_to: int | None = None) -> int:
        found = self.world.get(DAEMON_SETS, NAME)
        assert found is not None
        scene = DaemonSetInputs(
            found,
            self.world.all(NODES),
            self.world.all(PODS),
            self.world.all(CONTROLLER_REVISIONS),
            self.world.now,
        )
        writes = plan(scene).writes
        self.world.carry_out(writes, up_to=up_to)
        return len(writes)

    def ready(self, number: int) -> int:
        waiting = [pod for pod in self.pods if not is_ready(pod)][: number + 1]
        for pod in waiting:
            status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            self.world.put(PODS, pod | {"status": status})
        return len(waiting)

    def change_image(self, image: str) -> None:
        old = self.world.get(DAEMON_SETS, NAME)
        assert old is not None
        rolling = old["spec"]["updateStrategy"]["rollingUpdate"]
        metadata = old["metadata"] | {"generation": old["metadata"]["generation"] + 1}
        spec = _daemon_set(image, rolling)["spec"]
        self.world.put(DAEMON_SETS, old | {"metadata": metadata, "spec": spec})

    def finish(self) -> None:
        for _ in range(200):
            if not self.look() + self.ready(0):
                return
        raise AssertionError("it does not come to an end")


def _daemon_set(image: str, rolling: Raw) -> Raw:
    labels = {"app": "agent"}
    return {
        "metadata": {"name": NAME.name, "namespace": NAME.namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    }


def _play(nodes: int, rolling: Raw, steps: list[tuple[str, int]]) -> Iterator[Play]:
    """The moments of a rollout from one image to another."""
    play = Play(nodes, rolling)
    play.finish()
    play.change_image("v2")
    for step, number in steps:
        if step == "look":
            play.look(up_to=None if number == 3 else number)
        else:
            play.ready(number)
        yield play
    play.finish()
    yield play


@settings(deadline=None)
@given(st.integers(1, 5), st.sampled_from([1, 2, "50%"]), STEPS)
def test_a_surge_leaves_no_node_without_a_daemon(
    nodes: int, surge: int | str, steps: list[tuple[str, int]]
) -> None:
    """With a surge, every node has a ready pod at every moment."""
    for play in _play(nodes, {"maxSurge": surge, "maxUnavailable": 0}, steps):
        served = {target_of(pod) for pod in play.pods if is_ready(pod)}

        assert len(served) == nodes
        assert all(len(images) <= 2 for images in play.images.values())
    assert list(play.images.values()) == [["v2"]] * nodes


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 3), STEPS)
def test_no_more_daemons_are_missing_than_may_be(
    nodes: int, gap: int, steps: list[tuple[str, int]]
) -> None:
    """Without a surge, at most the allowed number of nodes have no ready pod."""
    for play in _play(nodes, {"maxUnavailable": gap}, steps):
        served = {target_of(pod) for pod in play.pods if is_ready(pod)}

        assert nodes - len(served) <= gap
        assert all(len(images) <= 1 for images in play.images.values())
    assert list(play.images.values()) == [["v2"]] * nodes


def test_the_data_of_a_revision_has_sorted_keys() -> None:
    """Clients compare its bytes with those of the template, whose keys Go sorts."""
    play = Play(1, {"maxSurge": 0, "maxUnavailable": 1})
    play.finish()
    [revision] = play.world.all(CONTROLLER_REVISIONS)
    template = revision["data"]["spec"]["template"]

    assert list(template) == ["$patch", "metadata", "spec"]
    assert list(template["spec"]["containers"][0]) == ["image", "name"]
