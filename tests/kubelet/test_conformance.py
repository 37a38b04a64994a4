"""The conformance suite finds drivers that break the contract, and passes one that keeps it."""

from __future__ import annotations

import asyncio
import re
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as Xml

import pytest
from tests.cli.command import dryrack
from tests.kubelet.programs import DRIVER, Program, short_directory

from dryrack.client.endpoints import NODES, SLICES
from dryrack.cluster import SystemClock
from dryrack.cluster.embedded import embedded
from dryrack.kubelet import REQUIREMENTS, Bench, run_suite

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dryrack.kubelet import Result

directory = pytest.fixture(short_directory)
PLUGIN = (
    *(sys.executable, "-m", "dryrack", "plugin", "--devices", "fake:4", "--no-nas"),
    *("--kubelet-dir", "{kubelet}", "--cdi-dir", "{cdi}"),
)


def slice_of(devices: int, *, count: int = 1) -> Any:
    pool = {"name": "node-1", "generation": 1, "resourceSliceCount": count}
    return {
        "metadata": {"name": "slice-1"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "node-1",
            "pool": pool,
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        },
    }


async def check(directory: Path, answer: Callable[[Any, Any], None], focus: str) -> Result:
    """Return the result of one requirement for a program that answers like this."""
    program = Program(directory, answer=answer)
    async with embedded(engines=()) as cluster:
        await cluster.client.create(NODES, {"metadata": {"name": "node-1"}})
        await cluster.client.create(SLICES, slice_of(4))
        bench = Bench(
            cluster.client, SystemClock(), "node-1", directory, directory / "cdi", patience=5
        )
        async with program.serving(), bench.run_driver():
            [result] = [each async for each in run_suite(bench, focus=f"^{focus}$")]
    return result


def keep(_: Any, __: Any) -> None:
    """Answer each claim with no devices, which is allowed."""


def lose(_: Any, response: Any) -> None:
    response.claims.clear()


def give_another(request: Any, response: Any) -> None:
    for each in request.claims:
        entry = response.claims[each.uid]
        if hasattr(entry, "devices"):
            entry.devices.add(pool_name="node-1", device_name="gpu-3", request_names=["r0"])


def name_missing_cdi(request: Any, response: Any) -> None:
    for each in request.claims:
        entry = response.claims[each.uid]
        if hasattr(entry, "devices"):
            entry.devices.add(
                pool_name="node-1", device_name="gpu-0", cdi_device_ids=["example.com/gpu=x"]
            )


def refuse_unknown(request: Any, response: Any) -> None:
    for each in request.claims:
        if each.name == "never-seen":
            response.claims[each.uid].error = "unknown claim"


class RefuseAgain:
    """Fails a claim that it has prepared."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, request: Any, response: Any) -> None:
        for each in request.claims:
            if each.uid in self._seen:
                response.claims[each.uid].error = "already prepared"
            self._seen.add(each.uid)


@pytest.mark.parametrize(
    ("answer", "requirement", "got"),
    [
        (lose, "prepare-answers-each-claim", "skipped 3 ResourceClaims"),
        (give_another, "prepare-returns-the-allocated-devices", "device node-1/gpu-3"),
        (name_missing_cdi, "prepare-writes-cdi-specs-first", "unresolvable CDI devices"),
        (RefuseAgain(), "prepare-is-idempotent", "already prepared"),
        (refuse_unknown, "unprepare-of-an-unknown-claim-succeeds", "unknown claim"),
        (keep, "a-device-has-one-claim", "success"),
        (keep, "a-missing-claim-is-an-error", "success"),
        (keep, "invalid-configuration-is-an-error", "no error for claim-2"),
    ],
)
def test_a_broken_driver_is_found(
    directory: Path, answer: Callable[[Any, Any], None], requirement: str, got: str
) -> None:
    """The result says what was sent, and what came."""
    result = asyncio.run(check(directory, answer, requirement))

    assert (result.outcome, result.contract != "", result.sent != "") == ("failed", True, True)
    assert got in result.got


def test_a_requirement_that_needs_a_restart_is_skipped_without_a_program(directory: Path) -> None:
    """The reason says why."""
    result = asyncio.run(check(directory, keep, "prepare-after-a-crash"))

    assert result.outcome == "skipped"
    assert result.reason == "the suite did not start the driver, so it cannot stop it"


def test_the_plugin_of_dryrack_keeps_the_contract(tmp_path: Path) -> None:
    """Also after a crash and a reboot; the report is JUnit XML."""
    focus = "idempotent|device-has|new-uid|agree|prepare-after-a-crash|reboot"
    run = dryrack("driver", "test", "--focus", focus, "-o", "junit", "--", *PLUGIN)
    suite = Xml.fromstring(run.stdout)

    failures = [each.get("name") for each in suite.iter("testcase") if len(each)]
    assert (run.returncode, failures) == (0, []), run.stdout + run.stderr
    assert int(suite.get("tests", "0")) == sum(
        re.search(focus, each.name) is not None for each in REQUIREMENTS
    )


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        ((), 2, "no program; for example: dryrack driver test -- "),
        (("--focus", "["), 2, "--focus '[': "),
        (("--focus", "nothing"), 2, "--focus 'nothing': no requirement; see: dryrack driver test"),
        (("--", "no-such-program"), 2, "no-such-program: no such program; name it after --"),
        (("--timeout", "1", "--", "sleep", "60"), 1, "no driver registered below"),
        (("--timeout", "5", "--", "false"), 1, "the driver ended before it registered"),
    ],
)
def test_wrong_usage_is_explained(words: tuple[str, ...], code: int, error: str) -> None:
    """The message names the option or the program, and what to do."""
    run = dryrack("driver", "test", *words)

    assert run.returncode == code, run.stderr
    assert error in run.stderr


def test_the_requirements_can_be_listed() -> None:
    """Each has a name and a sentence."""
    run = dryrack("driver", "test", "--list")

    assert run.returncode == 0, run.stderr
    assert len(run.stdout.splitlines()) == len(REQUIREMENTS) + 1
    assert all(each.contract.endswith(".") for each in REQUIREMENTS)
