"""
YAML text to builtins and places, one event at a time.

libyaml's parser is driven event by event and documents are built from that, not by its composer:
the composer recurses in C, and a file of brackets would kill the process. So a hostile file ends
as a fault, at once.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import yaml
from yaml import DocumentEndEvent, DocumentStartEvent
from yaml._yaml import CParser

from dryrack.kinds.text.parsed import Fault, FaultError, Parsed, Repeats, SyntaxFault
from dryrack.kinds.text.source_positions import Place
from dryrack.kinds.text.yaml_objects import Builder, Rules, mark_of

# A file with more syntax errors is not YAML; further faults would not help.
ERRORS_MAX = 20

_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
# The message of libyaml for a document that does not begin with `---`.
_NO_START = "did not find expected <document start>"
# The text is split at each `---`, so none follows the directives.
_DIRECTIVES = "directives such as %YAML are not for Kubernetes, which finds no document after them"
_CONTROL = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def documents(
    text: str,
    repeats: Repeats = Repeats.FAULTY,
    *,
    values_max: int | None = None,
    lines_before: int = 0,
) -> Iterator[Parsed | Fault]:
    """
    Every document of the text, and every fault, in order.

    A document with more values than `values_max` is a fault as well, found when it is one.
    The text may be a part of another one, which has `lines_before` it.

    After a fault that ends a document reading goes on with the next `---`, so that one bad
    document does not hide the faults of the others. A document with a fault is not delivered.
    """
    start = 0
    for _ in range(ERRORS_MAX):
        reader = _Reader(text, start, Rules(repeats, values_max, lines_before))
        yield from reader.read()
        if reader.resume_at is None:
            return
        start = reader.resume_at
    yield too_many_faults(lines_before + text.count("\n", 0, start) + 1)


def too_many_faults(line: int) -> Fault:
    """Return the fault that nothing was read from a line on."""
    return Fault(Place(line, 1), f"more than {ERRORS_MAX} faults; the rest was not read")


class _Reader:
    """Read from one point of the text to its end, or to a fault that ends a document."""

    def __init__(self, text: str, start: int, rules: Rules) -> None:
        self.resume_at: int | None = None
        self._text = text[start:] if start else text
        self._start = start
        self._line = rules.lines_before + text.count("\n", 0, start)
        self._document_start = 0
        self._has_ended = False
        self._rules = rules
        self._builder = Builder(self._line, rules)

    def read(self) -> Iterator[Parsed | Fault]:
        parser = CParser(self._text)
        try:
            while (event := parser.get_event()) is not None:
                if isinstance(event, DocumentEndEvent):
                    yield from self._builder.finish()
                    self._has_ended = True
                else:
                    self._take(event)
        except yaml.YAMLError as error:
            fault = _syntax_fault(error, self._text, self._line)
            yield from self._stop(_trailing_fault(fault) if self._has_ended else fault)
        except FaultError as error:
            yield from self._stop(error.fault)
        finally:
            parser.dispose()

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, DocumentStartEvent):
            self._document_start = mark_of(event).index
            self._has_ended = False
            self._builder = Builder(self._line, self._rules)
        else:
            self._builder.take(event)

    def _stop(self, fault: Fault) -> Iterator[Fault]:
        yield from self._builder.faults
        yield fault
        line = fault.place.line - self._line - 1
        offset = 0
        for _ in range(line):
            offset = self._text.find("\n", offset) + 1
        # The fault may be on the line where the next document begins.
        found = _DOCUMENT.search(self._text, max(offset, self._document_start + 1))
        self.resume_at = self._start + found.start() if found else None


def _syntax_fault(error: yaml.YAMLError, text: str, line: int) -> Fault:
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return _character_fault(text, line, str(error))
    mark = error.problem_mark
    place = Place(line + mark.line + 1, mark.column + 1)
    parts = [str(part) for part in (error.context, error.problem) if part]
    tab = text[mark.index : mark.index + 1] == "\t"
    began = error.context_mark
    if error.problem == _NO_START:
        return SyntaxFault(place, _DIRECTIVES, "remove the lines that begin with %", _NO_START)
    return SyntaxFault(
        place,
        ": ".join(parts),
        "indent with spaces, not with tabs" if tab else "",
        problem=str(error.problem),
        began=Place(line + began.line + 1, began.column + 1) if began else None,
        is_in_token=isinstance(error, yaml.scanner.ScannerError),
    )


def _trailing_fault(fault: Fault) -> Fault:
    """Return the fault of text after the end of a document, which kubectl would skip."""
    message = "text after the end of the document, which Kubernetes would not read"
    return replace(fault, message=message, fix="put a line with --- before it, or remove it")


def _character_fault(text: str, line: int, reason: str) -> Fault:
    found = _CONTROL.search(text)
    if found is None:
        return Fault(Place(line + 1, 1), reason)
    offset = found.start()
    place = Place(line + text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
    return Fault(place, f"control character {found[0]!r} is not allowed in YAML")
