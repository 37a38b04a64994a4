"""Hostile expressions end as in Kubernetes, also where Kubernetes itself does not end."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.bench.expressions import DEVICE
from tests.cel.bombs import BOMBS, ENDLESS, RECORDED, shown
from tests.cel.compare import first_syntax_error, our_verdict

ANSWERS: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())


def test_every_bomb_has_an_answer() -> None:
    """The recorded answers of Kubernetes are those of exactly these expressions."""
    assert set(ANSWERS) == set(BOMBS)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_as_in_kubernetes(name: str) -> None:
    """Same verdict, same error, same estimate and same cost; of syntax errors the first place."""
    verdict = our_verdict({**DEVICE, "expression": BOMBS[name]})

    assert not verdict.crash
    place = first_syntax_error(ANSWERS[name].get("compileError", ""))
    if place:
        assert first_syntax_error(verdict.compile_error) == place
    else:
        assert shown(verdict) == ANSWERS[name]


@pytest.mark.parametrize("name", ENDLESS)
def test_a_bomb_ends_where_kubernetes_does_not(name: str) -> None:
    """An expression without a bound for time or memory has an answer here."""
    expression, expected = ENDLESS[name]
    verdict = our_verdict({**DEVICE, "expression": expression})

    assert (verdict.compile_error or verdict.match_error or verdict.match) == expected
