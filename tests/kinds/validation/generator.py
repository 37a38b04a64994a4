"""Questions to ask the API server's own code and ours, made from a seed."""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, Any

from tests.kinds.validation import documents
from tests.kinds.validation.mutators import MUTATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.kinds.validation.documents import Document
    from tests.kinds.validation.mutators import Mutator

Question = dict[str, Any]

MUTATIONS_MAX = 4
NAMESPACE_LABELS: tuple[dict[str, str], ...] = (
    {},
    {"resource.kubernetes.io/admin-access": "true"},
    {"resource.kubernetes.io/admin-access": "True"},
)


def questions(count: int, *, seed: int) -> Iterator[Question]:
    """So many questions; the same seed asks the same ones."""
    chance = Random(seed)
    for _ in range(count):
        yield _question(chance)


def _question(chance: Random) -> Question:
    labels = chance.choice(NAMESPACE_LABELS)
    how = chance.random()
    if how < 0.5:
        return {"object": _spoiled(chance, _fresh(chance)), "namespaceLabels": labels}
    if how < 0.75:
        return {**_update(chance), "namespaceLabels": labels}
    return {**_status_update(chance), "namespaceLabels": labels}


def _fresh(chance: Random) -> Document:
    return copy.deepcopy(chance.choice(documents.NEW))


def _update(chance: Random) -> Question:
    kinds = [each for each in documents.NEW if each["kind"] != "Pod"]
    old = documents.stored(chance.choice(kinds))
    if chance.random() < 0.3:
        _spoiled(chance, old)
    return {"object": _spoiled(chance, copy.deepcopy(old)), "old": old}


def _status_update(chance: Random) -> Question:
    if chance.random() < 0.15:
        old = documents.stored(documents.RULES[0])
        new = {**copy.deepcopy(old), "status": copy.deepcopy(documents.RULE_STATUS)}
        return _status(new, old, chance)
    old = documents.stored(documents.CLAIMS[0])
    if chance.random() < 0.3:
        old["status"] = copy.deepcopy(documents.STATUS)
    if chance.random() < 0.2:
        old["metadata"]["deletionTimestamp"] = "2026-01-03T00:00:00Z"
    new = {**copy.deepcopy(old), "status": copy.deepcopy(documents.STATUS)}
    return _status(new, old, chance)


def _status(new: Document, old: Document, chance: Random) -> Question:
    _spoiled(chance, new, f"{new['kind']}/status")
    return {"object": new, "old": old, "subresource": "status"}


def _spoiled(chance: Random, document: Document, kind: str = "") -> Document:
    choice = _BY_KIND[kind or document["kind"]]
    for _ in range(chance.randint(0, MUTATIONS_MAX)):
        chance.choice(choice).apply(chance, document)
    return document


def _by_kind() -> dict[str, list[Mutator]]:
    kinds: dict[str, list[Mutator]] = {}
    for mutator in MUTATORS:
        kinds.setdefault(mutator.kind, []).append(mutator)
    return kinds


_BY_KIND = _by_kind()
