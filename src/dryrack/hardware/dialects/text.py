"""
A configuration in YAML, by itself or as a text inside a ConfigMap.

Hostile or huge text ends as a problem, and at once: what the API server would not keep in a
ConfigMap is not parsed at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.kinds.places import Place
from dryrack.kinds.yaml_text import Fault, Parsed, documents

if TYPE_CHECKING:
    from dryrack.kinds.places import Places
    from dryrack.kinds.shape import Path

# The API server refuses a ConfigMap with more data than this.
BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Text:
    """A YAML text inside a document, and where in the file its lines are."""

    tree: Places
    path: Path
    key_line: int
    is_block: bool

    def line(self, path: Path) -> int:
        """The line of the file; of a text that is not written in lines, that of its key."""
        inner = self.tree.locate(path[len(self.path) :]).line
        return self.key_line + inner if self.is_block else self.key_line


@dataclass(frozen=True, slots=True)
class Nothing:
    """A text without any value in it."""


def parsed(text: str) -> Parsed | Nothing | tuple[Fault, ...]:
    """The one document of the text, or what is wrong with it."""
    if len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
        fault = f"larger than {BYTES_MAX} bytes, which is all that a ConfigMap holds"
        return (Fault(Place(1, 1), fault, "split the configuration into several DRAConfigs"),)
    found = list(documents(text))
    faults = tuple(each for each in found if isinstance(each, Fault))
    if faults:
        return faults
    values = [each for each in found if isinstance(each, Parsed) and each.value is not None]
    if len(values) > 1:
        place = values[1].tree.locate(())
        return (Fault(place, "a second document, which nobody reads", "put all into the first"),)
    return values[0] if values else Nothing()


def is_configuration(value: Any) -> bool:
    """Whether it looks as if it were meant as a configuration."""
    return isinstance(value, dict) and any(key.lower() in ("driver", "mappings") for key in value)
