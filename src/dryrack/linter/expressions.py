"""
The attributes that an expression reads of a device, and corrections of misspelled ones.

The tree is searched for the few forms in which people write selectors:
`device.attributes["domain"].name`, the same with `["name"]`, and `device.driver`, compared
with a text. Other forms yield no hint.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from dryrack.cel import Issues, parse
from dryrack.cel.device_reads import (
    COMPARISONS,
    EQUALITY,
    KINDS,
    ORDERINGS,
    Read,
    comparisons_of,
    nodes_of,
    read_of,
    reads_of,
)
from dryrack.cel.parsing.ast import Call, ListLiteral, Literal
from dryrack.hardware.names import driver_name, qualified, quoted, suggestion
from dryrack.kinds.validation.parts import EXPRESSION_BYTES_MAX
from dryrack.kinds.validation.problems import byte_length

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from dryrack.cel.parsing.ast import Expr
    from dryrack.linter.selection import Selected

_MISSING = re.compile(r"no such key: ([^\s(]+)")


def missing_key(message: str) -> str | None:
    """The key that was not there, if that is what the error says."""
    found = _MISSING.search(message)
    return found.group(1) if found else None


def texts_ordered(expression: str) -> tuple[str, ...]:
    """Return the texts than which an attribute has to be less or greater."""
    found = _comparisons(expression, ORDERINGS)
    return tuple(text for read, text in found if read.kind == "attributes")


def domains_named(expression: str) -> tuple[str, ...]:
    """Return the names of drivers that the expression tests or reads attributes of."""
    drivers = [text for read, text in _comparisons(expression) if read.kind == "driver"]
    drivers += _drivers_listed(expression)
    domains = [read.domain for read in _reads(expression) if read.kind != "driver"]
    return tuple(dict.fromkeys(each for each in (*drivers, *domains) if each))


def _drivers_listed(expression: str) -> Iterator[str]:
    """Yield the names in the list of each `device.driver in ["a", "b"]`."""
    for node in _nodes(expression):
        if isinstance(node, Call) and node.function == "@in":
            tested, names = node.args
            read = read_of(tested)
            if read is not None and read.kind == "driver" and isinstance(names, ListLiteral):
                literals = (each for each in names.elements if isinstance(each, Literal))
                yield from (each.value for each in literals if isinstance(each.value, str))


def guard(expression: str, key: str, everything: Selected) -> str:
    """Return advice on how the expression can skip devices without `key`."""
    read = next((each for each in _reads(expression) if each.name == key), None)
    if read is None:
        return f"first test that {key!r} exists, with `in` or has()"
    if not is_driver_name(read.domain):
        return valid_driver(read.domain, everything.drivers)
    known = everything.names_of(read.kind)
    full = f"{read.domain}/{read.name}"
    if full in known:
        domain = f'device.{read.kind}["{read.domain}"]'
        return f'first test that it exists: "{key}" in {domain} && {domain}.{key} …'
    other = KINDS[1 - KINDS.index(read.kind)]
    if full in everything.names_of(other):
        return f"the devices have it in {other}; use {Read(other, read.domain, read.name)}"
    return suggestion(full, known) or f"no device has {full!r}; publish it, or remove the test"


def is_driver_name(name: str) -> bool:
    """Return whether the API allows the name for a driver, apart from its case."""
    return driver_name(name) == name.lower()


def valid_driver(name: str, drivers: Collection[str]) -> str:
    """Return advice that replaces a name that is not valid for a driver."""
    return suggestion(name, drivers) or f"write {driver_name(name)!r}"


def hint(expressions: Sequence[str], everything: Selected) -> str:
    """Return advice for the first test for a value that no device has."""
    for expression in expressions:
        for read, text in _comparisons(expression, EQUALITY):
            values = _values(everything, read)
            if values and text not in values:
                near = suggestion(text, values)
                return f"no device has {text!r}; {near or 'use one of: ' + quoted(values)}"
    return ""


def visible_names(expression: str) -> frozenset[str] | None:
    """
    Return the names of attributes and capacities by which the expression can select devices.

    None if it reads a device in another way than by name, such as in a loop over attributes.
    """
    tree = _tree(expression)
    reads = () if tree is None else reads_of(tree)
    return None if reads is None else frozenset(read.name for read in reads)


@lru_cache(maxsize=1024)
def _tree(expression: str) -> Expr | None:
    if byte_length(expression) > EXPRESSION_BYTES_MAX:
        return None
    parsed = parse(expression)
    return None if isinstance(parsed, Issues) else parsed


def _nodes(expression: str) -> Iterator[Expr]:
    tree = _tree(expression)
    return iter(()) if tree is None else nodes_of(tree)


def _reads(expression: str) -> Iterator[Read]:
    return (read for node in _nodes(expression) if (read := read_of(node)) is not None)


def _comparisons(
    expression: str, functions: frozenset[str] = COMPARISONS
) -> Iterator[tuple[Read, str]]:
    tree = _tree(expression)
    for read, literal in comparisons_of(tree, functions) if tree is not None else ():
        assert isinstance(literal.value, str), "comparisons use strings"
        yield read, literal.value


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
