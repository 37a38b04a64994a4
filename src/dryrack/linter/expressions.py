"""
What an expression reads of a device, and what it was probably meant to read.

The tree is searched for the few forms in which people write selectors:
`device.attributes["domain"].name`, the same with `["name"]`, and `device.driver`, compared
with a text. Whatever is written otherwise yields no hint, never a wrong one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from dryrack.cel import Issues, parse
from dryrack.cel.parsing import ast
from dryrack.cel.parsing.ast import Call, Expr, Ident, Literal, Select
from dryrack.hardware.names import qualified, quoted, suggestion
from dryrack.kinds.validation.parts import EXPRESSION_BYTES_MAX
from dryrack.kinds.validation.problems import byte_length

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.linter.selection import Selected

_MISSING = re.compile(r"no such key: ([^\s(]+)")
_COMPARISONS = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_INDEX = "_[_]"
_KINDS = ("attributes", "capacity")
# Fields of a device that every shape keeps.
_OWN_FIELDS = ("driver", "allowMultipleAllocations")


@dataclass(frozen=True, slots=True)
class Read:
    """`device.<kind>[domain].name`; for the driver, both are empty."""

    kind: str
    domain: str
    name: str

    def __str__(self) -> str:
        return f'device.{self.kind}["{self.domain}"].{self.name}'


def missing_key(message: str) -> str | None:
    """The key that was not there, if that is what the error says."""
    found = _MISSING.search(message)
    return found.group(1) if found else None


def texts_compared(expression: str) -> tuple[str, ...]:
    """The texts that attributes are compared with."""
    return tuple(text for read, text in _comparisons(expression) if read.kind == "attributes")


def guard(expression: str, key: str, everything: Selected) -> str:
    """How to write the expression so that a device without `key` is passed over."""
    read = next((each for each in _reads(expression) if each.name == key), None)
    if read is None:
        return f"ask first whether {key!r} is there, with `in` or has()"
    known = everything.names_of(read.kind)
    full = f"{read.domain}/{read.name}"
    if full in known:
        domain = f'device.{read.kind}["{read.domain}"]'
        return f'guard it: "{key}" in {domain} && {domain}.{key} …'
    other = _KINDS[1 - _KINDS.index(read.kind)]
    if full in everything.names_of(other):
        return f"it is in {other}; write {Read(other, read.domain, read.name)}"
    return suggestion(full, known) or f"no device has {full!r}; publish it, or remove the test"


def hint(expressions: Sequence[str], everything: Selected) -> str:
    """The first text that is compared with something that never has that value."""
    for expression in expressions:
        for read, text in _comparisons(expression):
            values = _values(everything, read)
            if values and text not in values:
                near = suggestion(text, values)
                return f"{text!r} does not occur; {near or 'there are ' + quoted(values)}"
    return ""


def visible_names(expression: str) -> frozenset[str] | None:
    """
    The names of attributes and capacities that the expression can tell apart devices by.

    None if it looks at a device in any other way than by name, as by a loop over attributes.
    """
    names: set[str] = set()
    known: set[int] = set()
    for node in _nodes(expression):
        read = _read(node) or _presence(node)
        if read is not None or _is_own_field(node):
            names.add(read.name if read else "")
            known.update(inner.id for inner in _inside(node))
        elif isinstance(node, Ident) and node.name == "device" and node.id not in known:
            return None
    return frozenset(names)


def _inside(node: Expr) -> Iterator[Expr]:
    pending = [node]
    while pending:
        inner = pending.pop()
        yield inner
        pending.extend(_children(inner))


@lru_cache(maxsize=1024)
def _tree(expression: str) -> Expr | None:
    if byte_length(expression) > EXPRESSION_BYTES_MAX:
        return None
    parsed = parse(expression)
    return None if isinstance(parsed, Issues) else parsed


def _nodes(expression: str) -> Iterator[Expr]:
    tree = _tree(expression)
    pending = [tree] if tree is not None else []
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(_children(node)))


def _children(node: Expr) -> tuple[Expr, ...]:
    match node:
        case Select(operand=operand):
            return (operand,)
        case Call(args=args, target=target):
            return args if target is None else (target, *args)
        case ast.ListLiteral(elements=elements):
            return elements
        case ast.MapLiteral(entries=entries):
            return tuple(part for entry in entries for part in (entry.key, entry.value))
        case ast.StructLiteral(fields=fields):
            return tuple(field.value for field in fields)
        case ast.Comprehension():
            inside = (node.accu_init, node.loop_condition, node.loop_step, node.result)
            return (node.iter_range, *inside)
        case Literal() | Ident():
            return ()
        case _:
            assert_never(node)


def _reads(expression: str) -> Iterator[Read]:
    for node in _nodes(expression):
        read = _read(node)
        if read is not None:
            yield read


def _comparisons(expression: str) -> Iterator[tuple[Read, str]]:
    for node in _nodes(expression):
        if isinstance(node, Call) and node.function in _COMPARISONS:
            left, right = node.args
            for side, other in ((left, right), (right, left)):
                read = _read(side)
                if read is not None and isinstance(other, Literal) and isinstance(other.value, str):
                    yield read, other.value


def _read(node: Expr) -> Read | None:
    """What `node` reads of the device, if it is written in one of the usual forms."""
    if isinstance(node, Select) and node.field == "driver" and _is_device(node.operand):
        return Read("driver", "", "")
    step = _step(node)
    outer = _step(step[0]) if step else None
    if step is None or outer is None:
        return None
    (_of_domain, name), (of_kind, domain) = step, outer
    if isinstance(of_kind, Select) and of_kind.field in _KINDS and _is_device(of_kind.operand):
        return Read(of_kind.field, domain, name)
    return None


def _presence(node: Expr) -> Read | None:
    """What `"name" in device.attributes["domain"]` and `has(…)` ask for."""
    if isinstance(node, Select) and node.test_only:
        return _read(replace(node, test_only=False))
    if isinstance(node, Call) and node.function == "@in":
        key, operand = node.args
        if isinstance(key, Literal) and isinstance(key.value, str):
            return _read(Select(node.id, node.position, operand, key.value))
    return None


def _step(node: Expr) -> tuple[Expr, str] | None:
    """The operand and key of `operand.key` and `operand["key"]`."""
    if isinstance(node, Select) and not node.test_only:
        return node.operand, node.field
    if isinstance(node, Call) and node.function == _INDEX:
        operand, key = node.args
        if isinstance(key, Literal) and isinstance(key.value, str):
            return operand, key.value
    return None


def _is_own_field(node: Expr) -> bool:
    return isinstance(node, Select) and node.field in _OWN_FIELDS and _is_device(node.operand)


def _is_device(node: Expr) -> bool:
    return isinstance(node, Ident) and node.name == "device"


def _values(everything: Selected, read: Read) -> tuple[str, ...]:
    """The texts that `read` can give, on any device."""
    found: set[str] = set()
    for placed in everything.examples:
        driver = placed.entry.value.spec.driver
        if read.kind == "driver":
            found.add(driver)
            continue
        for name, attribute in placed.device.attributes.items():
            is_meant = qualified(name, driver) == f"{read.domain}/{read.name}"
            if is_meant and attribute.string_value is not None:
                found.add(attribute.string_value)
    return tuple(sorted(found))
