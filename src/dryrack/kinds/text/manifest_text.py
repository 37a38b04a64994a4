"""
The text of a file of manifests, divided into documents as kubectl divides it.

kubectl does not leave that to YAML. Each line that begins with `---` divides, and nothing but a
comment may follow on it; what stands between two such lines is read by itself, and of that the
first document alone. A file may also begin with JSON: then documents of JSON follow each other
without a word, and if there is only one, YAML may come after it.

What kubectl reads is read here, too. What it would pass over without a word is a fault.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from dryrack.kinds.text import json_text, yaml_text
from dryrack.kinds.text.parsed import Fault, Parsed, RepeatedKey
from dryrack.kinds.text.source_positions import Place

_DIVIDER = re.compile(r"^---([^\n]*)\n?", re.MULTILINE)
_BLANK = re.compile(r"[^\S\n]*\n?")
# One document of JSON may be a part of YAML; two in a row are a stream of JSON.
_JSON_BEFORE_YAML_MAX = 1


class _Part(NamedTuple):
    """What stands between two dividers; not to be read after one with a fault."""

    text: str
    line: int
    fault: Fault | None = None


def documents(text: str, name: str) -> Iterator[Parsed | Fault]:
    """Every document of a file of this name, and every fault, in order."""
    if not json_text.looks_like_json(text):
        return _divided(text, 0)
    found = list(json_text.documents(text))
    last = found[-1]
    if not isinstance(last, json_text.NotJson) or name.endswith(".json"):
        return iter(found)
    return iter([*found[:-1], *_after_json(text, last, len(found) - 1)])


def _after_json(text: str, fault: json_text.NotJson, before: int) -> Iterator[Parsed | Fault]:
    """The documents from where the text is no JSON any more."""
    if before > _JSON_BEFORE_YAML_MAX:
        return iter([fault])
    blank = _BLANK.match(text, fault.after)
    start = blank.end() if blank else fault.after
    return _divided(text[start:], text.count("\n", 0, start))


def _divided(text: str, lines_before: int) -> Iterator[Parsed | Fault]:
    broken = 0
    for part in _parts(text, lines_before + 1):
        found = [part.fault] if part.fault else _documents(part)
        broken_before = broken
        for each in found:
            broken += isinstance(each, Fault) and not isinstance(each, RepeatedKey)
            yield each
        if broken != broken_before and broken >= yaml_text.ERRORS_MAX:
            yield yaml_text.too_many_faults(part.line)
            return


def _documents(part: _Part) -> Iterator[Parsed | Fault]:
    return yaml_text.documents(part.text, lines_before=part.line - 1)


def _parts(text: str, line: int) -> Iterator[_Part]:
    start = 0
    fault = None
    for divider in _DIVIDER.finditer(text):
        at, end = divider.span()
        if at > start or fault:
            yield _Part(text[start:at], line, fault)
        wrong = _divider_fault(divider[1].strip(), line + text.count("\n", start, at))
        # A divider with nothing before it is left to YAML, which may see none in it.
        next_start = end if at > start or fault or wrong else at
        line += text.count("\n", start, next_start)
        start = next_start
        fault = wrong
    # Of a block without the end of its last line kubectl makes one with it.
    last = text[start:]
    yield _Part(last if last.endswith("\n") else f"{last}\n", line, fault)


def _divider_fault(rest: str, line: int) -> Fault | None:
    if not rest or rest.startswith("#"):
        return None
    message = f"{rest!r} after ---, where kubectl reads nothing but a comment"
    return Fault(Place(line, 4), message, "put it on a separate line")
