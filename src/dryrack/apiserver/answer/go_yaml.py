"""
YAML as Go's reader accepts it, with Go's error texts.

The last value of a repeated key counts, with a complaint. Apart from `bodies`, because most bodies
are JSON, and the YAML reader takes a while to load.
"""

from __future__ import annotations

import json
from typing import Any

from dryrack.base.limits import YAML_VALUES_MAX
from dryrack.kinds.text import parsed, yaml_text
from dryrack.kinds.text.go_json import YamlError
from dryrack.kinds.text.quoting import quoted


def read(body: bytes) -> tuple[Any, tuple[str, ...]]:
    """Return the first document, and a complaint if it repeats keys; raise a `YamlError`."""
    text = body.decode("utf-8", "replace")
    rule = parsed.Repeats.LAST_COUNTS
    for document in yaml_text.documents(text, rule, values_max=YAML_VALUES_MAX):
        if isinstance(document, parsed.Fault):
            raise YamlError(f"yaml: {_describe(document)}")
        lines = ["yaml: unmarshal errors:"]
        for each in document.repeated:
            key = quoted(each.key) if isinstance(each.key, str) else json.dumps(each.key)
            lines.append(f"  line {each.place.line}: key {key} already set in map")
        return document.value, ("\n".join(lines),) if document.repeated else ()
    return None, ()


def _describe(fault: parsed.Fault) -> str:
    match fault:
        case parsed.SyntaxFault():
            # Go counts from zero, and treats the first line as no line.
            places = [each.line - 1 for each in (fault.began, fault.place) if each]
            line = next((line for line in places if line), 0)
            if not line:
                return fault.problem
            # Within a token, Go has not yet counted the line of the fault.
            return f"line {line + 1 if fault.is_in_token else line}: {fault.problem}"
        case parsed.UnknownAnchor():
            return f"unknown anchor {fault.anchor!r} referenced"
        case _:
            return f"line {fault.place.line}: {fault.message}"
