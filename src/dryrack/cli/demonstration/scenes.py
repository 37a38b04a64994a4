"""
Scenes of the demo that need a control plane: each is a data file.

A scene is a row of steps. A step applies files, or deletes what they name, and says what must come
of it: which devices nodes have, which pods run where and with which devices, what events tell. It
fails if that does not come about. Names may be patterns, as those of files.
"""

from __future__ import annotations

from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import yaml

from dryrack.cli.demonstration.device_table import (
    devices_of,
    events_of,
    published,
    ready_nodes,
    running_on,
    slices_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.cli.demonstration.device_table import Sight

SCENES = Path(__file__).parents[1] / "demos"
EXAMPLES = Path(__file__).parents[1] / "examples"


class Expectation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must be so; what is not mentioned may be as it likes."""

    ready: tuple[str, ...] = ()
    """Nodes that are ready."""
    devices: dict[str, list[str]] = {}
    """By node, or `all nodes`: every device that is published there."""
    counts: dict[str, dict[str, int]] = {}
    """By node, by driver: how many devices are published there."""
    slices: dict[str, list[str]] = {}
    """By node: the names of all its slices."""
    running: dict[str, str] = {}
    """By pod: its node."""
    given: dict[str, list[str]] = {}
    """By pod: every device it has."""
    waiting: tuple[str, ...] = ()
    """Pods that do not run."""
    told: tuple[str, ...] = ()
    """Words of events."""

    def lacking(self, sight: Sight) -> list[str]:
        """What must be so and is not, each as a sentence."""
        return [*self._devices(sight), *self._pods(sight), *self._events(sight)]

    def _devices(self, sight: Sight) -> Iterator[str]:
        ready = ready_nodes(sight)
        yield from (f"node {node} is not ready" for node in self.ready if node not in ready)
        there = published(sight)
        for node, wanted in self.devices.items():
            found = there.get(node, [])
            if not _fit(found, wanted):
                yield f"node {node} has {_listed(found)}, not {_listed(wanted)}"
        names = slices_of(sight)
        for node, wanted in self.slices.items():
            found = names.get(node, [])
            if not _fit(found, wanted):
                yield f"node {node} has the slices {_listed(found)}, not {_listed(wanted)}"
        for node, counts in self.counts.items():
            drivers = Counter(device.partition("/")[0] for device in there.get(node, []))
            if drivers != counts:
                yield f"node {node} has {_counted(drivers)}, not {_counted(counts)}"

    def _pods(self, sight: Sight) -> Iterator[str]:
        where, devices = running_on(sight), devices_of(sight)
        for pod, node in self.running.items():
            if pod not in where or not fnmatchcase(where[pod], node):
                yield f"pod {pod} runs on {where.get(pod, 'no node')}, not on {node}"
        for pod in self.waiting:
            if pod in where:
                yield f"pod {pod} runs on {where[pod]}, and must wait"
        for pod, wanted in self.given.items():
            found = devices.get(pod, [])
            if not _fit(found, wanted):
                yield f"pod {pod} has {_listed(found)}, not {_listed(wanted)}"

    def _events(self, sight: Sight) -> Iterator[str]:
        events = events_of(sight)
        for words in self.told:
            if not any(words in each for each in events):
                yield f"no event says {words!r}"


class Step(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One thing that is done, and what must come of it."""

    title: str
    apply: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    show: tuple[str, ...] = ()
    """Those of the files that are worth reading."""
    expect: Expectation = Expectation()


class Scene(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One data file."""

    title: str
    steps: tuple[Step, ...]
    name: str = ""
    up: tuple[str, ...] = ()
    """Options of the control plane it is played on."""


def load_scenes() -> Iterator[Scene]:
    for path in sorted(SCENES.glob("*.yaml")):
        raw = yaml.safe_load(path.read_text())
        yield msgspec.convert({**raw, "name": path.stem}, Scene)


def _fit(found: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether each is what is wanted, in the order of their names."""
    pairs = zip(sorted(found), sorted(wanted), strict=False)
    return len(found) == len(wanted) and all(fnmatchcase(*pair) for pair in pairs)


def _counted(counts: Mapping[str, int]) -> str:
    return _listed([f"{count} of {driver}" for driver, count in counts.items()])


def _listed(names: Sequence[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
