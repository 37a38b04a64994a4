"""The recorded answers, on disk and in comparison."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.parity.script import Script

ANSWERS = Path(__file__).parent / "answers"
_LINES_MAX = 40


def write(script: Script, answers: Sequence[dict[str, Any]]) -> None:
    _path(script).write_text(json.dumps(list(answers), indent=1, sort_keys=True) + "\n")


def read(script: Script) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = json.loads(_path(script).read_text())
    return answers


def differences(script: Script, answers: Sequence[dict[str, Any]]) -> Iterator[str]:
    """One text for each step whose answer is not the recorded one."""
    recorded = {answer["step"]: answer for answer in read(script)}
    for answer in answers:
        step = answer["step"]
        if step not in recorded:
            yield f"{script.name}: {step}: not recorded; run: python -m tests.parity record"
        elif recorded[step] != answer:
            yield f"{script.name}: {step}:\n{diff(recorded[step], answer)}"


def diff(recorded: dict[str, Any], answer: dict[str, Any]) -> str:
    """The lines in which two answers differ, as many as anybody reads."""
    before, after = (
        json.dumps(value, indent=1, sort_keys=True).splitlines() for value in (recorded, answer)
    )
    lines = list(difflib.unified_diff(before, after, "recorded", "answered", lineterm="", n=2))
    return "\n".join(lines[:_LINES_MAX])


def _path(script: Script) -> Path:
    return ANSWERS / f"{script.name}.json"
