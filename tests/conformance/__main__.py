"""
Run Kubernetes' own end-to-end tests against `dryrack up`, and write a page about the results.

`cases.yaml` names the groups of tests, and the tests that are not expected to pass, with reasons.
Tests that need real containers are not run.

    python -m tests.conformance [FOCUS]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from tests.clients.served import ServedPlane
from tests.golang import GoBuildError, build
from tests.realcluster.releases import RELEASE

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "reference" / "conformance.md"
_UP = ("--nodes", "4", "--authorization", "rbac")
_PROCESSES = 20
_SECONDS_MAX = 3600
_OTHER = "The test found a difference"
_SKIPPED = "The test skips itself, because the cluster lacks what it needs"
# Tests for optional features, and tests that Kubernetes itself does not rely on.
_LABELS = "!/Feature:.+/ && !Disruptive && !Flaky"

Raw = dict[str, Any]


def main(focus: str) -> int:
    """Run the tests and write the page; return 1 if a test failed without a reason."""
    cases = yaml.safe_load((HERE / "cases.yaml").read_text())
    version = RELEASE.version
    major, minor, _ = version.split(".")
    words = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    link = [f"-X k8s.io/component-base/version.{key}={word}" for key, word in words.items()]
    module = HERE / "module"
    tests = build(module, ("k8s.io/kubernetes/test/e2e",), verb=("test", "-c"), link=link)
    runner = build(module, ("github.com/onsi/ginkgo/v2/ginkgo",), link=link)
    waiting = [each for each in cases["missing"] if each.get("waits")]
    with tempfile.TemporaryDirectory(prefix="dryrack-conformance-") as folder:
        report = Path(folder) / "report.json"
        with ServedPlane(Path(folder), _UP, name="conformance") as plane:
            command = [
                str(runner.path("ginkgo")),
                f"-procs={_PROCESSES}",
                f"--label-filter={_LABELS}",
                f"--focus={focus or '|'.join(cases['groups'])}",
                f"--skip={'|'.join(_patterns([*cases['containers'], *waiting]))}",
                f"--timeout={_SECONDS_MAX}s",
                f"--json-report={report.name}",
                f"--output-dir={folder}",
                "--keep-going",
                "--silence-skips",
                "--no-color",
                str(tests.path("e2e.test")),
                "--",
                f"--kubeconfig={plane.kubeconfig}",
                f"--kubectl-path={plane.kubectl_path}",
                "--provider=local",
                "--allowed-not-ready-nodes=10",
                "--dump-logs-on-failure=false",
            ]
            subprocess.run(command, check=False, stdout=sys.stderr)
        if not report.exists():
            sys.stderr.write("the tests did not start; see the messages above\n")
            return 1
        specs = [
            each
            for suite in json.loads(report.read_text())
            for each in suite["SpecReports"]
            if each["LeafNodeType"] == "It"
        ]
    return _report(cases, specs, version, is_whole=not focus)


def _patterns(reasons: list[Raw]) -> list[str]:
    return [test for each in reasons for test in each["tests"]]


def _reason(reasons: list[Raw], name: str) -> str:
    """Return the first reason with a pattern that matches, or ""."""
    for each in reasons:
        if any(re.search(test, name) for test in _patterns([each])):
            return str(each["reason"])
    return ""


def _is_selected(cases: Raw, spec: Raw, name: str) -> bool:
    """Return True if the test is in a group, and its labels are those that are run."""
    parts = spec["ContainerHierarchyLabels"] or []
    labels = {label for part in [*parts, spec["LeafNodeLabels"]] for label in part or ()}
    return any(re.search(group, name) for group in cases["groups"]) and not any(
        label.startswith("Feature:") or label in ("Disruptive", "Flaky") for label in labels
    )


def _report(cases: Raw, specs: list[Raw], version: str, *, is_whole: bool) -> int:
    passed: Counter[str] = Counter()
    containers: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    unexplained = []
    for spec in specs:
        name = " ".join([*spec["ContainerHierarchyTexts"], spec["LeafNodeText"]])
        if not _is_selected(cases, spec, name):
            continue
        match spec["State"], _reason(cases["containers"], name):
            case "passed", _:
                group = re.match(r"\[(sig-[a-z-]+)\]", name)
                passed[group[1] if group else "other"] += 1
            case "skipped", "":
                reason = _reason(cases["missing"], name)
                if reason:
                    missing[reason] += 1
                else:
                    # The test itself found that it does not apply.
                    containers[_SKIPPED] += 1
            case "skipped", reason:
                containers[reason] += 1
            case _:
                reason = _reason(cases["missing"], name)
                missing[reason or _OTHER] += 1
                if not reason:
                    unexplained.append(name)
    ran = passed.total() + missing.total()
    sys.stdout.write(f"{passed.total()} of {ran} passed; not run: {containers.total()}\n")
    sys.stdout.writelines(f"failed: {name}\n" for name in unexplained)
    if is_whole:
        PAGE.write_text(_page(version, passed, containers, missing))
    return 1 if unexplained else 0


def _page(
    version: str, passed: Counter[str], containers: Counter[str], missing: Counter[str]
) -> str:
    ran = passed.total() + missing.total()
    return "\n".join(
        [
            "# Kubernetes end-to-end tests",
            "",
            "<!-- Generated by `make conformance`. -->",
            "",
            f"`make conformance` runs the end-to-end tests of Kubernetes {version} against",
            f"`dryrack up`. {passed.total()} of {ran} tests pass.",
            "Tests for optional features and disruptive tests are left out.",
            "",
            "## Passed",
            "",
            *_table("Group", passed),
            "",
            "## Missing",
            "",
            "These tests fail:",
            "",
            *_table("Reason", missing),
            "",
            "## Not run",
            "",
            "These tests need real containers, or something else that a virtual cluster lacks:",
            "",
            *_table("Reason", containers),
            "",
        ]
    )


def _table(title: str, counts: Counter[str]) -> list[str]:
    rows = [f"| {name} | {count} |" for name, count in sorted(counts.items())]
    return [f"| {title} | Tests |", "|---|---|", *rows]


if __name__ == "__main__":
    try:
        sys.exit(main(" ".join(sys.argv[1:])))
    except GoBuildError as error:
        sys.exit(str(error))
