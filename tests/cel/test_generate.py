"""The generator is reproducible and reaches everything; what differs is made small."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.cel.compare import Difference, our_verdict, their_verdict
from tests.cel.generate import Generated, generate
from tests.cel.shrink import shrunk
from tests.oracle.oracles import CelAnswer

from dryrack.cel.declarations import functions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

KEYWORDS = {"in"}


def test_a_seed_makes_the_same_case_again() -> None:
    """A case found in a long run is made again from its seed alone."""
    assert [generate(f"again-{n}").case for n in range(50)] == [
        generate(f"again-{n}").case for n in range(50)
    ]
    assert generate("again-1").case != generate("again-2").case


def test_every_function_is_called() -> None:
    """A few thousand cases call each declared function that has a name to call it by."""
    texts = "\n".join(generate(f"reach-{n}").case["expression"] for n in range(3000))
    called = set(re.findall(r"\b(\w+)\(", texts))
    names = [name for name in functions(includes=True) if re.fullmatch(r"[a-z][\w.]*", name)]

    assert [name for name in names if name.rpartition(".")[2] not in called | KEYWORDS] == []


def test_most_cases_compile_and_some_match() -> None:
    """Neither errors nor successes drown the others."""
    verdicts = [our_verdict(generate(f"share-{n}").case) for n in range(400)]
    compiled = [verdict for verdict in verdicts if not verdict.compile_error]

    assert 240 <= len(compiled) <= 340
    assert sum(verdict.match for verdict in compiled) >= 60
    assert sum(bool(verdict.match_error) for verdict in compiled) >= 60


class DislikesFish:
    """An oracle with one opinion of its own: an expression with a fish does not compile."""

    def ask(
        self, cases: Iterable[Mapping[str, Any]]
    ) -> Iterator[tuple[Mapping[str, Any], CelAnswer]]:
        for case in cases:
            yield case, self.answer(case)

    def answer(self, case: Mapping[str, Any]) -> CelAnswer:
        if '"fish"' in case["expression"]:
            return CelAnswer(compile_error="a fish")
        ours = our_verdict(case)
        return CelAnswer(
            compile_error=ours.compile_error,
            match=ours.match,
            match_error=ours.match_error,
            cost=ours.cost,
            actual_cost=ours.actual_cost,
        )


def _generated_with_fish() -> Generated:
    made = (generate(f"fish-{n}") for n in range(10_000))
    return next(
        g
        for g in made
        if '"fish"' in g.case["expression"]
        and len(g.case["expression"]) > 200
        and our_verdict(g.case).actual_cost is not None
    )


def test_a_difference_is_shrunk_to_its_cause() -> None:
    """Only the parts of an expression and a device that show the difference remain."""
    generated = _generated_with_fish()
    oracle = DislikesFish()
    theirs = their_verdict(oracle.answer(generated.case))
    found = Difference(generated.seed, generated.case, our_verdict(generated.case), theirs)

    small = shrunk(generated, found, oracle)

    assert small.fields == found.fields == ("compile_error",)
    assert '"fish"' in small.case["expression"]
    assert len(small.case["expression"]) < 60
    assert not small.case.get("attributes")
    assert generated.seed in str(small)
