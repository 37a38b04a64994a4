"""
Both allocators on the same cases, and a report of every case on which they differ.

Where Kubernetes does not decide there is nothing to differ from. A search that we give up says so
itself: such cases are named, apart from the differences.

    python -m tests.oracle.differential SEED:NUMBER

prints one generated case, made small, with both answers.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.allocation.generate import generate
from tests.cases.layout import to_yaml
from tests.oracle.oracles import AllocatorAnswer, Oracle, allocator_oracle
from tests.oracle.patience import TooLongError, within
from tests.oracle.shrink import shrink
from tests.oracle.verdicts import GAVE_UP, Verdict, our_verdict, real_verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

Json: TypeAlias = "dict[str, Any]"

# Of two things in random order both are seen in so many runs, but for one time in 2**20.
ASKED_AGAIN = 20

# Kubernetes has 10 s for a pod; so must we.
OUR_SECONDS_MAX = 10.0
ENDLESS = "dryrack did not end"

# Without these a case is no longer one that the API server would take.
KEPT = frozenset(
    {
        "allocationMode",
        "cel",
        "count",
        "device",
        "deviceClassName",
        "driver",
        "expression",
        "generation",
        "key",
        "metadata",
        "name",
        "node",
        "operator",
        "pool",
        "requests",
        "resourceSliceCount",
        "spec",
        "value",
    }
)

# More would only repeat the same bug.
DIFFERENCES_MAX = 5


@dataclass(frozen=True, slots=True)
class Difference:
    """A case that the two sides decide differently, or on which ours does not end."""

    case: Json
    # None, if Kubernetes did not end, or panicked.
    real: Verdict | None
    ours: Verdict

    @property
    def kind(self) -> tuple[object, ...]:
        """The kind of the difference; a smaller case must have the same."""
        return (
            self.real is not None and (self.real.results is None, self.real.error == ""),
            self.ours.results is None,
            self.ours.error == "",
            self.ours.fatal is None,
        )

    @property
    def is_quick(self) -> bool:
        """Return whether a case can be tried often: it must not be one that never ends."""
        return self.real is not None and not self.ours.error.startswith(ENDLESS)


@dataclass(slots=True)
class Tally:
    """The result of a comparison."""

    compared: int = 0
    timeouts: int = 0
    panics: int = 0
    allocated: int = 0
    errors: int = 0
    differences: list[Difference] = field(default_factory=list)
    # The names of cases on which we gave up, whatever Kubernetes did.
    undecided: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.compared} compared ({self.allocated} allocated, {self.errors} errors), "
            f"{len(self.differences)} differ; Kubernetes did not end on {self.timeouts} and "
            f"panicked on {self.panics}; dryrack gave up on {len(self.undecided)}"
        )


def compare(oracle: Oracle[AllocatorAnswer], cases: Iterable[Json]) -> Tally:
    """Asks both sides; stops early once enough differences are known."""
    tally = Tally()
    for case, answer in oracle.ask(cases):
        real = _count(tally, answer)
        ours = _ours(case)
        if ours.error == GAVE_UP:
            tally.undecided.append(case.get("name", ""))
            continue
        if _agree(real, ours):
            continue
        found = difference(oracle, case) if real is not None else Difference(case, None, ours)
        if found is not None:
            tally.differences.append(found)
            if len(tally.differences) == DIFFERENCES_MAX:
                break
    return tally


def _count(tally: Tally, answer: AllocatorAnswer) -> Verdict | None:
    """The verdict of Kubernetes, if it came to one."""
    if answer.timeout or answer.panic:
        tally.timeouts += answer.timeout
        tally.panics += bool(answer.panic)
        return None
    real = real_verdict(answer)
    tally.compared += 1
    tally.allocated += real.results is not None
    tally.errors += real.error != ""
    return real


def _agree(real: Verdict | None, ours: Verdict) -> bool:
    # Whatever we come to ourselves we know to be fatal or not.
    return ours.fatal is not None if real is None else real.same_as(ours)


def difference(oracle: Oracle[AllocatorAnswer], case: Json) -> Difference | None:
    """
    Return the difference of the two sides on a case, or None.

    Go walks maps in random order, so where two things are wrong with a case Kubernetes names
    now the one and now the other. Any answer that it gave itself is right.
    """
    ours = _ours(case)
    answers = [answer for _, answer in oracle.ask([case] * ASKED_AGAIN)]
    is_open = any(answer.timeout or answer.panic for answer in answers)
    real = [None] if is_open else [real_verdict(answer) for answer in answers]
    return None if any(_agree(each, ours) for each in real) else Difference(case, real[0], ours)


def report(oracle: Oracle[AllocatorAnswer], found: Difference) -> str:
    """The difference on the smallest case that shows it, as YAML, and how to see it again."""

    def fails(case: Json) -> bool:
        smaller = difference(oracle, case)
        return smaller is not None and smaller.kind == found.kind

    name = found.case.get("name", "")
    smallest = found
    if found.is_quick:
        question = {key: part for key, part in found.case.items() if key != "name"}
        smallest = difference(oracle, shrink(question, fails, keep=KEPT)) or found
    real = "did not decide" if smallest.real is None else smallest.real.as_json()
    answers = {"kubernetes": real, "dryrack": smallest.ours.as_json()}
    command = f"python -m tests.oracle.differential {name}"
    return f"# {command}\n{to_yaml({**smallest.case, **answers})}"


def _ours(case: Json) -> Verdict:
    try:
        return within(OUR_SECONDS_MAX, lambda: our_verdict(case))
    except TooLongError as error:
        return Verdict(error=f"{ENDLESS}: {error}")
    except Exception as error:  # noqa: BLE001 - a crash is a difference to report, not the end
        return Verdict(error=f"{type(error).__name__}: {error}")


def main() -> None:
    [name] = sys.argv[1:]
    with allocator_oracle() as oracle:
        found = difference(oracle, {"name": name, **generate(Random(name))})
        said = report(oracle, found) if found else f"{name}: no difference\n"
    sys.stdout.write(said)


if __name__ == "__main__":
    main()
