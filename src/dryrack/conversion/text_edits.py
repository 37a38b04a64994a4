"""
Change the text of a YAML document so that it has a new value.

The text is edited at the places where the old and the new value differ; comments, order, quotes and
indentation stay everywhere else. An editor distinguishes four changes of an object: a value changes
in place; entries move under a new key (`count` under `exactly`); entries move one level up
(`basic`); entries disappear or are added. An entry that moves takes along the comments directly
above it and at its end.

`edit` reads its own result again. If that is not the new value, or if the document has anchors or
merge keys, whose text belongs to several places, the document is printed again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import yaml
from yaml import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from dryrack.kinds.text.parsed import Parsed
from dryrack.kinds.text.yaml_printing import print_block, print_flow, print_scalar
from dryrack.kinds.text.yaml_text import documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_INDENT = 2
_COMMENT = re.compile(r"(?:^|\s)(#.*)")


class Lost(NamedTuple):
    """A comment that stood in a line that is gone; the line is counted from zero."""

    line: int
    comment: str


@dataclass(frozen=True, slots=True)
class Edited:
    """The new text of a document."""

    text: str
    lost: tuple[Lost, ...] = ()
    # Why the whole document was printed again; empty if it was not.
    reprinted: str = ""


class _CannotEditError(Exception):
    """The text has a form that the editor does not change."""


def edit(text: str, old: Any, new: Any) -> Edited:
    """Return the text of a document with a new value; the text has no other document."""
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    assert root is not None, "a document without a value"
    if _has_aliases(root):
        return _reprint(text, root, new, "it has anchors and aliases")
    editor = _Editor(text, root)
    try:
        edited = editor.edit(root, old, new)
    except _CannotEditError as error:
        return _reprint(text, root, new, str(error))
    found = list(documents(edited))
    if len(found) != 1 or not isinstance(found[0], Parsed) or not same(found[0].value, new):
        return _reprint(text, root, new, "the result has another structure")
    return Edited(edited, tuple(editor.lost))


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal and of the same types."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _reprint(text: str, root: Node, new: Any, reason: str) -> Edited:
    start = text.rfind("\n", 0, root.start_mark.index) + 1
    head = text[:start]
    lost = tuple(
        Lost(number, line[line.index("#") :])
        for number, line in enumerate(text.split("\n"))
        if number >= root.start_mark.line and (line.lstrip().startswith("#") or " #" in line)
    )
    return Edited(head + print_block(new), lost[:1], reason)


def _has_aliases(root: Node) -> bool:
    """Return whether two places of a document have the same text."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            return True
        seen.add(id(node))
        if isinstance(node, MappingNode):
            for key, value in node.value:
                if key.value == "<<":
                    return True
                waiting += (key, value)
        elif isinstance(node, SequenceNode):
            waiting += node.value
    return False


@dataclass(slots=True)
class _Entry:
    """
    An entry of an object or a list.

    `lead` has the lines before it, which contain only comments or nothing; `head` is the text from
    its begin to the begin of its value; `tail` has the comment after its value. `key_length` is the
    length of the key as it is written.
    """

    key: str
    key_length: int
    lead: str
    head: str
    node: Node
    tail: str
    line: int


class _Printed(NamedTuple):
    """An entry of the result: its key, the lines before it, and its text."""

    key: str
    lead: str
    text: str


class _Editor:
    """Edits one document."""

    def __init__(self, text: str, root: Node) -> None:
        self.lost: list[Lost] = []
        self._text = text
        self._root = root
        self._indents_lists = _indents_lists(root)

    def edit(self, root: Node, old: Any, new: Any) -> str:
        """Return the whole text of the document."""
        start = root.start_mark.index
        return self._text[:start] + self._value(root, old, new, 0) + self._text[self._end(root) :]

    def _value(self, node: Node, old: Any, new: Any, shift: int) -> str:
        """Return the text of a value; its lines after the first are indented further by `shift`."""
        if same(old, new):
            return _shift(self._text[node.start_mark.index : self._end(node)], shift)
        if (
            isinstance(node, MappingNode)
            and isinstance(old, dict)
            and isinstance(new, dict)
            and new
        ):
            return self._object(node, old, new, shift)
        if (
            isinstance(node, SequenceNode)
            and isinstance(old, list)
            and isinstance(new, list)
            and new
        ):
            return self._list(node, old, new, shift)
        is_lines = isinstance(new, str) and "\n" in new
        if isinstance(node, ScalarNode) and not isinstance(new, dict | list) and not is_lines:
            return print_scalar(new, node.style)
        raise _CannotEditError("a value changes its type")

    def _object(
        self, node: MappingNode, old: dict[str, Any], new: dict[str, Any], shift: int
    ) -> str:
        entries = self._entries(node)
        if [each.key for each in entries] != list(old):
            raise _CannotEditError("its keys are no strings")
        down = _moves_down(old, new)
        up = _moves_up(old, new)
        renamed = _renames(old, new, {*down, *up})
        column = node.start_mark.column + shift
        printed: list[_Printed] = []
        lead = ""
        for entry in entries:
            key = entry.key
            before = lead + entry.lead
            lead = ""
            if key in new:
                text = self._entry(entry, old[key], new[key], shift, is_flow=bool(node.flow_style))
                printed.append(_Printed(key, _shifted_lines(before, shift), text))
            elif key in down:
                wrap = down[key]
                if all(each.key != wrap for each in printed):
                    members = [each for each in entries if down.get(each.key) == wrap]
                    outside, inside = _split_lead(before)
                    members[0].lead = inside
                    text = self._wrap(node, wrap, members, old, new[wrap], shift)
                    printed.append(_Printed(wrap, _shifted_lines(outside, shift), text))
            elif key in renamed:
                name = renamed[key]
                text = print_flow(name) + entry.head[entry.key_length :]
                value = self._text[entry.node.start_mark.index : self._end(entry.node)]
                text = _shift(text + value, shift) + entry.tail
                printed.append(_Printed(name, _shifted_lines(before, shift), text))
            elif key in up:
                printed += self._unwrap(node, entry, before, old[key], new, shift)
            else:
                self._lose(entry)
                lead = before
        trailing = _shifted_lines(lead, shift)
        self._insert(printed, new, column, is_flow=bool(node.flow_style))
        if node.flow_style:
            return self._flow(node, printed, "{}")
        return _join(printed, column) + (f"\n{trailing}".rstrip("\n") if trailing.strip() else "")

    def _entry(self, entry: _Entry, old: Any, new: Any, shift: int, *, is_flow: bool) -> str:
        """Return the text of an entry that has the same key in both values."""
        node = entry.node
        try:
            value = self._value(node, old, new, shift)
        except _CannotEditError:
            if not is_flow and not _is_short(new):
                self._lose(entry)
                column = self._column(entry) + shift
                return _print_entry(entry.key, new, column, indents_lists=self._indents_lists)
            head = entry.head[: entry.head.index(":", len(entry.key)) + 1]
            if not isinstance(node, ScalarNode):
                self._lose(entry)
            return f"{head} {print_flow(new)}{entry.tail}"
        return _shift(entry.head, shift) + value + entry.tail

    def _column(self, entry: _Entry) -> int:
        start = entry.node.start_mark.index - len(entry.head)
        return start - self._text.rfind("\n", 0, start) - 1

    def _wrap(
        self,
        node: MappingNode,
        key: str,
        members: Sequence[_Entry],
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        shift: int,
    ) -> str:
        """Return an entry with a new key that contains entries of the old object."""
        is_flow = bool(node.flow_style)
        inner_shift = shift if is_flow else shift + _INDENT
        inside = [
            _Printed(
                each.key,
                _shifted_lines(each.lead, inner_shift),
                self._entry(each, old[each.key], new[each.key], inner_shift, is_flow=is_flow),
            )
            for each in members
        ]
        column = node.start_mark.column + inner_shift
        self._insert(inside, new, column, is_flow=is_flow)
        if is_flow:
            return f"{key}: {{{', '.join(each.text for each in inside)}}}"
        return f"{key}:\n" + " " * column + _join(inside, column)

    def _unwrap(
        self,
        node: MappingNode,
        entry: _Entry,
        lead: str,
        old: Mapping[str, Any],
        new: Mapping[str, Any],
        shift: int,
    ) -> Iterator[_Printed]:
        """Yield the entries that move out of an entry."""
        inner = entry.node
        assert isinstance(inner, MappingNode), "an entry that contains entries"
        is_flow = bool(node.flow_style)
        dedent = 0 if inner.flow_style else inner.start_mark.column - node.start_mark.column
        first, _, below = entry.head.partition("\n")
        comment = _COMMENT.search(first) or _COMMENT.search(entry.tail)
        if comment and not is_flow:
            lead += " " * node.start_mark.column + f"{comment[1]}\n"
        # The comments between the key and its first entry.
        lead += _shifted_lines(below[: below.rfind("\n") + 1], -dedent)
        for each in self._entries(inner):
            if each.key in new:
                inner_shift = shift - dedent
                text = self._entry(each, old[each.key], new[each.key], inner_shift, is_flow=is_flow)
                before = _shifted_lines(lead, shift) + _shifted_lines(each.lead, inner_shift)
                yield _Printed(each.key, before, text)
                lead = ""
            else:
                self._lose(each)

    def _insert(
        self,
        printed: list[_Printed],
        new: Mapping[str, Any],
        column: int,
        *,
        is_flow: bool,
    ) -> None:
        """Add the new entries, each after the one that it follows in the new value."""
        there = {each.key for each in printed}
        after = -1
        for key, value in new.items():
            if key in there:
                after = next(at for at, each in enumerate(printed) if each.key == key)
                continue
            if is_flow:
                text = f"{print_flow(key)}: {print_flow(value)}"
            else:
                text = _print_entry(key, value, column, indents_lists=self._indents_lists)
            lead = ""
            after += 1
            if after == 0 and printed:
                # The comments above the first entry stay above the new one.
                lead = printed[0].lead
                printed[0] = printed[0]._replace(lead="")
            printed.insert(after, _Printed(key, lead, text))

    def _list(self, node: SequenceNode, old: list[Any], new: list[Any], shift: int) -> str:
        entries = self._items(node)
        if len(entries) != len(old):
            raise _CannotEditError("its lists have another form")
        partners = _partners(old, new)
        column = node.start_mark.column + shift
        printed: list[_Printed] = []
        is_flow = bool(node.flow_style)
        kept = set(partners) - {None}
        lead = ""
        leads = {}
        for index, entry in enumerate(entries):
            if index in kept:
                leads[index] = lead + entry.lead
                lead = ""
            else:
                self._lose(entry)
                lead += entry.lead
        for value, partner in zip(new, partners, strict=True):
            if partner is not None:
                entry = entries[partner]
                try:
                    text = self._value(entry.node, old[partner], value, shift)
                    text = _shift(entry.head, shift) + text + entry.tail
                except _CannotEditError:
                    text = self._print_item(value, column, is_flow=is_flow)
                printed.append(_Printed("", _shifted_lines(leads[partner], shift), text))
            else:
                printed.append(_Printed("", "", self._print_item(value, column, is_flow=is_flow)))
        if is_flow:
            return self._flow(node, printed, "[]")
        return _join(printed, column)

    def _print_item(self, value: Any, column: int, *, is_flow: bool) -> str:
        if is_flow:
            return print_flow(value)
        text = print_block([value], indents_lists=False).rstrip("\n")
        return _shift(text, column)

    def _flow(self, node: Node, printed: Sequence[_Printed], brackets: str) -> str:
        span = self._text[node.start_mark.index : node.end_mark.index]
        if "\n" in span:
            raise _CannotEditError("it has braces over several lines")
        inside = span[1:-1]
        left = inside[: len(inside) - len(inside.lstrip())]
        right = inside[len(inside.rstrip()) :] if inside.strip() else ""
        return brackets[0] + left + ", ".join(each.text for each in printed) + right + brackets[1]

    def _lose(self, entry: _Entry) -> None:
        """Remember the comments in the text of an entry that is gone."""
        text = entry.tail
        line = entry.line
        if not isinstance(entry.node, ScalarNode):
            start = entry.node.start_mark.index
            text = entry.head + self._text[start : self._end(entry.node)] + entry.tail
        for number, each in enumerate(text.split("\n")):
            found = _COMMENT.search(each)
            if found:
                self.lost.append(Lost(line + number, found[1]))

    def _entries(self, node: MappingNode) -> list[_Entry]:
        before = node.start_mark.index
        entries = []
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise _CannotEditError("a key is no string")
            begin = key.start_mark.index
            end = self._end(value)
            # A value that is empty begins and ends at its key.
            start = max(value.start_mark.index, key.end_mark.index)
            head = self._text[begin:start]
            entries.append(
                _Entry(
                    key.value,
                    key.end_mark.index - begin,
                    "" if node.flow_style else self._lead(before, begin),
                    head,
                    value,
                    "" if node.flow_style else self._tail(value),
                    key.start_mark.line,
                )
            )
            before = end
        return entries

    def _items(self, node: SequenceNode) -> list[_Entry]:
        entries = []
        before = node.start_mark.index
        for value in node.value:
            start = value.start_mark.index
            end = self._end(value)
            if node.flow_style:
                entries.append(_Entry("", 0, "", "", value, "", value.start_mark.line))
                before = end
                continue
            between = self._text[before:start]
            offset = _last_dash(between)
            if offset < 0:
                raise _CannotEditError("a list has an empty item")
            begin = before + offset
            head = self._text[begin:start]
            if "\n" in head:
                raise _CannotEditError("an item begins below its dash")
            lead = self._lead(before, begin)
            tail = self._tail(value)
            entries.append(_Entry("", 0, lead, head, value, tail, value.start_mark.line))
            before = end
        return entries

    def _lead(self, before: int, begin: int) -> str:
        """Return the whole lines between the end of an entry and the begin of the next."""
        end_of_line = self._text.find("\n", before, begin)
        start_of_line = self._text.rfind("\n", before, begin) + 1
        return self._text[end_of_line + 1 : start_of_line] if end_of_line >= 0 else ""

    def _tail(self, node: Node) -> str:
        """Return the comment after a value; collections in block style contain theirs."""
        if isinstance(node, MappingNode | SequenceNode) and not node.flow_style:
            return ""
        end = self._end(node)
        line_end = self._text.find("\n", end)
        return self._text[end : len(self._text) if line_end < 0 else line_end]

    def _end(self, node: Node) -> int:
        """Return the offset where the text of a value ends, before the end of the line."""
        if isinstance(node, ScalarNode):
            if node.style not in ("|", ">"):
                return int(node.end_mark.index)
            text = self._text[node.start_mark.index : node.end_mark.index]
            header = text.partition("\n")[0]
            kept = text.removesuffix("\n") if "+" in header else text.rstrip()
            return int(node.start_mark.index) + len(kept)
        if not isinstance(node, CollectionNode) or node.flow_style or not node.value:
            return int(node.end_mark.index)
        last = node.value[-1][1] if isinstance(node, MappingNode) else node.value[-1]
        end = self._end(last)
        line_end = self._text.find("\n", end)
        return len(self._text) if line_end < 0 else line_end


def _moves_down(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Return the keys of the old object that are under a new key, by that key."""
    moves = {}
    for key, value in new.items():
        if key in old or not isinstance(value, dict):
            continue
        for inner in value:
            if inner in old and inner not in new and inner not in moves:
                moves[inner] = key
    return moves


def _moves_up(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    """Return the keys whose entries are in the object itself now."""
    moved = set()
    for key, value in old.items():
        if key in new or not isinstance(value, dict) or not value:
            continue
        inside = [inner for inner in value if inner in new and inner not in old]
        if len(inside) == len(value) or any(same(value[each], new[each]) for each in inside):
            moved.add(key)
    return moved


def _renames(old: Mapping[str, Any], new: Mapping[str, Any], moved: set[str]) -> dict[str, str]:
    """Return the new keys of entries that have the same value under another key."""
    added = [key for key in new if key not in old]
    renamed: dict[str, str] = {}
    for key in old:
        if key in new or key in moved:
            continue
        name = next((each for each in added if same(old[key], new[each])), None)
        if name is not None:
            renamed[key] = name
            added.remove(name)
    return renamed


def _partners(old: list[Any], new: list[Any]) -> list[int | None]:
    """Return for each item of the new list the item of the old one that it was, in order."""
    if len(old) == len(new):
        return list(range(len(old)))
    partners: list[int | None] = []
    start = 0
    for value in new:
        candidates = range(start, len(old))
        found = next((at for at in candidates if same(old[at], value)), None)
        if found is None:
            name = _name_of(value)
            found = next((at for at in candidates if name and _name_of(old[at]) == name), None)
        partners.append(found)
        if found is not None:
            start = found + 1
    return partners


def _name_of(value: Any) -> str:
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""


def _is_short(value: Any) -> bool:
    """Return whether a value is best written in the line of its key."""
    if not isinstance(value, dict | list) or not value:
        return not (isinstance(value, str) and "\n" in value)
    return isinstance(value, dict) and len(value) == 1 and _is_short(*value.values())


def _print_entry(key: str, value: Any, column: int, *, indents_lists: bool) -> str:
    text = print_block({key: value}, indents_lists=indents_lists).rstrip("\n")
    return _shift(text, column)


def _join(printed: Sequence[_Printed], column: int) -> str:
    """Return entries as lines; the first one begins where the caller is."""
    first, *rest = printed
    text = first.text
    if first.lead.strip():
        text = first.lead.lstrip() + " " * column + text
    for each in rest:
        text += "\n" + each.lead + " " * column + each.text
    return text


def _split_lead(lead: str) -> tuple[str, str]:
    """Return the lines above an entry in two parts: the comments directly above are the second."""
    lines = lead.splitlines(keepends=True)
    at = len(lines)
    while at and lines[at - 1].strip():
        at -= 1
    return "".join(lines[:at]), "".join(lines[at:])


def _shift(text: str, shift: int) -> str:
    """Return text whose lines after the first are indented further by `shift`."""
    first, found, rest = text.partition("\n")
    return first + found + _shifted_lines(rest, shift) if found else text


def _shifted_lines(text: str, shift: int) -> str:
    if not shift or not text:
        return text
    lines = text.split("\n")
    if shift > 0:
        return "\n".join(" " * shift + line if line else line for line in lines)
    return "\n".join(line[min(-shift, len(line) - len(line.lstrip(" "))) :] for line in lines)


def _last_dash(text: str) -> int:
    """Return the offset of the dash of an item in the text between two items; -1 without one."""
    offset = 0
    found = -1
    for line in text.split("\n"):
        stripped = line.lstrip()
        if stripped.startswith("-") and not stripped.startswith("---"):
            found = offset + len(line) - len(stripped)
        offset += len(line) + 1
    return found


def _indents_lists(root: Node) -> bool:
    """Return whether the document indents lists further than their keys."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, SequenceNode):
            waiting += node.value
        elif isinstance(node, MappingNode):
            for key, value in node.value:
                if isinstance(value, SequenceNode) and not value.flow_style:
                    return bool(value.start_mark.column > key.start_mark.column)
                waiting.append(value)
    return False
