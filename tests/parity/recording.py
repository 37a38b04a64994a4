"""
The recorded answers, on disk and in comparison.

The answers of the oldest release are in `answers`. Each later release has a directory of its own
with the answers that differ from those of the release before.
"""

from __future__ import annotations

import difflib
import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.realcluster.releases import RELEASE

from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.parity.script import Script

    Answers = list[dict[str, Any]]

ANSWERS = Path(__file__).parent / "answers"
RECORDED = tuple(Release)
# The release of the test bed, as far as its answers are recorded.
TESTED = next((each for each in RECORDED if each.value == RELEASE.minor), DEFAULT_RELEASE)
_LINES_MAX = 40


def write(script: Script, answers: Sequence[dict[str, Any]], release: Release) -> None:
    """Replace the answers of one release; those of the others stay as they are."""
    first = _path(script, RECORDED[0])
    if release is not RECORDED[0] and not first.exists():
        raise SystemExit(f"{script.name}: record the answers of {RECORDED[0].value} first")
    known = {each: read(script, each) for each in RECORDED if first.exists()}
    known[release] = list(answers)
    _dump(first, known[RECORDED[0]])
    for (_, before), (later, current) in pairwise(known.items()):
        path = _path(script, later)
        changed = [answer for answer in current if answer not in before]
        if changed:
            _dump(path, changed)
        else:
            path.unlink(missing_ok=True)


def read(script: Script, release: Release = DEFAULT_RELEASE) -> Answers:
    """Return the recorded answers of a release, in the order of the oldest recording."""
    answers: dict[str, dict[str, Any]] = {}
    for each in RECORDED[: RECORDED.index(release) + 1]:
        path = _path(script, each)
        if path.exists() or each is RECORDED[0]:
            answers |= {answer["step"]: answer for answer in json.loads(path.read_text())}
    return list(answers.values())


def differences(
    script: Script, answers: Sequence[dict[str, Any]], release: Release
) -> Iterator[str]:
    """Yield one text for each step whose answer is not the recorded one."""
    recorded = {answer["step"]: answer for answer in read(script, release)}
    for answer in answers:
        step = answer["step"]
        if step not in recorded:
            yield f"{script.name}: {step}: not recorded; run: python -m tests.parity record"
        elif recorded[step] != answer:
            yield f"{script.name}: {step}:\n{diff(recorded[step], answer)}"


def diff(recorded: dict[str, Any], answer: dict[str, Any]) -> str:
    """Return the lines in which two answers differ; at most `_LINES_MAX` of them."""
    before, after = (
        json.dumps(value, indent=1, sort_keys=True).splitlines() for value in (recorded, answer)
    )
    lines = list(difflib.unified_diff(before, after, "recorded", "answered", lineterm="", n=2))
    return "\n".join(lines[:_LINES_MAX])


def _dump(path: Path, answers: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(list(answers), indent=1, sort_keys=True) + "\n")


def _path(script: Script, release: Release) -> Path:
    directory = ANSWERS if release is RECORDED[0] else ANSWERS / release.value
    return directory / f"{script.name}.json"
