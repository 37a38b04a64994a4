"""The list of requirements, and what several of them check."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kubelet.conformance.report import NotMetError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kubelet.conformance.bench import Bench, Prepared
    from dryrack.kubelet.instance import ClaimReference

Check = Callable[["Bench"], Awaitable[None]]
PREPARE = "NodePrepareResources"
UNPREPARE = "NodeUnprepareResources"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A sentence of the contract, and the function that checks it."""

    name: str
    contract: str
    check: Check


REQUIREMENTS: list[Requirement] = []


def requirement(contract: str) -> Callable[[Check], Check]:
    """Add a function to the requirements; its name is that of the requirement."""

    def add(check: Check) -> Check:
        name = check.__name__.replace("_", "-")
        REQUIREMENTS.append(Requirement(name, contract, check))
        return check

    return add


async def expect_error(bench: Bench, claim: ClaimReference, what: str) -> str:
    """Return the error of a claim that must not be prepared."""
    error = await bench.prepare_error(claim)
    if not error:
        raise NotMetError(f"{PREPARE} for a claim that {what}", "success")
    # A kubelet unprepares a claim if it does not know whether it is prepared.
    await bench.unprepare(claim)
    return error


def check_cdi(bench: Bench, devices: Prepared, sent: str) -> None:
    """Check that all CDI devices of an answer exist."""
    error = bench.edits(devices).error
    if error:
        raise NotMetError(sent, f"{error}; searched /etc/cdi, /var/run/cdi and {bench.cdi}")


def own_cdi_names(devices: Prepared, claim: ClaimReference) -> list[str]:
    """Return the CDI devices that are named after the claim."""
    return [name for each in devices for name in each.cdi_ids if claim.uid in name]


def check_unprepared(bench: Bench, devices: Prepared, claim: ClaimReference, sent: str) -> None:
    """Check that the CDI devices of a claim do not exist any more."""
    left = [
        name for name in own_cdi_names(devices, claim) if not bench.edits_of({name: None}).error
    ]
    if left:
        raise NotMetError(sent, f"the CDI devices {', '.join(left)} still exist")


def check_same(first: Prepared, second: Prepared, sent: str) -> None:
    """Check that two answers for a claim are equal."""
    if first != second:
        raise NotMetError(sent, f"first {show(first)}, then {show(second)}")


async def call_all(calls: Sequence[Awaitable[object]], sent: str) -> list[object]:
    """Make calls at the same time; return the answers, or raise the first error."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    for each in answers:
        if isinstance(each, BaseException):
            raise NotMetError(sent, str(each))
    return list(answers)


def show(devices: Prepared) -> str:
    """Return devices as the suite shows them."""
    return ", ".join(f"{e.pool}/{e.device} {list(e.cdi_ids)}" for e in devices) or "no devices"
