"""
YAML as Go's reader takes it, and its complaints in its words.

Of a key that an object has twice the last value counts, and the text is complained of. Apart from
`bodies`, because most bodies are JSON, and reading YAML takes a while to load.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dryrack.base.limits import YAML_VALUES_MAX
from dryrack.kinds.text import parsed, yaml_text
from dryrack.kinds.text.go_json import YamlError
from dryrack.kinds.text.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.scalars import Plain


def read(body: bytes) -> tuple[Any, tuple[str, ...]]:
    """The first document, and a complaint if it says keys twice; raises `YamlError`."""
    text = body.decode("utf-8", "replace")
    rule = parsed.Repeats.LAST_COUNTS
    for found in yaml_text.documents(text, rule, values_max=YAML_VALUES_MAX):
        if isinstance(found, parsed.Fault):
            raise YamlError(f"yaml: {_told(found)}")
        return found.value, _repeated(found.repeated)
    return None, ()


def _told(fault: parsed.Fault) -> str:
    match fault:
        case parsed.SyntaxFault():
            line = _line(fault)
            return f"line {line}: {fault.problem}" if line else fault.problem
        case parsed.UnknownAnchor():
            return f"unknown anchor {fault.anchor!r} referenced"
        case _:
            return f"line {fault.place.line}: {fault.message}"


def _line(fault: parsed.SyntaxFault) -> int:
    """Go counts from zero, and takes the first line for none at all."""
    places = [each.line - 1 for each in (fault.began, fault.place) if each]
    line = next((line for line in places if line), 0)
    # Within a token the line that it stumbles over has not been counted yet.
    return line + 1 if line and fault.is_in_token else line


def _repeated(keys: Sequence[parsed.Repeated]) -> tuple[str, ...]:
    lines = [
        f"  line {each.place.line}: key {_shown(each.key)} already set in map" for each in keys
    ]
    return ("\n".join(["yaml: unmarshal errors:", *lines]),) if lines else ()


def _shown(key: Plain) -> str:
    return quoted(key) if isinstance(key, str) else json.dumps(key)
