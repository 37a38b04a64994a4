"""The versions of everything in the test bed, and where each program is built from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MODULES = Path(__file__).parent / "modules"


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Kubernetes that can be started."""

    minor: str
    version: str

    @property
    def module(self) -> Path:
        return MODULES / f"kubernetes-{self.minor}"


RELEASES: Mapping[str, Release] = {
    "1.37": Release("1.37", "1.37.1"),
    "1.36": Release("1.36", "1.36.4"),
    "1.35": Release("1.35", "1.35.8"),
}
DEFAULT_RELEASE = "1.36"

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
NODE = ("kubelet",)
