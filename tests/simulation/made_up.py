"""Small made-up traces and fleets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.simulation import Experiment, Input, Inputs, Run, Settings, run_one

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

NODES = "sn,cpu_milli,memory_mib,gpu,model"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec"


def nodes(number: int = 2, gpus: int = 4, cpu: int = 32_000) -> list[str]:
    """Return a list of equal nodes in the format openb."""
    return [NODES, *(f"n{n},{cpu},262144,{gpus},A" for n in range(number))]


def random_nodes(random: Random, number: int = 12) -> list[str]:
    """Return nodes of different sizes and models."""
    rows = [NODES]
    for n in range(number):
        gpus = random.choice((0, 1, 2, 4, 8))
        cpu = random.choice((16_000, 64_000, 96_000))
        rows.append(f"n{n:02},{cpu},{random.choice((65536, 262144))},{gpus},{random.choice('AB')}")
    return rows


def random_pods(random: Random, number: int = 80) -> list[str]:
    """Return pods that ask for CPU only, shares, and whole GPUs, some of one model."""
    rows = [PODS]
    for n in range(number):
        gpus = random.choice((0, 1, 1, 1, 2, 4))
        milli = random.choice((200, 470, 810, 1000)) if gpus == 1 else 1000 * bool(gpus)
        model = random.choice(("", "", "A", "A|B|B")) if gpus else ""
        cpu = random.choice((1000, 4000, 8000, 12_000))
        rows.append(f"p{n:03},{cpu},{random.choice((1024, 8192))},{gpus},{milli},{model}")
    return rows


def text_of(lines: Sequence[str]) -> bytes:
    return "\n".join(lines).encode()


def inputs(trace: Sequence[str], fleet: Sequence[str], form: str = "dryrack") -> Inputs:
    """Return a trace and one fleet in the format openb."""
    return Inputs(
        Input("trace.csv", form, text_of(trace)), (Input("nodes.csv", "list", text_of(fleet)),)
    )


def run(
    trace: Sequence[str],
    fleet: Sequence[str],
    policy: str = "kubernetes",
    settings: Settings | None = None,
    *,
    form: str = "dryrack",
) -> Run:
    """Return the run of a trace on a fleet."""
    result = run_one(inputs(trace, fleet, form), Experiment(policy, 0, settings or Settings()))
    assert isinstance(result, Run), result
    return result
