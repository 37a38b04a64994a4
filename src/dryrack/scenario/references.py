"""
Objects and fields as a scenario names them: `Pod/default/web-*`, `status.conditions[type=Ready]`.

A name without a namespace is in the namespace default, or in none if its kind is cluster-scoped. A
kind that several groups have is written with its group, `PodGroup.scheduling.k8s.io`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from dryrack.kinds.text.source_positions import parse_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw

DEFAULT_NAMESPACE = "default"
_PATTERN_SIGNS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Reference:
    """A kind and the patterns of a namespace and a name."""

    kind: str
    group: str | None
    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Reference | None:
        """Return the reference in the text, or None."""
        parts = text.split("/")
        if len(parts) not in (2, 3) or not all(parts) or not parts[0][0].isupper():
            return None
        kind, dot, group = parts[0].partition(".")
        namespace = parts[1] if len(parts) == 3 else ""
        return cls(kind, group if dot else None, namespace, parts[-1])

    def names_kind(self, endpoint: Endpoint) -> bool:
        return endpoint.kind == self.kind and self.group in (None, endpoint.group)

    def fits(self, obj: Raw) -> bool:
        """Return whether an object of this kind matches."""
        metadata = obj["metadata"]
        own = metadata.get("namespace", "")
        namespace = self.namespace or (DEFAULT_NAMESPACE if own else "")
        return fnmatchcase(own, namespace) and fnmatchcase(metadata["name"], self.name)

    @property
    def is_pattern(self) -> bool:
        return bool(_PATTERN_SIGNS.intersection(self.namespace + self.name))

    def __str__(self) -> str:
        kind = self.kind if self.group is None else f"{self.kind}.{self.group}"
        return "/".join(part for part in (kind, self.namespace, self.name) if part)


def name_in(obj: Raw) -> str:
    """Return the kind, namespace and name of an object, for messages."""
    metadata = obj["metadata"]
    parts = (obj.get("kind", ""), metadata.get("namespace", ""), metadata["name"])
    return "/".join(part for part in parts if part)


def fit_all(found: Sequence[str], wanted: Sequence[str]) -> bool:
    """Return whether texts and patterns match one to one."""
    if len(found) != len(wanted):
        return False
    taken: dict[int, int] = {}

    def place(index: int, seen: set[int]) -> bool:
        for slot, pattern in enumerate(wanted):
            if slot in seen or not fnmatchcase(found[index], pattern):
                continue
            seen.add(slot)
            if slot not in taken or place(taken[slot], seen):
                taken[slot] = index
                return True
        return False

    return all(place(index, set()) for index in range(len(found)))


def values_at(obj: Any, path: str) -> list[Any]:
    """Return the values at a path; `[key=value]` selects items of a list, `[*]` all items."""
    found = [obj]
    for step in parse_path(path):
        found = [inner for each in found for inner in _inner(each, step)]
    return found


def _inner(value: Any, step: str | int) -> Iterable[Any]:
    if isinstance(value, dict):
        return [value[str(step)]] if str(step) in value else []
    if not isinstance(value, list):
        return []
    if isinstance(step, int):
        return value[step : step + 1]
    if step == "*":
        return value
    key, equals, wanted = step.partition("=")
    if not equals:
        return []
    return [
        each
        for each in value
        if isinstance(each, dict) and fnmatchcase(as_text(each.get(key)), wanted)
    ]


def holds(found: Sequence[Any], wanted: Any) -> bool:
    """Return whether one of the values equals `wanted`; None stands for no value."""
    if wanted is None:
        return all(each is None for each in found)
    if isinstance(wanted, str):
        return any(fnmatchcase(as_text(each), wanted) for each in found)
    return any(each == wanted for each in found)


def as_text(value: Any) -> str:
    """Return a value as a scenario would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
