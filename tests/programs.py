"""
Builds the Go and Java programs that `make real` needs, and fetches its browser, before any test.

A first build takes minutes; inside a test it would look like one that hangs, and be ended as one.

    python -m tests.programs
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests import maven
from tests.dashboard.browser import requirements
from tests.golang import GoBuildError, build
from tests.realcluster.__main__ import main as test_bed
from tests.realcluster.releases import MODULES, RELEASE

TESTS = Path(__file__).parent
# The test bed builds its modules by release; benchmarks, `make operators`, and `make conformance`
# build their own when they run.
APART = (MODULES, TESTS / "bench", TESTS / "conformance")


def modules() -> list[Path]:
    """The Go modules of the tests outside the test bed."""
    found = sorted(path.parent for path in TESTS.rglob("go.mod"))
    return [each for each in found if not any(apart in each.parents for apart in APART)]


def main() -> int:
    if test_bed(["build", "--release", RELEASE.minor]) != 0:
        return 1
    for module in modules() if RELEASE.runs("oracle") else []:
        build(module)
    _build_java()
    return _browser()


def _build_java() -> None:
    """Without a JDK and Maven the tests of Java clients fail; all others need not wait for it."""
    try:
        for project in sorted(path.parent for path in TESTS.rglob("pom.xml")):
            maven.build(project)
    except maven.MavenBuildError as error:
        sys.stderr.write(f"{error}\n")


def _browser() -> int:
    """Without it the tests of the page fail, and say the same; all others need not wait for it."""
    try:
        requirements.ensure()
        for each in (requirements.AXE, requirements.TYPESCRIPT):
            requirements.package(each)
    except requirements.BrowserRequirementError as error:
        sys.stderr.write(f"{error}\n")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except GoBuildError as error:
        sys.exit(str(error))
