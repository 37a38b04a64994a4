"""
One document of YAML, put together from the events of its parser.

An alias is expanded only after its cost is known, and nothing here recurses. A key of an object
is what it is to kubectl: the text that it becomes in JSON. `<<` counts where it stands: it takes
the place of fields above it, and those below take the place of its own.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import yaml
from yaml import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from yaml._yaml import Mark

from dryrack.kinds import scalars
from dryrack.kinds.text.parsed import (
    DEPTH_MAX,
    Fault,
    FaultError,
    Parsed,
    Repeated,
    RepeatedKey,
    Repeats,
    UnknownAnchor,
)
from dryrack.kinds.text.source_positions import Spot, Tree, place_of, spot

# Values that aliases may add to a document. Manifests share a few dozen; a bomb, billions.
ALIASED_MAX = 100_000
# The limit for trusted text.
ALL = 2**63

_MERGE = "<<"
_MERGE_TAG = "tag:yaml.org,2002:merge"
# With one of these another object begins, which is what files that were joined look like.
_OBJECT_KEYS = ("apiVersion", "kind")
_DIVIDE = "remove one of the two, or put a line with --- before it if another object begins here"
_NO_WORD = "a key must be a word, not a list or an object"


@dataclass(frozen=True, slots=True)
class Rules:
    """The requirements for a document besides its syntax."""

    repeats: Repeats
    values_max: int | None
    lines_before: int


# What the keys of an object mean that are not the words they become: of `1` and `'1'` alike
# becomes "1". A key without an entry means its own text.
Meanings: TypeAlias = dict[str, tuple[scalars.Plain, ...]]


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
    """The meaning of the key, if the object has it already."""
    merges: bool = False
    """True if the key is `<<`."""
    merged: set[str] = field(default_factory=set)
    """The keys that came from another object by `<<`."""
    meanings: Meanings = field(default_factory=dict)

    @property
    def wants_key(self) -> bool:
        return self.key is None and isinstance(self.value, dict)


class _Done(NamedTuple):
    """A finished value; with an anchor, an alias may repeat it."""

    value: Any
    spot: Spot
    tree: Tree | None = None
    size: int = 1


class Builder:
    """Builds one document from events."""

    def __init__(self, line: int, rules: Rules) -> None:
        self.faults: list[Fault] = []
        self._line = line
        self._repeats = rules.repeats
        self._values_left = ALL if rules.values_max is None else rules.values_max
        self._repeated: list[Repeated] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, _Done | None] = {}
        self._aliased = 0
        # After the first key of a second object, further repeated keys are expected.
        self._runs_on = False
        self._result: Parsed | None = None

    def finish(self) -> Iterator[Parsed | Fault]:
        """Yield the document or its faults."""
        faults = self.faults
        self.faults = []
        if faults:
            yield from faults
        elif self._result is not None:
            yield self._result

    def take(self, event: yaml.Event) -> None:
        try:
            self._take(event)
        except scalars.ScalarError as error:
            place = place_of(self._spot(event))
            raise FaultError(Fault(place, str(error), error.fix)) from None

    def _take(self, event: yaml.Event) -> None:
        match event:
            case ScalarEvent():
                at = self._spot(event)
                self._values_left -= 1
                if self._values_left < 0:
                    raise FaultError(Fault(place_of(at), "too many values"))
                meaning = _value_of(event)
                if event.anchor:
                    self._anchors[event.anchor] = _Done(meaning, at)
                if self._open and self._open[-1].wants_key:
                    self._set_key(
                        meaning,
                        at,
                        merges=event.value == _MERGE
                        and (event.implicit[0] or event.tag == _MERGE_TAG),
                    )
                else:
                    self._attach(_Done(scalars.json_value(meaning), at))
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
        mark = mark_of(event)
        return spot(self._line + mark.line + 1, mark.column + 1)

    def _set_key(self, meaning: scalars.Plain, at: Spot, *, merges: bool) -> None:
        parent = self._open[-1]
        key = scalars.key(meaning)
        parent.key = key
        parent.key_spot = at
        parent.key_again = None
        parent.merges = merges
        if merges:
            return
        if key in parent.tree.spots:
            before = parent.meanings.get(key, (key,))
            is_known = any(type(each) is type(meaning) and each == meaning for each in before)
            if not is_known:
                parent.meanings[key] = (*before, meaning)
            if self._repeats is Repeats.LAST_COUNTS:
                parent.key_again = meaning if is_known else None
            elif key not in parent.merged and not self._runs_on:
                self._runs_on = key in _OBJECT_KEYS and len(self._open) == 1
                fault = _repeated_key_fault(parent, key, None if is_known else meaning)
                self.faults.append(replace(fault, fix=_DIVIDE) if self._runs_on else fault)
            parent.merged.discard(key)
        elif not isinstance(meaning, str):
            parent.meanings[key] = (meaning,)

    def _begin(self, event: yaml.CollectionStartEvent, value: list[Any] | dict[str, Any]) -> None:
        at = self._spot(event)
        if self._open and self._open[-1].wants_key:
            raise FaultError(Fault(place_of(at), _NO_WORD))
        if len(self._open) >= DEPTH_MAX:
            raise FaultError(Fault(place_of(at), f"nested more than {DEPTH_MAX} levels deep"))
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append(_Open(value, Tree(at), event.anchor))

    def _end(self) -> None:
        done = self._open.pop()
        value = _Done(done.value, done.tree.spot, done.tree, done.size)
        if done.anchor:
            self._anchors[done.anchor] = value
        self._attach(value)

    def _alias(self, event: AliasEvent) -> None:
        place = place_of(self._spot(event))
        if event.anchor not in self._anchors:
            message = f"alias *{event.anchor} has no anchor before it"
            raise FaultError(UnknownAnchor(place, message, anchor=event.anchor or ""))
        target = self._anchors[event.anchor]
        if target is None:
            raise FaultError(Fault(place, f"anchor &{event.anchor} contains itself"))
        if self._open[-1].wants_key:
            at = self._spot(event)
            if target.tree is not None:
                raise FaultError(Fault(place_of(at), _NO_WORD))
            self._set_key(target.value, at, merges=False)
            return
        self._aliased += target.size
        if self._aliased > ALIASED_MAX:
            message = f"aliases would add more than {ALIASED_MAX} values"
            raise FaultError(Fault(place, message, "write the values out"))
        if target.tree is None:
            self._attach(target._replace(value=scalars.json_value(target.value)))
        else:
            # A copy, so that a change in one place of the document changes no other place.
            self._attach(target._replace(value=copy.deepcopy(target.value)))

    def _attach(self, done: _Done) -> None:
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
        key = parent.key
        at = parent.key_spot
        assert key is not None, "a value of an object without its key"
        assert at is not None, "a key without its place"
        parent.key = parent.key_spot = None
        if parent.key_again is not None:
            self._repeated.append(Repeated(parent.key_again, place_of(done.spot)))
        if not parent.merges:
            value[key] = done.value
            _put(parent.tree, key, at, done.tree)
            return
        for source, tree in _sources(done, at):
            self._merge(parent, source, tree)

    def _merge(self, parent: _Open, source: dict[str, Any], tree: Tree) -> None:
        """Add the fields of another object that this object does not have, even above the `<<`."""
        assert isinstance(parent.value, dict), "a list has no key to merge under"
        for key in source:
            if key not in parent.value:
                parent.merged.add(key)
            elif self._repeats is Repeats.LAST_COUNTS:
                self._repeated.append(Repeated(key, place_of(tree.spots[key])))
            parent.value[key] = source[key]
            _put(parent.tree, key, tree.spots[key], tree.inner.get(key))


def _repeated_key_fault(parent: _Open, key: str, other: scalars.Plain) -> Fault:
    """Return the fault of a key that the object has twice, perhaps in two spellings."""
    assert parent.key_spot is not None, "a key without its place"
    place = place_of(parent.key_spot)
    line = place_of(parent.tree.spots[key]).line
    message = f"the key {key!r} appears twice; the first is in line {line}"
    if other is not None:
        first = parent.meanings[key][0]
        # Go takes a random one of the two.
        message = (
            f"the keys {json.dumps(first)} and {json.dumps(other)} are one key in JSON; "
            f"the first is in line {line}"
        )
    return RepeatedKey(place, message, "remove one of the two")


def _put(tree: Tree, key: str | int, at: Spot, inner: Tree | None) -> None:
    tree.spots[key] = at
    if inner is not None:
        tree.inner[key] = inner
    else:
        tree.inner.pop(key, None)


def _sources(done: _Done, at: Spot) -> list[tuple[dict[str, Any], Tree]]:
    """Return the objects that `<<` names, with their places; the first of a list comes last."""
    tree = done.tree
    if tree is not None and isinstance(done.value, dict):
        return [(done.value, tree)]
    values = done.value if isinstance(done.value, list) else [done.value]
    if tree is None or not all(isinstance(each, dict) for each in values):
        raise FaultError(Fault(place_of(at), "<< must be an object or a list of objects"))
    return [(each, tree.inner[index]) for index, each in enumerate(values)][::-1]


def mark_of(event: yaml.Event) -> Mark:
    """Return the begin of the event."""
    mark = event.start_mark
    assert isinstance(mark, Mark), "an event without its place"
    return mark


def _value_of(event: ScalarEvent) -> scalars.Plain:
    text: str = event.value
    if event.tag is not None and event.tag != "!":
        return scalars.tagged(text, event.tag)
    return scalars.plain(text) if event.style in (None, "") and event.tag is None else text
