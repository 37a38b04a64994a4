"""
How deeply a regular expression nests, as Go counts it.

Go refuses a pattern whose tree is higher than a thousand, RE2 only one with so many parentheses.
The tree has a node for each group that captures, each repetition, each sequence and each choice;
characters in a row are one node, and so are characters to choose from. A sequence within a
sequence, or a choice within a choice, is part of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

HEIGHT_MAX = 1000
# Each level needs a parenthesis, and makes three nodes at most.
_PARENTHESES_MIN = HEIGHT_MAX // 3 - 1

_PIECE = re.compile(
    r"(?P<quoted>\\Q.*?(?:\\E|$))"
    r"|(?P<set>\\[pPx]\{[^}]*\}|\\[pP].|\\[dDsSwWbBAz]|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|[.^$])"
    r"|(?P<flags>\(\?[a-zA-Z-]*\))"
    r"|(?P<group>\(\?[a-zA-Z-]*:)"
    r"|(?P<capture>\(\?P?<\w+>|\()"
    r"|(?P<close>\))"
    r"|(?P<choice>\|)"
    r"|(?P<repetition>[*+?]\??|\{\d+(?:,\d*)?\}\??)"
    r"|(?P<character>\\.|.)",
    re.DOTALL,
)


class _Form(Enum):
    CHARACTERS = 0
    SET = 1
    SEQUENCE = 2
    CHOICE = 3
    OTHER = 4


@dataclass(frozen=True, slots=True)
class _Tree:
    form: _Form
    height: int


@dataclass(slots=True)
class _Open:
    """A group whose end has not come."""

    captures: bool
    choices: list[_Tree] = field(default_factory=list)
    items: list[_Tree] = field(default_factory=list)


def nests_too_deeply(pattern: str) -> bool:
    """Whether Go refuses a pattern that is otherwise right."""
    return pattern.count("(") >= _PARENTHESES_MIN and _height(pattern) > HEIGHT_MAX


def _height(pattern: str) -> int:
    groups = [_Open(captures=False)]
    for piece in _PIECE.finditer(pattern):
        match piece.lastgroup:
            case "group" | "capture":
                groups.append(_Open(captures=piece.lastgroup == "capture"))
            case "close" if len(groups) > 1:
                tree = _closed(groups.pop())
                groups[-1].items.append(tree)
            case "choice":
                groups[-1].choices.append(_sequence(groups[-1].items))
                groups[-1].items = []
            case "repetition" if groups[-1].items:
                last = groups[-1].items.pop()
                groups[-1].items.append(_Tree(_Form.OTHER, last.height + 1))
            case "character" | "quoted":
                groups[-1].items.append(_Tree(_Form.CHARACTERS, 1))
            case "set":
                groups[-1].items.append(_Tree(_Form.SET, 1))
    while len(groups) > 1:
        tree = _closed(groups.pop())
        groups[-1].items.append(tree)
    return _closed(groups[0]).height


def _closed(group: _Open) -> _Tree:
    tree = _choice([*group.choices, _sequence(group.items)])
    return _Tree(_Form.OTHER, tree.height + 1) if group.captures else tree


def _sequence(items: list[_Tree]) -> _Tree:
    if all(item.form is _Form.CHARACTERS for item in items):
        # One character can be part of a set, several cannot.
        return _Tree(_Form.SET if len(items) == 1 else _Form.CHARACTERS, 1)
    return items[0] if len(items) == 1 else _joined(_Form.SEQUENCE, items)


def _choice(choices: list[_Tree]) -> _Tree:
    if len(choices) == 1:
        return choices[0]
    if all(choice.form is _Form.SET for choice in choices):
        return _Tree(_Form.SET, 1)
    return _joined(_Form.CHOICE, choices)


def _joined(form: _Form, trees: list[_Tree]) -> _Tree:
    return _Tree(form, 1 + max(tree.height - (tree.form is form) for tree in trees))
