"""The programs of the test bed, as things to build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.golang import build, sources
from tests.realcluster.releases import CONTROL_PLANE, MODULES, NODE, Release

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = "k8s.io/component-base/version"


def kubernetes(name: str, release: Release) -> Path:
    """Build Kubernetes' own programs, with its version instead of v0.0.0; return one of them."""
    major, minor = release.minor.split(".")
    words = {"gitVersion": f"v{release.version}", "gitMajor": major, "gitMinor": minor}
    link = [f"-X {_VERSION}.{key}={word}" for key, word in words.items()]
    # In one go: Go loads and checks the thousands of packages below them once.
    packages = [f"k8s.io/kubernetes/cmd/{each}" for each in (*CONTROL_PLANE, *NODE)]
    return build(release.module, packages, link=link).path(name)


def etcd() -> Path:
    # The program is called after its package.
    return build(MODULES / "etcd", ("go.etcd.io/etcd/server/v3",)).path("server")


def kwok() -> Path:
    return build(MODULES / "kwok", ("sigs.k8s.io/kwok/cmd/kwok",)).path("kwok")


def kwok_stages() -> list[Path]:
    """Return the files with what KWOK does to nodes and Pods by default."""
    stages = sources(MODULES / "kwok", "sigs.k8s.io/kwok") / "kustomize" / "stage"
    folders = (stages / "node/fast", stages / "node/heartbeat-with-lease", stages / "pod/fast")
    files = sorted(file for folder in folders for file in folder.glob("*.yaml"))
    return [file for file in files if file.name != "kustomization.yaml"]


def helm() -> Path:
    return build(MODULES / "helm", ("helm.sh/helm/v3/cmd/helm",)).path("helm")


def containerd(name: str) -> Path:
    """containerd itself, its shim, or ctr; all three are of one version."""
    commands = "github.com/containerd/containerd/v2/cmd"
    packages = [f"{commands}/{each}" for each in ("containerd", "containerd-shim-runc-v2", "ctr")]
    return build(MODULES / "containerd", packages).path(name)
