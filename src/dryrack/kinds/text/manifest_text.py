"""
Split the text of a manifest file into documents, as kubectl does.

kubectl splits before it parses YAML. Each line that begins with `---` is a divider, which only a
comment may follow; the text between two dividers is parsed by itself, and only its first document
counts. A file may also begin with JSON: then JSON documents follow each other without a divider,
and YAML may follow a single one.

This module reads everything that kubectl reads. Text that kubectl would silently skip is a fault.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from dryrack.kinds.text import json_text, yaml_text
from dryrack.kinds.text.parsed import Fault, Parsed, RepeatedKey
from dryrack.kinds.text.source_positions import Place

_DIVIDER = re.compile(r"^---([^\n]*)\n?", re.MULTILINE)
_BLANK = re.compile(r"[^\S\n]*\n?")
# One document of JSON may be a part of YAML; two in a row are a stream of JSON.
_JSON_BEFORE_YAML_MAX = 1


class _Part(NamedTuple):
    """The text between two dividers; it is not parsed after a divider with a fault."""

    text: str
    line: int
    start: int
    fault: Fault | None = None


def documents(text: str, name: str) -> Iterator[Parsed | Fault]:
    """Return the documents and faults of a file of this name, in order."""
    if not json_text.looks_like_json(text):
        return _split(text, 0)
    results = list(json_text.documents(text))
    last = results[-1]
    if not isinstance(last, json_text.NotJson) or name.endswith(".json"):
        return iter(results)
    return iter([*results[:-1], *_after_json(text, last, len(results) - 1)])


def _after_json(text: str, fault: json_text.NotJson, before: int) -> Iterator[Parsed | Fault]:
    """Return the documents after the end of the JSON."""
    if before > _JSON_BEFORE_YAML_MAX:
        return iter([fault])
    blank = _BLANK.match(text, fault.after)
    start = blank.end() if blank else fault.after
    return _split(text[start:], text.count("\n", 0, start), start)


def _split(text: str, lines_before: int, offset: int = 0) -> Iterator[Parsed | Fault]:
    broken = 0
    for part in _parts(text, lines_before + 1):
        begin = offset + part.start
        span = (begin, min(begin + len(part.text), offset + len(text)))
        results = [part.fault] if part.fault else _documents(part)
        broken_before = broken
        for each in results:
            broken += isinstance(each, Fault) and not isinstance(each, RepeatedKey)
            yield each if isinstance(each, Fault) else replace(each, span=span)
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
            yield _Part(text[start:at], line, start, fault)
        wrong = _divider_fault(divider[1].strip(), line + text.count("\n", start, at))
        # A divider at the start of a part stays in the text, because YAML may read it otherwise.
        next_start = end if at > start or fault or wrong else at
        line += text.count("\n", start, next_start)
        start = next_start
        fault = wrong
    # kubectl adds a missing line end to the last line.
    last = text[start:]
    yield _Part(last if last.endswith("\n") else f"{last}\n", line, start, fault)


def _divider_fault(rest: str, line: int) -> Fault | None:
    if not rest or rest.startswith("#"):
        return None
    message = f"{rest!r} after ---, where kubectl reads nothing but a comment"
    return Fault(Place(line, 4), message, "put it on a separate line")
