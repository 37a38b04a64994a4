"""
Random cases for the CEL environment of device selectors, reproducible from a seed.

A case is an expression, a device and the switches of the environment, in the format of the
conformance cases. About seven in ten compile; one in ten is damaged text, because what people
write is not always an expression.

    python -m tests.cel.generate SEED…
"""

from __future__ import annotations

import json
import random
import re
import sys
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.cel.generate_devices import random_device
from tests.cel.generate_expressions import ExpressionMaker
from tests.cel.generate_hostile import hostile
from tests.cel.generate_loops import looped
from tests.cel.pieces import piece
from tests.cel.signatures import Signatures

from dryrack.cel.checking import types as t
from dryrack.cel.declarations import functions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from tests.cel.pieces import Piece

_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
_INTRUDERS = "()[]{}.,?:&|!=<>+-*/%'\"\\@#$;`~^ \n0aé\u00a0\x00"


@dataclass(frozen=True, slots=True)
class Generated:
    """A case, the seed that makes it again, and the expression as a tree."""

    seed: str
    case: Mapping[str, Any]
    expression: Piece


def generate(seed: str) -> Generated:
    chance = random.Random(seed)
    switches = {
        "newExpressions": chance.random() < 0.3,
        "listTypeAttributes": chance.random() < 0.5,
        "consumableCapacity": chance.random() < 0.7,
    }
    device = random_device(chance, lists=switches["listTypeAttributes"])
    expression = _expression(chance, device)
    return Generated(seed, {"expression": expression.text, **device, **switches}, expression)


def _expression(chance: Random, device: Mapping[str, Any]) -> Piece:
    if chance.random() < 0.03:
        return piece(t.BOOL, hostile(chance))
    made = ExpressionMaker(chance, device, _signatures()).selector()
    if chance.random() < 0.06:
        other = ExpressionMaker(chance, device, _signatures()).selector()
        return piece(t.BOOL, looped(chance, made.text, other.text))
    if chance.random() < 0.1:
        return piece(t.BOOL, damaged(chance, made.text))
    if chance.random() < 0.03:
        return piece(t.BOOL, made, chance.choice((" // a comment", "\n", "\t ", "//\n&& true")))
    return made


@cache
def _signatures() -> Signatures:
    return Signatures(functions(includes=True))


def damaged(chance: Random, text: str) -> str:
    """The text with one to three accidents."""
    tokens = _TOKEN.findall(text)
    for _ in range(chance.choice((1, 1, 2, 3))):
        tokens = _with_accident(chance, tokens)
    return "".join(tokens)


def _with_accident(chance: Random, tokens: list[str]) -> list[str]:
    at = chance.randrange(len(tokens) or 1)
    match chance.randrange(6):
        case 0:
            return tokens[:at] + tokens[at + 1 :]
        case 1:
            return tokens[: at + 1] + tokens[at:]
        case 2:
            return [*tokens[:at], chance.choice(_INTRUDERS), *tokens[at:]]
        case 3:
            return tokens[:at]
        case 4:
            word = tokens[at] if tokens else ""
            return [*tokens[:at], word[: len(word) // 2], *tokens[at + 1 :]]
        case _:
            other = chance.randrange(len(tokens) or 1)
            return [*tokens[:at], *tokens[other : other + 1], *tokens[at + 1 :]]


if __name__ == "__main__":
    for seed in sys.argv[1:]:
        print(json.dumps(generate(seed).case))  # noqa: T201
