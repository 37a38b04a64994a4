"""
Files that kubectl reads in its own way, and what it makes of them.

    python -m tests.kinds.manifests

asks Kubernetes' own code about every text of `manifests.json` and writes down what it answers.
A new text goes into the file without an answer. `lost` is written by hand: what of the text
kubectl passes over without a word, which is a fault to dryrack.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from tests.golang import build
from tests.oracle.oracles import MODULE, Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDED = Path(__file__).parent / "manifests.json"

# The parts of random texts.
_PIECES = (
    *("a: ", "b: ", "1: ", "'1': ", "true: ", "1.0: ", "0x1: ", "x", "y", "5", "~", '"q"', "'z'"),
    *("\n", "\n", "\n", "  ", "  ", "\r\n", "\t", "- ", "? ", ": ", ", ", "{", "}", "[", "]"),
    *("\n---\n", "\n---", "--- ", "---#c", "# c", "\n...\n", "%YAML 1.1\n", "|\n  t", "| ", "> "),
    *("&x ", "*x", "*x : ", "<<: ", "'<<': ", "<<: *x", "!!str ", "!!int ", "{a: 1}"),
    *('{"a": 1}\n', '{"b": [1]}\n'),
)
_PIECES_MAX = 9


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The documents that kubectl reads from a text, and its error."""

    documents: tuple[Any, ...]
    error: str = ""


def kubectl() -> Oracle[Answer]:
    """Return an oracle that reads files as kubectl of the reference release does."""
    return Oracle(build(MODULE).path("manifests"), Answer)


class Row(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """A text with its answer, and what was lost between the two."""

    text: str
    documents: tuple[Any, ...] = ()
    lost: str = ""


def recorded() -> tuple[Row, ...]:
    """All that is written down."""
    return msgspec.json.decode(RECORDED.read_bytes(), type=tuple[Row, ...])


def drawn(count: int, seed: int) -> Iterator[dict[str, str]]:
    """Yield random texts."""
    chance = random.Random(seed)
    for _ in range(count):
        text = "".join(chance.choices(_PIECES, k=chance.randint(1, _PIECES_MAX)))
        # What follows JSON is an error to kubectl if it is shorter than it looks ahead.
        yield {"text": f"{text}\n{' ' * 4}" if "{" in text else text}


def record() -> None:
    """Write down the answers to all texts."""
    rows = recorded()
    with kubectl() as oracle:
        answers = [answer for _, answer in oracle.ask([{"text": row.text} for row in rows])]
    renewed = [
        msgspec.structs.replace(row, documents=answer.documents, error=answer.error)
        for row, answer in zip(rows, answers, strict=True)
    ]
    said = [json.dumps(msgspec.to_builtins(row)) for row in renewed]
    RECORDED.write_text("[\n " + ",\n ".join(said) + "\n]\n")


if __name__ == "__main__":
    record()
