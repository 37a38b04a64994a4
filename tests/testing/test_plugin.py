"""The pytest plugin in runs of pytest as people have them, found by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
SECONDS_MAX = 110
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}}}
spec:
  devices:
    requests: [{{name: gpu, exactly: {{deviceClassName: fake.3-shake.com, count: {count}}}}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers: [{{name: c, image: i, resources: {{claims: [{{name: gpu}}]}}}}]
  resourceClaims: [{{name: gpu, resourceClaimName: {name}}}]
"""
SUITE = """
import asyncio, subprocess, sys
import pytest
import dryrack.placement
from dryrack.errors import ContentError
from dryrack.testing import ExpectationError

def test_too_many(fleet, apply, expect_scheduled):
    fleet(count=2, devices="fake:4")
    apply("nine.yaml")
    expect_scheduled("nine")

def test_of_its_own(dryrack_cluster, fleet, apply, dryrack_clock):
    fleet(devices="fake:4")
    apply(["two.yaml", "nine.yaml"])
    dryrack_clock.advance("1m")
    assert dryrack_cluster.get("pod", "nine")["status"]["phase"] == "Running"

def test_reasons(fleet, apply, expect_pending):
    fleet(devices="fake:4")
    apply(["two.yaml", "nine.yaml"])
    expect_pending("nine", because=["7 more needed", "not-enough"])
    with pytest.raises(ExpectationError, match="not because 'no such class'"):
        expect_pending("nine", because="no such class")
    with pytest.raises(ExpectationError, match="on node node-1: expected to be pending"):
        expect_pending("two")

def test_served(fleet, apply, expect_scheduled, dryrack_kubeconfig, dryrack_cluster):
    fleet(devices="fake:4")
    apply("two.yaml")
    expect_scheduled("two", devices=2)
    shown = subprocess.run(
        [sys.executable, "-m", "dryrack", "claims"], capture_output=True, text=True
    )
    assert "two" in shown.stdout, shown.stderr
    assert str(dryrack_cluster.kubeconfig) == str(dryrack_kubeconfig)
    with pytest.raises(ContentError, match="runs in real time"):
        dryrack_cluster.advance(1)

def test_async(dryrack_async_cluster):
    async def main():
        async with dryrack_async_cluster as cluster:
            await cluster.add_nodes(devices="fake:4")
            await cluster.apply("two.yaml")
            found = await cluster.expect_scheduled("two", devices=2)
            await cluster.advance("1m")
            return found.node
    assert asyncio.run(main()) == "node-1"

def test_ordinary_fixture_in_async_code(dryrack_cluster):
    async def main():
        dryrack_cluster.list("nodes")
    with pytest.raises(ContentError, match="use dryrack_async_cluster"):
        asyncio.run(main())

@pytest.mark.dryrack(without="scheduler")
def test_without(fleet, apply, dryrack_cluster):
    fleet(devices="fake:4")
    apply("two.yaml")
    dryrack_cluster.advance("1m")
    assert dryrack_cluster.pending() == ["default/two"]

@pytest.mark.dryrack(nodes=3)
def test_unknown_option(dryrack_cluster):
    pass

def test_asserts(dryrack_cluster):
    assert "Rewriting" not in type(dryrack.placement.__loader__).__name__

@pytest.mark.parametrize("count", [1, 2, 3])
def test_own_nodes(fleet, dryrack_cluster, count):
    assert fleet(count=count)[-1] == f"node-{count}"
    assert len(dryrack_cluster.list("nodes")) == count
"""


@dataclass(frozen=True)
class Report:
    """What became of one test."""

    outcome: str
    text: str


@dataclass(frozen=True)
class Run:
    """What became of each test, by its name, and what was printed."""

    reports: Mapping[str, Report]
    printed: str

    def __getitem__(self, name: str) -> Report:
        return self.reports[name]


def installed_in(folder: Path) -> None:
    """As if dryrack were installed there, with its entry points and files."""
    entry_points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"{name} = {value}" for name, value in entry_points["pytest11"].items()]
    metadata = folder / "dryrack_as_installed-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: dryrack-as-installed\nVersion: 1.0\n"
    )
    (metadata / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))
    (metadata / "RECORD").write_text("dryrack/__init__.py,,\n")


def run(folder: Path, *options: str) -> Run:
    """The tests in a folder."""
    installed_in(folder)
    paths = os.pathsep.join(map(str, (folder, ROOT / "src", ROOT)))
    command = [sys.executable, "-m", "pytest", "-W", "error", "--strict-markers", *options]
    report = folder / "report.xml"
    done = subprocess.run(
        [*command, "-p", "no:schemathesis", "-p", "no:cacheprovider", f"--junitxml={report}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert report.exists(), done.stderr
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return Run({case.get("name", ""): _report(case) for case in cases}, done.stdout)


def _report(case: ElementTree.Element) -> Report:
    for outcome in ("failure", "error"):
        found = case.find(outcome)
        if found is not None:
            return Report(outcome, "".join(case.itertext()))
    return Report("passed", "")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A suite of somebody's, in two processes."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_all.py").write_text(SUITE)
    (folder / "two.yaml").write_text(CLAIM.format(name="two", count=2))
    (folder / "nine.yaml").write_text(CLAIM.format(name="nine", count=9))
    return run(folder, "-n2")


def test_a_pod_that_waits_is_explained_where_the_test_fails(suite: Run) -> None:
    """The line of the test, then the words of `dryrack explain`; nothing of ours in between."""
    report = suite["test_too_many"]
    words = (
        '>       expect_scheduled("nine")',
        "ExpectationError: pod default/nine: not scheduled after 60 s",
        "pod default/nine is pending: node node-1 and 1 node like it: request gpu: needs 9 ",
        "default-scheduler reported ",
        "node node-1 and 1 node like it, 5 short",
        "  not-enough: request gpu: needs 9 devices; 4 of 4 are available; 5 more needed",
        "any one of these would help, the smallest change first:",
        "lower the count of request gpu from 9 to 4",
        "test_all.py:11: ExpectationError",
    )
    places = [report.text.find(each) for each in words]

    assert report.outcome == "failure"
    assert -1 not in places, words[places.index(-1)]
    assert places == sorted(places)
    assert "async_cluster.py" not in report.text


def test_another_failure_tells_which_pods_wait(suite: Run) -> None:
    """Whoever asserts something else sees what the cluster was at."""
    report = suite["test_of_its_own"]

    assert report.outcome == "failure"
    _, _, told = suite.printed.partition("- pods without a node -")
    assert told.lstrip("-\n").startswith("pod default/nine is pending: ")
    assert "pod default/two waits" not in told


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("test_reasons", "what waits for something else, or does not wait, is a failure"),
        ("test_served", "other programs reach the cluster by its kubeconfig, in real time"),
        ("test_async", "an asynchronous test has the same in its own loop"),
        ("test_ordinary_fixture_in_async_code", "the ordinary fixture names the other one"),
        ("test_without", "engines that are left out do nothing"),
        ("test_asserts", "pytest does not spend seconds on rewriting dryrack"),
        ("test_own_nodes[1]", "every test has a cluster of its own"),
        ("test_own_nodes[2]", "every test has a cluster of its own"),
        ("test_own_nodes[3]", "every test has a cluster of its own, in any process"),
    ],
)
def test_what_a_suite_relies_on_holds(name: str, truth: str, suite: Run) -> None:
    """Each is a test of the suite, and says it in its own way."""
    assert suite[name] == Report("passed", ""), truth


def test_an_option_that_there_is_not_is_refused(suite: Run) -> None:
    """With where to look."""
    report = suite["test_unknown_option"]

    assert report.outcome == "error"
    assert "marker dryrack: unknown option 'nodes'; see pytest --markers" in report.text


def test_a_start_of_pytest_does_not_load_a_cluster() -> None:
    """Whoever has dryrack installed and does not use it waits for nothing but one small module."""
    code = (
        "import sys, dryrack.testing.plugin\n"
        "print(sorted(each for each in sys.modules if each.startswith('dryrack')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == str(
        [
            "dryrack",
            "dryrack.base",
            "dryrack.base.lazy",
            "dryrack.base.version",
            "dryrack.testing",
            "dryrack.testing.plugin",
        ]
    )


RELEASES = """
import pytest

VOLUME = '''
apiVersion: v1
kind: PersistentVolume
metadata: {name: volume}
spec:
  capacity: {storage: 5Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: manual
  hostPath: {path: /data}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: idle}
spec:
  storageClassName: manual
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 3Gi}}
'''

def unused(cluster, apply):
    # A bound claim of 1.37 says that no pod uses it.
    apply(VOLUME)
    cluster.advance("5s")
    status = cluster.get("pvc", "idle")["status"]
    assert status["phase"] == "Bound"
    return [each["type"] for each in status.get("conditions", ())]

def test_option(dryrack_cluster, apply):
    assert unused(dryrack_cluster, apply) == ["Unused"]

@pytest.mark.dryrack(release="1.36")
def test_marker(dryrack_cluster, apply):
    assert unused(dryrack_cluster, apply) == []

@pytest.mark.dryrack(release="1.12")
def test_unknown(dryrack_cluster):
    pass
"""


def test_a_suite_runs_with_a_release(tmp_path: Path) -> None:
    """The option holds for all tests without a release in their marker."""
    (tmp_path / "test_all.py").write_text(RELEASES)
    suite = run(tmp_path, "--dryrack-release=1.37")

    assert suite["test_option"] == suite["test_marker"] == Report("passed", "")
    assert suite["test_unknown"].outcome == "error"
    assert "'1.12': unknown release; use 1.36 or 1.37" in suite["test_unknown"].text
