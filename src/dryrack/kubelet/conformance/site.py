"""The places of a conformance run: directories, node, and kubeconfig."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kubelet.conformance.program import Program
from dryrack.kubelet.programs import fill, places_of
from dryrack.kubelet.registration import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Site:
    """The directory of a run, and what its programs need."""

    directory: Path
    node: str
    kubeconfig: Path
    # Marks processes that must not survive the run; see `start_guard`.
    environment: Mapping[str, str]

    @property
    def kubelet(self) -> Path:
        return self.directory / "kubelet"

    @property
    def cdi(self) -> Path:
        return self.directory / "cdi"

    @property
    def places(self) -> Mapping[str, str]:
        """The values of the placeholders in the words of a program."""
        return {
            **places_of(self.node, self.kubelet, str(self.kubeconfig)),
            "cdi": str(self.cdi),
            "work": str(self.directory / "work"),
        }

    def make_directories(self) -> None:
        """Create the directories that programs expect."""
        for path in (self.kubelet / "plugins", self.kubelet / REGISTRY, self.cdi):
            path.mkdir(parents=True, exist_ok=True)
        (self.directory / "work").mkdir(exist_ok=True)

    def program(self, words: Sequence[str], log: str) -> Program:
        """Return a program whose words have the places, and a UID of their own for `{uid}`."""
        # The paths of sockets, which contain it, are limited.
        places = {**self.places, "uid": uuid.uuid4().hex[:8]}
        environment = {"NODE_NAME": self.node, "KUBECONFIG": str(self.kubeconfig)}
        return Program(
            [fill(each, places) for each in words],
            {**environment, **self.environment},
            self.directory / log,
        )
