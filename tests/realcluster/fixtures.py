"""
The test bed as pytest fixtures: a shared control plane with a fresh namespace for each test, a
private cluster on request, and a node on request. A guard sees to it that nothing is left.
"""

from __future__ import annotations

import itertools
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pytest
from tests.realcluster import guard
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import ControlPlane, Options
from tests.realcluster.releases import RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import CompletedProcess

    from tests.realcluster.cluster import Cluster

_UNTIL_THERE = ("--for=create", "--timeout=30s")
# Tests that start clusters, for those who run tests side by side.
CLUSTERS = "clusters"
_STARTING = {"real_plane", "real_node_cluster", "start_cluster", "start_module_cluster"}
# Browsers give up what they load while interfaces of nodes come and go.
_BROWSING = {"look"}
_NOT_FOR_THE_RELEASE = (
    f"Kubernetes {RELEASE.minor} runs with the publisher, the scheduler, and the plugin only"
)
_COUNTER = itertools.count(1)


class StartCluster(Protocol):
    """Starts a cluster that ends with the test."""

    def __call__(self, options: Options, parts: Parts | None = None) -> Cluster: ...


StartModuleCluster = StartCluster


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Clusters take turns, and share the machine with what needs none.
    for item in items:
        if item.get_closest_marker("real") and not RELEASE.runs(item.path.parent.name):
            item.add_marker(pytest.mark.skip(_NOT_FOR_THE_RELEASE))
        if item.get_closest_marker("real") and not item.get_closest_marker("xdist_group"):
            names = getattr(item, "fixturenames", ())
            takes_turns = (_STARTING | _BROWSING).intersection(names)
            item.add_marker(pytest.mark.xdist_group(CLUSTERS if takes_turns else item.path.stem))


def pytest_collection_finish(session: pytest.Session) -> None:
    is_real = any(item.get_closest_marker("real") for item in session.items)
    if is_real and not session.config.option.collectonly:
        guard.ensure()


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace of one test, and kubectl in it."""

    name: str
    plane: ControlPlane

    def kubectl(self, *arguments: str, stdin: str | None = None) -> CompletedProcess[str]:
        return self.plane.kubectl("-n", self.name, *arguments, stdin=stdin)

    def apply(self, manifest: str) -> None:
        done = self.kubectl("apply", "-f", "-", stdin=manifest)
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def real_plane(request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """One control plane for the whole run."""
    with _started(request, Options()) as cluster:
        yield cluster.plane


@pytest.fixture(scope="session")
def real_node_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One cluster with a real kubelet for the whole run."""
    with _started(request, Options(), Parts(node=True)) as cluster:
        yield cluster


@pytest.fixture
def real_namespace(real_plane: ControlPlane) -> Iterator[Namespace]:
    """A fresh namespace on the shared control plane."""
    with _Fresh(real_plane) as namespace:
        yield namespace


@pytest.fixture
def real_node_namespace(real_node_cluster: Cluster) -> Iterator[Namespace]:
    """A fresh namespace on the cluster that has a real node."""
    with _Fresh(real_node_cluster.plane) as namespace:
        yield namespace


@pytest.fixture
def start_cluster(request: pytest.FixtureRequest) -> Iterator[StartCluster]:
    """Private clusters, stopped when the test ends."""
    yield from _private_clusters(request)


@pytest.fixture(scope="module")
def start_module_cluster(request: pytest.FixtureRequest) -> Iterator[StartModuleCluster]:
    """Private clusters, stopped when the last test of the module ends."""
    yield from _private_clusters(request)


def _private_clusters(request: pytest.FixtureRequest) -> Iterator[StartCluster]:
    with ExitStack() as stack:

        def start(options: Options, parts: Parts | None = None) -> Cluster:
            return stack.enter_context(_started(request, options, parts))

        yield start


@contextmanager
def _started(
    request: pytest.FixtureRequest, options: Options, parts: Parts | None = None
) -> Iterator[Cluster]:
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with ExitStack() as stack:
        # The first start may build for minutes and says so; captured, it would look like a hang.
        with capture.global_and_fixture_disabled():
            cluster = stack.enter_context(guard.throw_away(options, parts))
        yield cluster


class _Fresh:
    """A namespace for the time of a block, ready for pods."""

    def __init__(self, plane: ControlPlane) -> None:
        self._namespace = Namespace(f"test-{next(_COUNTER)}", plane)

    def __enter__(self) -> Namespace:
        namespace = self._namespace
        done = namespace.plane.kubectl("create", "namespace", namespace.name)
        assert done.returncode == 0, done.stderr
        # Pods need it, and a controller makes it.
        done = namespace.kubectl("wait", "serviceaccount/default", *_UNTIL_THERE)
        assert done.returncode == 0, done.stderr
        return namespace

    def __exit__(self, *_: object) -> None:
        self._namespace.plane.kubectl(
            "delete", "namespace", self._namespace.name, "--wait=false", "--ignore-not-found"
        )
