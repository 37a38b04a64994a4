"""
The pytest plugin: fixtures that give each test a Kubernetes cluster of its own.

Every start of pytest loads this module, so it imports only pytest; a cluster is loaded with the
first test that uses one. Each test has its own cluster, so tests run in any order and in any number
of processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from dryrack.testing import (
        Apply,
        AsyncCluster,
        Cluster,
        ClusterClock,
        Drivers,
        ExpectPending,
        ExpectScheduled,
        Fleet,
        Setup,
    )

MARKER = "dryrack"
# More explanations than this do not help to understand a failure.
_EXPLAINED_MAX = 3


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(release=RELEASE, feature_gates=GATES, scheduler_config=FILE, "
        "runtime_config=VERSIONS, without=ENGINES, seed=NUMBER, provisioner=True): options of "
        "the cluster of dryrack_cluster",
    )
    # pytest rewrites the assert statements of packages with a plugin. For all of dryrack that takes
    # seconds and has no use. If the internals of pytest change, it takes these seconds.
    marked = getattr(getattr(config.pluginmanager, "rewrite_hook", None), "_must_rewrite", None)
    if isinstance(marked, set):
        marked.discard("dryrack")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--dryrack-release",
        metavar="RELEASE",
        help="Kubernetes release of clusters whose tests have no marker with another one",
    )


@pytest.fixture
def dryrack_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A new Kubernetes cluster in this process, whose time stands still until it is advanced."""
    from dryrack.testing import Cluster

    # Other programs use the cluster: those of the test, or a driver.
    is_served = bool({"dryrack_kubeconfig", "driver"} & set(request.fixturenames))
    directory = tmp_path_factory.mktemp("dryrack") if is_served else None
    with Cluster(_setup(request), folders=_folders(request), kubeconfig_in=directory) as cluster:
        yield cluster


@pytest.fixture
def dryrack_async_cluster(request: pytest.FixtureRequest) -> AsyncCluster:
    """The cluster for asynchronous tests: `async with dryrack_async_cluster as cluster`."""
    from dryrack.testing import AsyncCluster

    return AsyncCluster(_setup(request), folders=_folders(request))


@pytest.fixture
def dryrack_clock(dryrack_cluster: Cluster) -> ClusterClock:
    """The clock of the cluster."""
    return dryrack_cluster.clock


@pytest.fixture
def dryrack_kubeconfig(dryrack_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Path:
    """
    The kubeconfig of the cluster, which is served on loopback, for other programs.

    `KUBECONFIG` names it while the test runs. The time of the cluster is real then.
    """
    if dryrack_cluster.kubeconfig is None:
        pytest.fail("dryrack_kubeconfig: add it to the arguments of the test", pytrace=False)
    monkeypatch.setenv("KUBECONFIG", str(dryrack_cluster.kubeconfig))
    return dryrack_cluster.kubeconfig


@pytest.fixture
def driver(dryrack_cluster: Cluster) -> Iterator[Drivers]:
    """Starts a DRA driver program on a virtual node: `driver("PROGRAM --root {kubelet}")`."""
    from dryrack.testing import Drivers

    if dryrack_cluster.kubeconfig is None:
        pytest.fail("driver: add it to the arguments of the test", pytrace=False)
    with Drivers(dryrack_cluster, pytest.skip) as start:
        yield start


@pytest.fixture
def fleet(dryrack_cluster: Cluster) -> Fleet:
    """Adds virtual nodes: `fleet("p5.48xlarge", count=2)`, `fleet(count=3, devices="fake:8")`."""
    return dryrack_cluster.add_nodes


@pytest.fixture
def apply(dryrack_cluster: Cluster) -> Apply:
    """Applies a file beside the test, a folder, YAML as text, an object, or a list of these."""
    return dryrack_cluster.apply


@pytest.fixture
def expect_scheduled(dryrack_cluster: Cluster) -> ExpectScheduled:
    """
    Waits until a pod, all pods of a pattern, or a gang have nodes; else fails with the reason.
    """
    return dryrack_cluster.expect_scheduled


@pytest.fixture
def expect_pending(dryrack_cluster: Cluster) -> ExpectPending:
    """Checks that a pod or a gang keeps waiting, and why."""
    return dryrack_cluster.expect_pending


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to the report of a failed test why pods of its cluster wait."""
    report = yield
    cluster = getattr(item, "funcargs", {}).get("dryrack_cluster")
    if cluster is not None and call.when == "call" and report.failed:
        text = _explain_waiting(cluster, call)
        if text:
            report.sections.append(("pods without a node", text))
    return report


def _explain_waiting(cluster: Cluster, call: pytest.CallInfo[None]) -> str:
    from dryrack.testing import ExpectationError

    if call.excinfo is None or call.excinfo.errisinstance(ExpectationError):
        return ""
    try:
        names = cluster.pending()
        told = [cluster.explain(f"pod/{name}") for name in names[:_EXPLAINED_MAX]]
    except Exception as error:  # noqa: BLE001 - the test has failed already, and reports why
        return f"unknown: {error}"
    more = len(names) - len(told)
    return "\n\n".join([*told, *([f"and {more} more"] if more > 0 else [])])


def _folders(request: pytest.FixtureRequest) -> tuple[Path, ...]:
    return (request.path.parent,)


def _setup(request: pytest.FixtureRequest) -> Setup:
    """Return the options of the nearest marker."""
    from dataclasses import fields

    from dryrack.testing import Setup

    marker = request.node.get_closest_marker(MARKER)
    said: dict[str, Any] = dict(marker.kwargs) if marker else {}
    unknown = sorted(said.keys() - {each.name for each in fields(Setup)})
    if unknown or (marker and marker.args):
        what = f"unknown option {unknown[0]!r}" if unknown else "options need names"
        raise pytest.UsageError(f"marker {MARKER}: {what}; see pytest --markers")
    if isinstance(said.get("without"), str):
        said["without"] = said["without"].split(",")
    config = said.get("scheduler_config")
    if config:
        beside = request.path.parent / config
        said["scheduler_config"] = str(beside if beside.exists() else config)
    release = request.config.getoption("--dryrack-release")
    if release:
        said.setdefault("release", release)
    return Setup(**{**said, "without": tuple(said.get("without", ()))})
