"""
YAML text to builtins and places, one event at a time.

libyaml's parser is driven event by event and the document is built here, not by its composer:
the composer recurses in C and a file of brackets would kill the process, and an alias is
expanded only after its cost is known. So a hostile file ends as a problem, at once.
"""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import yaml
from yaml import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml._yaml import CParser, Mark

from dryrack.kinds import scalars
from dryrack.kinds.places import Place, Places, Spot, Tree, place_of, spot

# Deeper than any Kubernetes object, and shallow enough for everybody's recursion.
DEPTH_MAX = 200
# Values that aliases may add to a document. Manifests share a few dozen; a bomb, billions.
ALIASED_MAX = 100_000
# Where nobody counts.
ALL = 2**63
# A file with more syntax errors than this is not YAML; the rest would be noise.
ERRORS_MAX = 20

_DOCUMENT = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_MERGE = "<<"
_CONTROL = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the text, where, and what would put it right."""

    place: Place
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class SyntaxFault(Fault):
    """Text that is no YAML, in the words of the parser; `began` is where that began to be so."""

    problem: str = ""
    began: Place | None = None
    is_in_token: bool = False


@dataclass(frozen=True, slots=True)
class UnknownAnchor(Fault):
    """An alias of what is not there."""

    anchor: str = ""


class Repeats(Enum):
    """What becomes of a document that says a key of an object twice."""

    FAULTY = "faulty"
    LAST_COUNTS = "last counts"
    """As Kubernetes reads it; the document tells of it."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A key that its object has already, and where the value is that counts."""

    key: scalars.Plain
    place: Place


@dataclass(frozen=True, slots=True)
class Parsed:
    """One document: its value and the places in it."""

    value: Any
    tree: Places
    repeated: tuple[Repeated, ...] = ()


class _FaultError(Exception):
    """Ends the document that is being read; never leaves this module."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def documents(
    text: str, repeats: Repeats = Repeats.FAULTY, *, values_max: int | None = None
) -> Iterator[Parsed | Fault]:
    """
    Every document of the text, and every fault, in order.

    A document with more values than `values_max` is a fault as well, found when it is one.

    After a fault that ends a document reading goes on with the next `---`, so that one bad
    document does not hide the faults of the others. A document with a fault is not delivered.
    """
    start = 0
    for _ in range(ERRORS_MAX):
        reader = _Reader(text, start, _Rules(repeats, values_max))
        yield from reader.read()
        if reader.resume_at is None:
            return
        start = reader.resume_at
    line = text.count("\n", 0, start) + 1
    yield Fault(Place(line, 1), f"more than {ERRORS_MAX} faults; the rest was not read")


@dataclass(frozen=True, slots=True)
class _Rules:
    """What is asked of a document besides its syntax."""

    repeats: Repeats
    values_max: int | None


class _Reader:
    """Reads from one point of the text to its end, or to the first fault that ends a document."""

    def __init__(self, text: str, start: int, rules: _Rules) -> None:
        self.resume_at: int | None = None
        self._text = text[start:] if start else text
        self._start = start
        self._line = text.count("\n", 0, start)
        self._document_start = 0
        self._rules = rules
        self._builder = _Builder(self._line, rules)

    def read(self) -> Iterator[Parsed | Fault]:
        parser = CParser(self._text)
        try:
            while (event := parser.get_event()) is not None:
                if isinstance(event, DocumentEndEvent):
                    yield from self._builder.finished()
                else:
                    self._take(event)
        except yaml.YAMLError as error:
            yield from self._stop(_syntax_fault(error, self._text, self._line))
        except _FaultError as error:
            yield from self._stop(error.fault)
        finally:
            parser.dispose()

    def _take(self, event: yaml.Event) -> None:
        if isinstance(event, DocumentStartEvent):
            self._document_start = _mark(event).index
            self._builder = _Builder(self._line, self._rules)
        else:
            self._builder.take(event)

    def _stop(self, fault: Fault) -> Iterator[Fault]:
        yield from self._builder.faults
        yield fault
        line = fault.place.line - self._line - 1
        offset = 0
        for _ in range(line):
            offset = self._text.find("\n", offset) + 1
        # The fault may be on the very line where the next document begins.
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
    return SyntaxFault(
        place,
        ": ".join(parts),
        "indent with spaces, not with tabs" if tab else "",
        problem=str(error.problem),
        began=Place(line + began.line + 1, began.column + 1) if began else None,
        is_in_token=isinstance(error, yaml.scanner.ScannerError),
    )


def _character_fault(text: str, line: int, reason: str) -> Fault:
    found = _CONTROL.search(text)
    if found is None:
        return Fault(Place(line + 1, 1), reason)
    offset = found.start()
    place = Place(line + text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))
    return Fault(place, f"control character {found[0]!r} is not allowed in YAML")


@dataclass(slots=True)
class _Open:
    """A list or object that is still open."""

    value: list[Any] | dict[str, Any]
    tree: Tree
    anchor: str | None
    size: int = 1
    key: str | None = None
    key_spot: Spot | None = None
    key_again: scalars.Plain = None
    """What the key means, if it is there already."""
    merged: tuple[tuple[dict[str, Any], Tree], ...] = ()

    @property
    def wants_key(self) -> bool:
        return self.key is None and isinstance(self.value, dict)


class _Done(NamedTuple):
    """A finished value; with an anchor, an alias may repeat it."""

    value: Any
    spot: Spot
    tree: Tree | None = None
    size: int = 1


class _Builder:
    """Puts one document together."""

    def __init__(self, line: int, rules: _Rules) -> None:
        self.faults: list[Fault] = []
        self._line = line
        self._repeats = rules.repeats
        self._values_left = ALL if rules.values_max is None else rules.values_max
        self._repeated: list[Repeated] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, _Done | None] = {}
        self._aliased = 0
        self._result: Parsed | None = None

    def finished(self) -> Iterator[Parsed | Fault]:
        """The document, or why there is none."""
        if self.faults:
            yield from self.faults
        elif self._result is not None:
            yield self._result

    def take(self, event: yaml.Event) -> None:
        match event:
            case ScalarEvent():
                self._scalar(event)
            case MappingStartEvent():
                self._begin(event, {})
            case SequenceStartEvent():
                self._begin(event, [])
            case MappingEndEvent() | SequenceEndEvent():
                self._end()
            case AliasEvent():
                self._alias(event)
            case _:
                pass

    def _spot(self, event: yaml.Event) -> Spot:
        mark = _mark(event)
        return spot(self._line + mark.line + 1, mark.column + 1)

    def _scalar(self, event: ScalarEvent) -> None:
        at = self._spot(event)
        self._values_left -= 1
        if self._values_left < 0:
            raise _FaultError(Fault(place_of(at), "too many values"))
        try:
            if self._open and self._open[-1].wants_key:
                self._set_key(self._open[-1], event, at)
                return
            value = scalars.json_value(_meaning(event))
        except scalars.ScalarError as error:
            raise _FaultError(Fault(place_of(at), str(error), error.fix)) from None
        self._attach(_Done(value, at), event.anchor)

    def _set_key(self, parent: _Open, event: ScalarEvent, at: Spot) -> None:
        meaning = _meaning(event)
        key = scalars.key(meaning)
        parent.key, parent.key_spot, parent.key_again = key, at, None
        if key not in parent.tree.spots or key == _MERGE:
            return
        if self._repeats is Repeats.LAST_COUNTS:
            parent.key_again = meaning
        else:
            first = place_of(parent.tree.spots[key])
            message = f"the key {key!r} is there twice; the first is in line {first.line}"
            self.faults.append(Fault(place_of(at), message, "remove one of the two"))

    def _begin(self, event: yaml.CollectionStartEvent, value: list[Any] | dict[str, Any]) -> None:
        at = self._spot(event)
        if self._open and self._open[-1].wants_key:
            raise _FaultError(Fault(place_of(at), "a key must be a word, not a list or an object"))
        if len(self._open) >= DEPTH_MAX:
            raise _FaultError(Fault(place_of(at), f"nested more than {DEPTH_MAX} levels deep"))
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append(_Open(value, Tree(at), event.anchor))

    def _end(self) -> None:
        done = self._open.pop()
        if isinstance(done.value, dict):
            _merge(done.value, done)
        self._attach(_Done(done.value, done.tree.spot, done.tree, done.size), done.anchor)

    def _alias(self, event: AliasEvent) -> None:
        place = place_of(self._spot(event))
        if event.anchor not in self._anchors:
            message = f"alias *{event.anchor} has no anchor before it"
            raise _FaultError(UnknownAnchor(place, message, anchor=event.anchor or ""))
        target = self._anchors[event.anchor]
        if target is None:
            raise _FaultError(Fault(place, f"anchor &{event.anchor} contains itself"))
        if self._open[-1].wants_key:
            raise _FaultError(Fault(place, "an alias may not be a key"))
        self._aliased += target.size
        if self._aliased > ALIASED_MAX:
            message = f"aliases would add more than {ALIASED_MAX} values"
            raise _FaultError(Fault(place, message, "write the values out"))
        # A copy, so that changing one place of the document never changes another.
        self._attach(target._replace(value=copy.deepcopy(target.value)), None)

    def _attach(self, done: _Done, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = done
        if not self._open:
            tree = done.tree or Tree(done.spot)
            self._result = Parsed(done.value, tree, tuple(self._repeated))
            return
        parent = self._open[-1]
        parent.size += done.size
        if isinstance(parent.value, list):
            _put(parent.tree, len(parent.value), done.spot, done.tree)
            parent.value.append(done.value)
        else:
            self._attach_field(parent, parent.value, done)

    def _attach_field(self, parent: _Open, value: dict[str, Any], done: _Done) -> None:
        key, at = parent.key, parent.key_spot
        assert key is not None, "a value of an object without its key"
        assert at is not None, "a key without its place"
        parent.key = parent.key_spot = None
        if parent.key_again is not None:
            self._repeated.append(Repeated(parent.key_again, place_of(done.spot)))
        if key != _MERGE:
            value[key] = done.value
            _put(parent.tree, key, at, done.tree)
        else:
            parent.merged = (*parent.merged, *_sources(done, at))


def _put(tree: Tree, key: str | int, at: Spot, inner: Tree | None) -> None:
    tree.spots[key] = at
    if inner is not None:
        tree.inner[key] = inner
    else:
        tree.inner.pop(key, None)


def _sources(done: _Done, at: Spot) -> list[tuple[dict[str, Any], Tree]]:
    """The objects that `<<` names, each with its places."""
    tree = done.tree
    if tree is not None and isinstance(done.value, dict):
        return [(done.value, tree)]
    values = done.value if isinstance(done.value, list) else [done.value]
    if tree is None or not all(isinstance(each, dict) for each in values):
        raise _FaultError(Fault(place_of(at), "<< must be an object or a list of objects"))
    return [(each, tree.inner[index]) for index, each in enumerate(values)]


def _mark(event: yaml.Event) -> Mark:
    mark = event.start_mark
    assert isinstance(mark, Mark), "an event without its place"
    return mark


def _merge(value: dict[str, Any], done: _Open) -> None:
    """Fill in the fields of merged objects: what is written out wins, then the earlier one."""
    for source, tree in done.merged:
        for key in source:
            if key not in value:
                value[key] = source[key]
                _put(done.tree, key, tree.spots[key], tree.inner.get(key))


def _meaning(event: ScalarEvent) -> scalars.Plain:
    text: str = event.value
    if event.tag is not None and event.tag != "!":
        return scalars.tagged(text, event.tag)
    return scalars.plain(text) if event.style in (None, "") and event.tag is None else text
