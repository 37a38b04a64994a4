"""
A configuration in YAML, by itself or as a text inside a ConfigMap.

Hostile or huge text ends as a problem, and at once: what the API server would not keep in a
ConfigMap is not parsed at all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dryrack.hardware.config_formats.fixes import text_fix
from dryrack.kinds.text.parsed import Fault, Parsed
from dryrack.kinds.text.source_positions import Place
from dryrack.kinds.text.yaml_text import documents

# The API server refuses a ConfigMap with more data than this.
BYTES_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Block:
    """A text inside a file, and where in the file its lines are."""

    key: Place
    indent: int | None
    """None if the text is not written in lines of its own: then its key has to do."""

    def place(self, inner: Place) -> Place:
        """The place in the file of a place in the text."""
        if self.indent is None:
            return self.key
        return Place(self.key.line + inner.line, inner.column + self.indent)


def block(key: Place, text: str, content: str) -> Block:
    """The text that stands under the key in the content of a file."""
    # A block has the text's lines as they are; the line after the key tells it from others.
    lines = content.split("\n", key.line + 1)
    below = lines[key.line] if key.line < len(lines) else ""
    first = text.split("\n", 1)[0]
    is_block = below.strip() == first.strip()
    return Block(key, len(below) - len(below.lstrip()) if is_block else None)


@dataclass(frozen=True, slots=True)
class Nothing:
    """A text without any value in it."""


def parsed(text: str) -> Parsed | Nothing | tuple[Fault, ...]:
    """The one document of the text, or what is wrong with it."""
    if len(text.encode("utf-8", "surrogatepass")) > BYTES_MAX:
        fault = f"larger than {BYTES_MAX} bytes, which is all that a ConfigMap holds"
        return (Fault(Place(1, 1), fault, "split the configuration into several DRAConfigs"),)
    found = list(documents(text))
    faults = tuple(_with_fix(each) for each in found if isinstance(each, Fault))
    if faults:
        return faults
    values = [each for each in found if isinstance(each, Parsed) and each.value is not None]
    if len(values) > 1:
        place = values[1].tree.locate(())
        return (
            Fault(
                place,
                "dryrack ignores every document after the first",
                "move all mappings into the first document",
            ),
        )
    return values[0] if values else Nothing()


def _with_fix(fault: Fault) -> Fault:
    return fault if fault.fix else replace(fault, fix=text_fix(fault.message))


def is_configuration(value: Any) -> bool:
    """Whether it looks as if it were meant as a configuration."""
    return isinstance(value, dict) and any(key.lower() in ("driver", "mappings") for key in value)
