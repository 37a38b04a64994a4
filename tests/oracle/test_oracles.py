"""The driver answers in order, survives full pipes, and leaves no process behind."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.oracle.oracles import AllocatorAnswer, Oracle, OracleError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.oracle.oracles import CelAnswer


class Echo(msgspec.Struct):
    number: int
    padding: str = ""


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    """A program that answers every case with itself, and refuses a negative one."""
    program = tmp_path / "echo"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    if json.loads(line)['number'] < 0:\n"
        "        sys.exit('a negative case')\n"
        "    sys.stdout.write(line)\n"
        "    sys.stdout.flush()\n"
    )
    program.chmod(0o755)
    return program


def test_answers_come_in_order_through_full_pipes(echo: Path) -> None:
    """Cases far larger than a pipe's buffer, more than a batch: no deadlock, no mix-up."""
    cases = [{"number": n, "padding": "x" * 20_000} for n in range(150)]
    with Oracle(echo, Echo) as oracle:
        answers = [(case["number"], answer.number) for case, answer in oracle.ask(cases)]

    assert answers == [(n, n) for n in range(150)]


def test_questions_can_be_asked_in_the_middle_of_others(echo: Path) -> None:
    """A stream that is left, or interrupted, does not mix its answers into the next one's."""
    cases = [{"number": n} for n in range(150)]
    with Oracle(echo, Echo) as oracle:
        stream = oracle.ask(cases)
        first = next(stream)[1].number
        inner = [answer.number for _, answer in oracle.ask([{"number": 500}])]
        second = next(stream)[1].number
        stream.close()
        last = [answer.number for _, answer in oracle.ask([{"number": 600}])]

    assert (first, inner, second, last) == (0, [500], 1, [600])


def test_an_oracle_that_ends_early_says_why(echo: Path) -> None:
    """The last words of the program are in the error, not lost on its stderr."""
    with Oracle(echo, Echo) as oracle, pytest.raises(OracleError, match="a negative case"):
        list(oracle.ask([{"number": 1}, {"number": -1}]))


def test_leaving_early_ends_the_process(echo: Path) -> None:
    """A caller that stops in the middle leaves no process and no blocked thread."""
    with Oracle(echo, Echo) as oracle:
        next(oracle.ask({"number": n, "padding": "x" * 20_000} for n in range(1000)))
        process = oracle.process

    assert process.returncode is not None


@pytest.mark.real
def test_the_real_allocator_takes_the_only_device(
    real_allocator: Oracle[AllocatorAnswer],
) -> None:
    """One claim for one device of one pool is allocated that device."""
    case = {
        "classes": [{"metadata": {"name": "gpu"}}],
        "slices": [
            {
                "metadata": {"name": "rack"},
                "spec": {
                    "driver": "gpu.example.com",
                    "pool": {"name": "rack", "generation": 1, "resourceSliceCount": 1},
                    "allNodes": True,
                    "devices": [{"name": "gpu-0"}],
                },
            }
        ],
        "claims": [
            {
                "metadata": {"name": "one"},
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "gpu",
                                "exactly": {
                                    "deviceClassName": "gpu",
                                    "allocationMode": "ExactCount",
                                    "count": 1,
                                },
                            }
                        ]
                    }
                },
            }
        ],
        "node": {"metadata": {"name": "node-1"}},
    }
    [(_, answer)] = real_allocator.ask([case])

    assert [r["device"] for r in answer.results[0]["devices"]["results"]] == ["gpu-0"]
    assert answer.allocate_one_calls > 0


@pytest.mark.real
def test_the_real_cel_reports_cost(real_cel: Oracle[CelAnswer]) -> None:
    """Estimated and actual cost are both answered, so both can be compared."""
    case = {"expression": "device.driver == 'gpu.example.com'", "driver": "gpu.example.com"}
    [(_, answer)] = real_cel.ask([case])

    assert answer.match
    assert answer.actual_cost is not None
    assert answer.cost >= answer.actual_cost
