"""
Answers of both sides in one form, so that they can be held against each other.

A verdict is what a case came to: allocations, an error, or neither. Two verdicts are the
same when they allocate the same devices in the same order with the same configuration and
node selector, or fail with the same error. The text of an error must be the same too, but
for the parts that print the insides of Go values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.allocation.at_once import Standing
from tests.cases.record import ANY_SHARE, allocator_answer, without_chance
from tests.oracle.oracles import RELEASE

from dryrack.allocation import (
    Allocated,
    AllocationError,
    DeviceId,
    Features,
    Release,
    Undecided,
)
from dryrack.allocation.model.identity import SharedDeviceId
from dryrack.allocation.search.problem import selector_compiler
from dryrack.allocation.supply.usage import UsageSnapshot
from dryrack.kinds.core import Node
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import DeviceClass, ResourceClaim, ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tests.oracle.oracles import AllocatorAnswer

    from dryrack.allocation import Outcome, SearchMemo
    from dryrack.cel import CompileError, Program

# What Go prints of its own values, what only a cluster can know, and what a parser guesses
# that was meant by text that is no CEL.
INCIDENTAL = (
    (re.compile(r"(could not retrieve device class \S*): .*", re.S), r"\1"),
    (re.compile(r"(failed to perform node selection for device ).*?( in slice )", re.S), r"\1…\2"),
    (re.compile(r"ERROR: <input>:\d+:\d+: (Syntax error).*", re.S), r"\1"),
)

GAVE_UP = "dryrack gave the search up"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a case; `fatal` is None if that is unknown."""

    results: tuple[Mapping[str, Any], ...] | None = None
    error: str = ""
    fatal: bool | None = None

    def same_as(self, other: Verdict) -> bool:
        """Return whether both sides decided alike."""
        known = self.fatal is not None and other.fatal is not None
        return (
            self.results == other.results
            and substance(self.error) == substance(other.error)
            and (not known or self.fatal == other.fatal)
        )

    def as_json(self) -> dict[str, Any]:
        """The verdict as a person reads it in a report."""
        if self.error:
            return {"error": self.error, "fatal": self.fatal}
        return {"fits": False} if self.results is None else {"results": list(self.results)}


def substance(error: str) -> str:
    """The error without what is incidental in its text."""
    for pattern, kept in INCIDENTAL:
        error = pattern.sub(kept, error)
    return error


def recorded_verdict(answer: Mapping[str, Any]) -> Verdict:
    """The verdict that a case has recorded."""
    results = answer.get("results")
    return Verdict(
        None if results is None else tuple(without_chance(result) for result in results),
        answer.get("error", ""),
        answer.get("fatal", None if "error" in answer else False),
    )


def real_verdict(answer: AllocatorAnswer) -> Verdict:
    """The verdict of Kubernetes' own allocator, which ended by itself."""
    return recorded_verdict(allocator_answer(answer))


class _OneShare:
    """Every share has the same identifier: it is random in Kubernetes."""

    def uuid(self) -> str:
        return ANY_SHARE


@cache
def _compiler(enabled: Features, release: Release) -> Callable[[str], Program | CompileError]:
    """Return a compiler that compiles an expression once, as the scheduler does for all pods."""
    return cache(selector_compiler(enabled, release))


class Prepared:
    """A case as our allocator takes it: typed once, to be asked any number of times."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.node = decode(case.get("node", {}), Node)
        self.claims = [decode(raw, ResourceClaim) for raw in case.get("claims", ())]
        self._slices = [decode(raw, ResourceSlice) for raw in case.get("slices", ())]
        self._classes = [decode(raw, DeviceClass) for raw in case.get("classes", ())]
        self._features = features(case.get("features", ()))
        self._allocated = _in_use(case)
        self._release = Release(case.get("release", RELEASE))

    def outcome(self, endings: SearchMemo | None = None) -> Outcome:
        """Nothing is known from before but compiled expressions, and these endings."""
        standing = Standing(
            slices=self._slices,
            classes=self._classes,
            features=self._features,
            allocated=self._allocated,
            chance=_OneShare(),
            compiler=_compiler(self._features, self._release),
            release=self._release,
        )
        return standing.allocate(self.node, self.claims, endings)


def our_verdict(case: Mapping[str, Any], endings: SearchMemo | None = None) -> Verdict:
    """The verdict of our allocator; `fatal` is None if it gave the search up."""
    try:
        outcome = Prepared(case).outcome(endings)
    except AllocationError as error:
        return Verdict(error=str(error), fatal=True)
    if isinstance(outcome, Allocated):
        return Verdict(tuple(without_chance(to_builtins(r)) for r in outcome.results), fatal=False)
    if isinstance(outcome, Undecided):
        return Verdict(error=GAVE_UP)
    return Verdict(error=outcome.error, fatal=False)


def features(names: Iterable[str]) -> Features:
    """Exactly the features named, by upstream's names."""
    fields = (re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in names)
    return Features(**dict.fromkeys(fields, True))


def _in_use(case: Mapping[str, Any]) -> UsageSnapshot:
    capacity: dict[DeviceId, dict[str, Quantity]] = {}
    for device in case.get("allocatedCapacity", ()):
        consumed = {name: Quantity.parse(text) for name, text in device["consumed"].items()}
        capacity[_identity(device)] = consumed
    return UsageSnapshot(
        devices=frozenset(map(_identity, case.get("allocatedDevices", ()))),
        shared=frozenset(
            SharedDeviceId(*_identity(device), device["shareID"])
            for device in case.get("allocatedSharedDevices", ())
        ),
        capacity=capacity,
    )


def _identity(device: Mapping[str, str]) -> DeviceId:
    return DeviceId(device["driver"], device["pool"], device["device"])
