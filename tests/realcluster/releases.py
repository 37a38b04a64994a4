"""The versions of everything in the test bed, and where each program is built from."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE, gates_of
from dryrack.kinds.releases import Release as Answers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dryrack.kinds.raw import Raw

MODULES = Path(__file__).parent / "modules"


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Kubernetes that can be started."""

    minor: str
    version: str

    @property
    def module(self) -> Path:
        return MODULES / f"kubernetes-{self.minor}"

    def runs(self, folder: str) -> bool:
        """Return whether the tests of a folder apply to the release."""
        return folder in OF_ANY_RELEASE or self.minor in {each.value for each in Answers}

    def knows(self, gates: Iterable[str]) -> bool:
        """Return whether the release has these feature gates, by the tables of dryrack."""
        tables = [each for each in Answers if each.value == self.minor]
        return all(gate in gates_of(each) for each in tables for gate in gates)

    def has(self, objects: Iterable[Raw]) -> bool:
        """Return whether the release has the kinds of objects that some release has."""
        kinds = {(each["apiVersion"], each["kind"]) for each in objects}
        found = {each.value: set(_kinds_of(each)) for each in Answers}
        return not kinds & set.union(*found.values()) - found.get(self.minor, kinds)


def _kinds_of(release: Answers) -> Iterator[tuple[str, str]]:
    return ((each.api_version, each.kind) for each in builtin_kinds(release))


RELEASES: Mapping[str, Release] = {
    "1.37": Release("1.37", "1.37.1"),
    "1.36": Release("1.36", "1.36.4"),
    "1.35": Release("1.35", "1.35.8"),
    "1.34": Release("1.34", "1.34.10"),
}
# What the tests run: the release whose answers dryrack gives by default, or the one asked for by
# `make real RELEASE=…`.
RELEASE = RELEASES[os.environ.get("DRYRACK_KUBERNETES") or DEFAULT_RELEASE.value]

# The folders of tests that also run on releases whose answers dryrack does not give.
OF_ANY_RELEASE = ("kubeletplugin", "publisher", "realcluster", "scheduler")

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE = ("kubelet",)
