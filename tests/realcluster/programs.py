"""The programs of the test bed, as things to build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.golang import build
from tests.realcluster.releases import MODULES, Release

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = "k8s.io/component-base/version"
# All modules build with the same compiler flags, so that Go compiles a package once for all.
_PLAIN = ("-trimpath", "-ldflags", "-s -w")


def kubernetes(name: str, release: Release) -> Path:
    """Build one of Kubernetes' own programs, with its version instead of v0.0.0."""
    major, minor = release.minor.split(".")
    words = {"gitVersion": f"v{release.version}", "gitMajor": major, "gitMinor": minor}
    linker = " ".join(["-s", "-w", *(f"-X {_VERSION}.{key}={word}" for key, word in words.items())])
    package = f"k8s.io/kubernetes/cmd/{name}"
    return build(release.module, (package,), flags=("-trimpath", "-ldflags", linker)).path(name)


def etcd() -> Path:
    # The program is called after its package.
    return build(MODULES / "etcd", ("go.etcd.io/etcd/server/v3",), flags=_PLAIN).path("server")


def kwok() -> Path:
    return build(MODULES / "kwok", ("sigs.k8s.io/kwok/cmd/kwok",), flags=_PLAIN).path("kwok")


def helm() -> Path:
    return build(MODULES / "helm", ("helm.sh/helm/v3/cmd/helm",), flags=_PLAIN).path("helm")


def containerd(name: str) -> Path:
    """containerd itself, its shim, or ctr; all three must be of one version."""
    package = f"github.com/containerd/containerd/v2/cmd/{name}"
    return build(MODULES / "containerd", (package,), flags=_PLAIN).path(name)
