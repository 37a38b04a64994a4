"""The programs of the test bed, as things to build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.golang import Program, build
from tests.realcluster.releases import MODULES, Release

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = "k8s.io/component-base/version"


def kubernetes(name: str, release: Release) -> Path:
    """One of Kubernetes' own programs, which would call itself v0.0.0 if it were not told."""
    major, minor = release.minor.split(".")
    words = {"gitVersion": f"v{release.version}", "gitMajor": major, "gitMinor": minor}
    linker = " ".join(["-s", "-w", *(f"-X {_VERSION}.{key}={word}" for key, word in words.items())])
    package = f"k8s.io/kubernetes/cmd/{name}"
    return build(Program(name, release.module, package, ("-ldflags", linker)))


def etcd() -> Path:
    return _plain("etcd", "etcd", "go.etcd.io/etcd/server/v3")


def kwok() -> Path:
    return _plain("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok")


def containerd(name: str) -> Path:
    """containerd itself, its shim, or ctr; all three must be of one version."""
    return _plain(name, "containerd", f"github.com/containerd/containerd/v2/cmd/{name}")


def _plain(name: str, module: str, package: str) -> Path:
    return build(Program(name, MODULES / module, package, ("-ldflags", "-s -w")))
