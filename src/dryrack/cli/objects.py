"""
From files to typed objects, for the commands that reckon with them.

All problems of all files are told at once, each with its line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.files import read_sources
from dryrack.cli.output import say, shown
from dryrack.kinds.documents import read
from dryrack.placement.whatif.manifests import manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dryrack.kinds.catalog import Typed
    from dryrack.kinds.documents import Document


def load(
    names: Sequence[str], more: Callable[[Sequence[Document]], Sequence[Document]] | None = None
) -> tuple[Typed, ...]:
    """
    Return the objects in the files, in file order; raise `ContentError` with all that is wrong.

    `more` returns documents to add to those of the files.
    """
    readings = [read(source.content, source.name) for source in read_sources(names)]
    documents = [document for reading in readings for document in reading.documents]
    added = more(documents) if more is not None else ()
    found = manifests([*added, *documents])
    for note in found.notes:
        say(shown(note))
    problems = [problem for reading in readings for problem in reading.problems]
    # The pods of a workload have the same faults, in the same place.
    told = dict.fromkeys(map(str, (*problems, *found.problems)))
    if told:
        raise ContentError("\n".join(told))
    return found.objects
