"""
From files to typed objects, for the commands that reckon with them.

All problems of all files are told at once, each with its line. Kinds that allocation does not
look at, Kubernetes' own and custom ones, are passed over with a word, because people keep whole
applications in one file; a kind that does not exist is a mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.cli.doubts import without_repeats
from dryrack.cli.files import ContentError, read_sources
from dryrack.cli.output import say, shown
from dryrack.kinds.bystanders import Standing, standing
from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.documents import Document, Problem, read

if TYPE_CHECKING:
    from collections.abc import Sequence

# Where workloads keep what their pods say.
_POD_SPECS = (("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"))


def load(names: Sequence[str]) -> tuple[Typed, ...]:
    """The objects in the files, in file order; `ContentError` with all that is wrong."""
    objects: list[Typed] = []
    problems: list[Problem] = []
    for source in read_sources(names):
        reading = read(source.content, source.name)
        problems += reading.problems
        for document in reading.documents:
            found = () if _is_bystander(document) else typed(document)
            if isinstance(found, Typed):
                objects.append(found)
            else:
                problems += found
    if problems:
        raise ContentError("\n".join(str(problem) for problem in problems))
    kept, repeated = without_repeats(objects)
    for problem in repeated:
        say(shown(str(problem)))
    return kept


def _is_bystander(document: Document) -> bool:
    found = standing(document)
    if found not in (Standing.BYSTANDER, Standing.CUSTOM):
        return False
    name = shown(f"{document.kind} {document.name}")
    hint = "; to try its pods, write one of them as a Pod" if _asks_for_devices(document) else ""
    say(f"{shown(document.file)}:{document.line}: {name} takes no part; ignored{hint}")
    return True


def _asks_for_devices(document: Document) -> bool:
    """Whether the pods of a workload have claims."""
    for path in _POD_SPECS:
        spec: Any = document.raw
        for step in path:
            spec = spec.get(step) if isinstance(spec, dict) else None
        if isinstance(spec, dict) and spec.get("resourceClaims"):
            return True
    return False
