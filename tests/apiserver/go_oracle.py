"""Asks Kubernetes' own code about many cases at once."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.apiserver.extract_schemas import SCHEMAS
from tests.golang import build

from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from collections.abc import Sequence

MODULE = Path(__file__).parent / "go"
# The release of the module.
ASKED = Release.V1_37
_DEFINITIONS = SCHEMAS / f"definitions-{ASKED.value}.json.gz"
_SECONDS_MAX = 600


def ask(program: str, cases: Sequence[dict[str, Any]]) -> list[Any]:
    """The answers of a program of the module to all cases, in order."""
    path = build(MODULE).path(program)
    content = "".join(f"{json.dumps(case)}\n" for case in cases)
    done = subprocess.run(
        [str(path), str(_DEFINITIONS)],
        input=content.encode(),
        capture_output=True,
        timeout=_SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert len(answers) == len(cases), f"{len(cases)} cases, {len(answers)} answers"
    return answers
