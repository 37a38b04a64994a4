"""
Cases and their answers, from wherever they are kept.

The project's own cases are YAML files, one idea each. `answer` is the answer of the newest release
of Kubernetes. If older releases answer otherwise, `earlier` has their answers, each by the last
release that gave it. `cases` returns each case once for each release.

Other collections can be added by the directory that `DRYRACK_CASES` names: lists of cases in JSON,
with the answer beside the question, and perhaps the `release` that gave it. Both come out of here
alike. An error in JSON can be a part of the text; the whole text has a key of its own.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import yaml

from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Kind: TypeAlias = Literal["allocator", "cel"]
Json: TypeAlias = "dict[str, Any]"

OWN = Path(__file__).parent
ANSWERS = frozenset(
    {
        *("results", "error", "onNode", "allocateOneCalls"),
        *("compileError", "match", "matchError", "cost", "actualCost"),
        *("compileErrorText", "matchErrorText"),
    }
)


def own_files(kind: Kind) -> list[Path]:
    """The project's own cases, in the order of their names."""
    return sorted((OWN / kind).glob("*.yaml"))


def read(path: Path) -> Json:
    """One of our own cases; its name is that of its file."""
    loaded: Json = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    return {"name": path.stem, **loaded}


def cases(kind: Kind, environment: Mapping[str, str] = os.environ) -> list[Json]:
    """All cases of a kind: our own, and those of the directory in `DRYRACK_CASES`."""
    own = [of_release(read(path), each) for path in own_files(kind) for each in Release]
    return [*own, *_others(kind, environment.get("DRYRACK_CASES"))]


def of_release(case: Json, release: Release) -> Json:
    """The case with the answer of a release."""
    earlier: dict[str, Json] = case.pop("earlier", {})
    releases = [each.value for each in Release]
    lasts = [last for last in earlier if releases.index(last) >= releases.index(release.value)]
    answer = earlier[min(lasts, key=releases.index)] if lasts else case["answer"]
    name = f"{case['name']}-{release.value}"
    return {**case, "name": name, "release": release.value, "answer": answer}


def _others(kind: Kind, directory: str | None) -> Iterator[Json]:
    if not directory:
        return
    files = sorted(Path(directory).glob(f"{kind}*.json"))
    # A wrong path must not look like cases that all passed.
    assert files, f"DRYRACK_CASES={directory} has no {kind}*.json"
    for file in files:
        for case in json.loads(file.read_text()):
            question = {name: part for name, part in case.items() if name not in ANSWERS}
            answer = {name: part for name, part in case.items() if name in ANSWERS}
            for error in ("compileError", "matchError"):
                if error in answer:
                    answer["hasWholeTexts"] = f"{error}Text" in answer
                    answer[error] = answer.pop(f"{error}Text", answer[error])
            if answer.pop("onNode", False):
                answer["fatal"] = False
            release = case.get("release", "1.36")
            name = f"{file.stem}/{case['name']}"
            yield {**question, "name": name, "release": release, "answer": answer}
