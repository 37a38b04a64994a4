"""
The notation in which functions are declared, and what it is read into.

A table names a function on a line of its own and, indented below it, its overloads in the order
in which a call tries them: an id, then `(arguments) -> result`, with the type of the receiver
and a dot before the parenthesis if the function is called on it. A single capital letter is a
type parameter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from dryrack.cel.checking import types as t


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function; for a member, the receiver is the first of `args`."""

    id: str
    args: tuple[t.Type, ...]
    result: t.Type
    member: bool
    type_params: tuple[str, ...]


_SIMPLE = {
    str(known): known
    for known in (
        t.DYN, t.ANY, t.BOOL, t.INT, t.UINT, t.DOUBLE, t.STRING, t.BYTES, t.NULL, t.DURATION,
        t.TIMESTAMP, t.QUANTITY, t.SEMVER, t.IP, t.CIDR, t.URL, t.FORMAT, t.DEVICE,
    )
}  # fmt: skip

_OVERLOAD = re.compile(
    r"(?P<id>\S+) +(?:(?P<receiver>[^ ].*)\.)?\((?P<args>.*)\) -> (?P<result>.+)"
)
_WORD = re.compile(r"[\w.]+|[(),]")


def read_table(table: str) -> dict[str, tuple[Overload, ...]]:
    """Read a table into the overloads of each function that it names."""
    functions: dict[str, tuple[Overload, ...]] = {}
    name = ""
    for line in table.strip("\n").splitlines():
        if line.startswith(" "):
            functions[name] += (_read_overload(line.strip()),)
        else:
            name = line
            functions.setdefault(name, ())
    return functions


def _read_overload(line: str) -> Overload:
    match = _OVERLOAD.fullmatch(line)
    assert match is not None, f"not an overload: {line!r}"
    args = _read_types(match["args"])
    if match["receiver"]:
        args = (*_read_types(match["receiver"]), *args)
    result = _read_types(match["result"])[0]
    return Overload(
        id=match["id"],
        args=args,
        result=result,
        member=bool(match["receiver"]),
        type_params=_parameters_in((*args, result)),
    )


def _read_types(text: str) -> tuple[t.Type, ...]:
    words = _WORD.findall(text)
    words.reverse()
    return _pop_types(words)


def _pop_types(words: list[str]) -> tuple[t.Type, ...]:
    read: list[t.Type] = []
    while words and words[-1] != ")":
        name = words.pop()
        if name == ",":
            continue
        parameters: tuple[t.Type, ...] = ()
        if words and words[-1] == "(":
            words.pop()
            parameters = _pop_types(words)
            words.pop()
        read.append(_named(name, parameters))
    return tuple(read)


def _named(name: str, parameters: tuple[t.Type, ...]) -> t.Type:
    if name == "list":
        return t.list_of(*parameters)
    if name == "map":
        return t.map_of(*parameters)
    if name == "optional_type":
        return t.optional_of(*parameters)
    if name == "type":
        return t.type_of(*parameters)
    if len(name) == 1:
        return t.type_param(name)
    return _SIMPLE.get(name) or t.struct(name)


def _parameters_in(types: tuple[t.Type, ...]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for declared in types:
        if declared.kind is t.Kind.TYPE_PARAM:
            found[declared.name] = None
        found.update(dict.fromkeys(_parameters_in(declared.parameters)))
    return tuple(found)
