"""
Texts that are no expressions: right ones, with a token or two lost, added, changed or swapped.

    python -m tests.cel.generate_broken

writes `syntax_errors.json`: the texts that are in it, and a few hundred drawn ones, each with what
Kubernetes says of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.cel.generate import generate
from tests.cel.generate_hostile import ALMOST_RIGHT
from tests.oracle.oracles import cel_oracle

from dryrack.cel.lexer import tokenize

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDED = Path(__file__).parent / "syntax_errors.json"
RECORDED_CASES = 600
# What a person would still look at.
RECORDED_SIZE_MAX = 100

_PIECES = (
    *("(", ")", "[", "]", "{", "}", ",", ".", "?", ":", "!", "-", "+", "*", "==", "&&", "||", "<"),
    *(
        "in",
        "a",
        "1",
        "1.5",
        "2u",
        "'s'",
        "b'x'",
        "true",
        "null",
        "`x`",
        "#",
        "=",
        "&",
        "for",
        "as",
    ),
    *("-1", "\n", " ", "'''x\ny'''", "a.b{", "9999999999999999999"),
)


def broken(seed: str) -> str:
    """A text that is most likely no expression, the same for the same seed."""
    chance = Random(seed)
    text = (
        chance.choice(ALMOST_RIGHT) if chance.random() < 0.4 else generate(seed).case["expression"]
    )
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3))):
        text = chance.choice(_CHANGES)(chance, text)
    return text


def _place(chance: Random, text: str) -> tuple[int, int]:
    """Where a token is, or the end if there is none."""
    token = chance.choice(tokenize(text)[0])
    return token.position, min(len(text), token.position + len(token.text))


def _lost(chance: Random, text: str) -> str:
    start, end = _place(chance, text)
    return text[:start] + text[end:]


def _added(chance: Random, text: str) -> str:
    start, _ = _place(chance, text)
    return text[:start] + chance.choice(_PIECES) + chance.choice(("", " ")) + text[start:]


def _changed(chance: Random, text: str) -> str:
    start, end = _place(chance, text)
    return text[:start] + chance.choice(_PIECES) + text[end:]


def _cut_off(chance: Random, text: str) -> str:
    return text[: chance.randint(0, len(text))]


def _swapped(chance: Random, text: str) -> str:
    (a, b), (c, d) = sorted((_place(chance, text), _place(chance, text)))
    return text if b > c else text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


_CHANGES: tuple[Callable[[Random, str], str], ...] = (_lost, _added, _changed, _cut_off, _swapped)


def main() -> None:
    kept = [row["expression"] for row in json.loads(RECORDED.read_text())]
    drawn = (broken(f"recorded-{number}") for number in range(10 * RECORDED_CASES))
    short = [text for text in drawn if len(text) <= RECORDED_SIZE_MAX]
    texts = list(dict.fromkeys((*kept, *short)))
    with cel_oracle() as oracle:
        cases = [{"driver": "d.example.com", "expression": text} for text in texts]
        answers = [(case["expression"], a.compile_error) for case, a in oracle.ask(cases)]
    rows = [{"expression": text, "error": said} for text, said in answers if "Syntax error" in said]
    written = json.dumps(rows[:RECORDED_CASES], indent=1, ensure_ascii=False)
    RECORDED.write_text(f"{written}\n")


if __name__ == "__main__":
    main()
