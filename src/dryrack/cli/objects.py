"""
Read typed objects from files.

The error contains all problems of all files, each with its line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.files import read_sources
from dryrack.cli.output import say, shown
from dryrack.kinds.catalog import Typed, typed
from dryrack.kinds.documents import latest, read
from dryrack.kinds.other_kinds import Mistaken, Standing, standing
from dryrack.placement.whatif.manifests import manifests

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
    reading = manifests([*added, *documents])
    for note in reading.notes:
        say(shown(note))
    problems = [problem for reading in readings for problem in reading.problems]
    # The pods of a workload have equal problems, in the same place.
    lines = dict.fromkeys(map(str, (*problems, *reading.problems)))
    if lines:
        raise ContentError("\n".join(lines))
    return reading.objects


def load_documents(names: Sequence[str]) -> tuple[tuple[Document, Typed | None], ...]:
    """
    Return all documents in the files, and their objects if their kinds have models.

    Raise `ContentError` with all that is wrong: no name, a kind that does not exist, or an object
    that does not fit its model.
    """
    readings = [read(source.content, source.name) for source in read_sources(names)]
    problems = [problem for reading in readings for problem in reading.problems]
    documents, _ = latest(document for reading in readings for document in reading.documents)
    found: list[tuple[Document, Typed | None]] = []
    for document in documents:
        kind = standing(document)
        if isinstance(kind, Mistaken):
            problems.append(document.problem(kind.path, kind.message, kind.fix))
        elif not document.name:
            problems.append(document.problem("", "the object has no name", "set metadata.name"))
        elif kind is not Standing.OURS:
            found.append((document, None))
        else:
            answer = typed(document)
            found.append((document, answer if isinstance(answer, Typed) else None))
            problems += () if isinstance(answer, Typed) else answer
    if problems:
        raise ContentError("\n".join(dict.fromkeys(map(str, problems))))
    return tuple(found)
