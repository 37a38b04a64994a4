"""The pytest plugin in runs of pytest as people have them, found by its entry point."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest_plugins = "pytester"

ROOT = Path(__file__).parents[2]
PATHS = (ROOT / "src", ROOT)
EXAMPLE = Path(__file__).parent / "example"
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


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder for tests, in an environment that has dryrack installed."""
    entry_points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"{name} = {value}" for name, value in entry_points["pytest11"].items()]
    installed = pytester.mkdir("dryrack_as_installed-1.0.dist-info")
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: dryrack-as-installed\n")
    (installed / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines, ""]))
    pytester.syspathinsert()
    # For processes that the run starts.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(pytester.path), *map(str, PATHS))))
    pytester.makefile(".yaml", two=CLAIM.format(name="two", count=2))
    pytester.makefile(".yaml", nine=CLAIM.format(name="nine", count=9))
    return pytester


def run(suite: pytest.Pytester, source: str, *options: str) -> pytest.RunResult:
    suite.makepyfile(source)
    return suite.runpytest_inprocess("-W", "error", "-p", "no:schemathesis", *options)


def test_the_example_of_the_guide_runs(suite: pytest.Pytester) -> None:
    """A class, claims and a gang of one's own on rented machines; page and files agree."""
    page = (ROOT / "docs" / "guides" / "pytest.md").read_text()
    for path in EXAMPLE.iterdir():
        if path.is_file():
            assert path.read_text() in page, path.name
            name = f"test_{path.name}" if path.suffix == ".py" else path.name
            shutil.copy(path, suite.path / name)

    done = suite.runpytest_inprocess("-W", "error", "-p", "no:schemathesis")

    done.assert_outcomes(passed=3)


def test_a_pod_that_waits_is_explained_where_the_test_fails(suite: pytest.Pytester) -> None:
    """The line of the test, then the words of `dryrack explain`; nothing of ours in between."""
    done = run(
        suite,
        """
        def test_it(fleet, apply, expect_scheduled):
            fleet(count=2, devices="fake:4")
            apply("nine.yaml")
            expect_scheduled("nine")
        """,
    )

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            ">*expect_scheduled(*nine*)",
            "E*ExpectationError: pod default/nine after 60 s: not scheduled",
            "E*pod default/nine waits: 0/2 nodes are available: *",
            "E*node node-1 and 1 node like it, 5 short",
            "E*not-enough: request gpu: wants 9 devices, and 4 of 4 can be had; 5 more needed",
            "E*any one of these would help:",
            "E*ask for 4 instead of 9 in request gpu",
            "test_*.py:4: ExpectationError",
        ]
    )
    assert "async_cluster.py" not in done.stdout.str()


def test_another_failure_tells_which_pods_wait(suite: pytest.Pytester) -> None:
    """Whoever asserts something else sees what the cluster was at."""
    done = run(
        suite,
        """
        def test_it(dryrack_cluster, fleet, apply, dryrack_clock):
            fleet(devices="fake:4")
            apply(["two.yaml", "nine.yaml"])
            dryrack_clock.advance("1m")
            assert dryrack_cluster.get("pod", "nine")["status"]["phase"] == "Running"
        """,
    )

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["*- pods without a node -*", "pod default/nine waits: *", "*9 devices, and 2 of 4*"]
    )
    assert "pod default/two" not in done.stdout.str()


def test_what_is_expected_to_wait_has_to_wait_for_the_reason(suite: pytest.Pytester) -> None:
    """A pod that has a node, and one that waits for something else, are failures."""
    done = run(
        suite,
        """
        import pytest
        from dryrack.testing import ExpectationError

        def test_it(fleet, apply, expect_pending):
            fleet(devices="fake:4")
            apply(["two.yaml", "nine.yaml"])
            expect_pending("nine", because=["7 more needed", "not-enough"])
            with pytest.raises(ExpectationError, match="not because 'no such class'"):
                expect_pending("nine", because="no such class")
            with pytest.raises(ExpectationError, match="on node node-1: expected to be pending"):
                expect_pending("two")
        """,
    )

    done.assert_outcomes(passed=1)


def test_every_test_has_a_cluster_of_its_own_in_any_process(suite: pytest.Pytester) -> None:
    """With xdist as without: nodes of one test are in no other."""
    suite.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("count", [1, 2, 3])
        def test_it(fleet, dryrack_cluster, count):
            assert fleet(count=count)[-1] == f"node-{count}"
            assert len(dryrack_cluster.list("nodes")) == count
        """
    )
    done = suite.runpytest_subprocess("-W", "error", "-p", "no:schemathesis", "-n2")

    done.assert_outcomes(passed=3)


def test_other_programs_reach_the_cluster_by_its_kubeconfig(suite: pytest.Pytester) -> None:
    """It is served on loopback while the test runs, and is the one that the fixtures know."""
    done = run(
        suite,
        """
        import subprocess, sys

        def test_it(fleet, apply, expect_scheduled, dryrack_kubeconfig, dryrack_cluster):
            fleet(devices="fake:4")
            apply("two.yaml")
            expect_scheduled("two", devices=2)
            shown = subprocess.run(
                [sys.executable, "-m", "dryrack", "claims"], capture_output=True, text=True
            )
            assert "two" in shown.stdout, shown.stderr
            assert str(dryrack_cluster.kubeconfig) == str(dryrack_kubeconfig)
        """,
    )

    done.assert_outcomes(passed=1)


def test_asynchronous_tests_have_the_same(suite: pytest.Pytester) -> None:
    """In whatever loop the test runs; the ordinary fixture says which one to use there."""
    done = run(
        suite,
        """
        import asyncio, pytest
        from dryrack.errors import ContentError

        def test_it(dryrack_async_cluster):
            async def main():
                async with dryrack_async_cluster as cluster:
                    await cluster.add_nodes(devices="fake:4")
                    await cluster.apply("two.yaml")
                    found = await cluster.expect_scheduled("two", devices=2)
                    await cluster.advance("1m")
                    return found.node
            assert asyncio.run(main()) == "node-1"

        def test_ordinary_fixture(dryrack_cluster):
            async def main():
                dryrack_cluster.list("nodes")
            with pytest.raises(ContentError, match="use dryrack_async_cluster"):
                asyncio.run(main())
        """,
    )

    done.assert_outcomes(passed=2)


def test_a_marker_says_what_is_not_usual(suite: pytest.Pytester) -> None:
    """Engines that are left out do nothing; an option that there is not is refused."""
    done = run(
        suite,
        """
        import pytest

        @pytest.mark.dryrack(without="scheduler")
        def test_without(fleet, apply, dryrack_cluster, expect_pending):
            fleet(devices="fake:4")
            apply("two.yaml")
            dryrack_cluster.advance("1m")
            assert dryrack_cluster.pending() == ["default/two"]

        @pytest.mark.dryrack(nodes=3)
        def test_unknown(dryrack_cluster):
            pass
        """,
        "--strict-markers",
    )

    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(["*marker dryrack, 'nodes': no such option; see pytest --markers"])


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
