"""
Every rule, by its own example.

Of each there is a file with the fault and the same file without. What the reference page shows
is therefore what these tests run.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.linter.reference import page
from tests.linter.rule_examples import EXAMPLES

from dryrack.linter import Severity, lint
from dryrack.linter.rules import RULES
from dryrack.scenario import own_problems

if TYPE_CHECKING:
    from dryrack.linter.registry import Rule

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "lint.md"

each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.code}-{rule.slug}")


def codes(text: str) -> list[str]:
    return [finding.code for finding in lint([("example.yaml", text.encode())], own_problems)]


@each_rule
def test_the_bad_example_yields_its_code_and_no_other(rule: Rule) -> None:
    """A rule sees the fault of its example, once, and the example has no other fault."""
    assert codes(EXAMPLES[rule.code].bad) == [rule.code]


@each_rule
def test_the_fixed_example_yields_nothing(rule: Rule) -> None:
    """The change that a rule shows heals the file wholly."""
    assert codes(EXAMPLES[rule.code].fixed) == []


@each_rule
def test_a_finding_says_where_and_what_to_do(rule: Rule) -> None:
    """File, a line of the file, an object, what is so and what would fix it: none is left out."""
    (finding,) = lint([("example.yaml", EXAMPLES[rule.code].bad.encode())], own_problems)

    assert finding.file == "example.yaml"
    assert 1 <= finding.line <= len(EXAMPLES[rule.code].bad.splitlines())
    assert finding.severity is rule.severity
    assert finding.what
    assert finding.fix
    assert not finding.message.endswith(".")


@each_rule
def test_a_rule_is_documented(rule: Rule) -> None:
    """A code has the form of a code, and its texts are whole sentences."""
    assert re.fullmatch(r"DR[0-9]{3}", rule.code)
    assert re.fullmatch(r"[a-z][a-z-]*[a-z]", rule.slug)
    assert rule.summary.endswith(".")
    assert rule.why.endswith((".", "?"))


def test_the_reference_page_is_up_to_date() -> None:
    """The page in docs is what the rules say today."""
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m tests.linter.reference > docs/reference/lint.md"
    )


def test_all_severities_are_in_use() -> None:
    """None of the three words is decoration."""
    assert {rule.severity for rule in RULES} == set(Severity)
