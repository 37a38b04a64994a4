"""
Random expressions over the device environment, made by type.

`ExpressionMaker.make(type)` answers an expression that, mostly, has that type: a constant, a
part of the device, a variable in scope, a call of any declared function that can return the
type, an operator, or a macro. Mostly: now and then a part is of a wrong type, hidden behind
`dyn` or not, so that errors of the checker and of the evaluation are exercised too.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tests.cel import generate_literals as literals
from tests.cel.generate_devices import DOMAINS, NAMES, USUAL
from tests.cel.pieces import Piece, piece
from tests.cel.signatures import Signatures, substituted

from dryrack.cel.checking import types as t

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from random import Random

    from dryrack.cel.declarations import Overload

SCALARS = (t.BOOL, t.INT, t.UINT, t.DOUBLE, t.STRING, t.BYTES)
SPECIAL = (t.DURATION, t.TIMESTAMP, t.QUANTITY, t.SEMVER, t.IP, t.CIDR, t.URL, t.FORMAT, t.NULL)

_KEYS = (t.STRING,) * 4 + (t.INT,) * 2 + (t.UINT, t.BOOL)
_KINDS = {t.BOOL: "bool", t.INT: "int", t.STRING: "string", t.SEMVER: "version"}

_MADE_FROM_STRING = {
    t.DURATION: "duration",
    t.TIMESTAMP: "timestamp",
    t.QUANTITY: "quantity",
    t.SEMVER: "semver",
    t.IP: "ip",
    t.CIDR: "cidr",
    t.URL: "url",
}

# Messages that the language itself knows; no selector needs them, every selector may have them.
_MESSAGES = {
    t.INT: ("google.protobuf.Int64Value{value: 1}", "google.protobuf.Int32Value{}"),
    t.STRING: ("google.protobuf.StringValue{value: 'fish'}",),
    t.BOOL: ("google.protobuf.BoolValue{value: true}",),
    t.DURATION: ("google.protobuf.Duration{seconds: 5}",),
}


class ExpressionMaker:
    def __init__(self, chance: Random, device: Mapping[str, Any], signatures: Signatures) -> None:
        self._chance = chance
        self._device = device
        self._signatures = signatures
        self._scope: list[tuple[str, t.Type]] = []
        self._variables = 0
        self._uniform = False
        self._disguises = 0.03

    def selector(self) -> Piece:
        """A whole expression: mostly a bool, at times what only an attribute may be."""
        roll = self._chance.random()
        if roll < 0.03:
            return self.attribute()
        if roll < 0.05:
            return self.make(self._any_type(2), 3)
        if roll < 0.2:
            return self._conjunction()
        if roll < 0.6:
            return self._exercise(t.BOOL, self._chance.choice((1, 1, 2)))
        return self.make(t.BOOL, self._chance.choice((1, 2, 2, 3, 3, 4)))

    def _conjunction(self) -> Piece:
        parts: list[str | Piece] = []
        for _ in range(self._chance.randint(2, 6)):
            parts += [self.make(t.BOOL, 2), self._chance.choice((" && ", " || ", " && "))]
        return piece(t.BOOL, *parts[:-1])

    def make(self, of: t.Type, depth: int) -> Piece:
        roll = self._chance.random()
        if depth >= 0 and not self._uniform and roll < self._disguises:
            return self._disguised(of, depth)
        if depth <= 0 or roll < 0.12:
            return self.leaf(of)
        return self._chance.choice(self._ways(of))(of, depth)

    def _disguised(self, of: t.Type, depth: int) -> Piece:
        """Behind `dyn`, the right type or a wrong one; at times a wrong one in the open."""
        roll = self._chance.random()
        if roll < 0.07:
            return self.make(self._any_type(1), depth - 1)
        inner = of if roll < 0.7 else self._any_type(1)
        return piece(of, "dyn(", self.make(inner, depth - 1), ")")

    def _ways(self, of: t.Type) -> tuple[Callable[[t.Type, int], Piece], ...]:
        anything = (self._call,) * 6 + (self._from_container, self._bind, self._conditional)
        match of.kind:
            case t.Kind.BOOL:
                tests = (self._test,) * 4 + (self._exercise,) * 4
                return (*anything, *(self._logic,) * 3, *tests, self._presence)
            case t.Kind.LIST:
                return (*anything, self._list, self._list, self._collected, self._collected)
            case t.Kind.MAP:
                return (self._map, self._map, self._collected_map, *anything)
            case t.Kind.OPAQUE if of.name == "optional_type":
                return (self._optional, self._optional, self._optional, self._call)
            case t.Kind.DYN:
                return (self._dynamic,)
            case _:
                return (*anything, self._from_optional)

    def leaf(self, of: t.Type) -> Piece:
        fitting = (of,) if self._uniform else (of, t.DYN)
        known = [name for name, type_ in self._scope if type_ in fitting]
        roll = self._chance.random()
        if known and roll < 0.6:
            return piece(of, self._chance.choice(known))
        if roll < 0.65 and (part := self._of_device(of)):
            return part
        return self.constant(of)

    # -- leaves ----------------------------------------------------------------------------

    def _of_device(self, of: t.Type) -> Piece | None:
        match of:
            case t.QUANTITY:
                return piece(of, f"device.capacity{self._lookup('capacity')}")
            case t.BOOL if self._chance.random() < 0.15:
                return piece(of, "device.allowMultipleAllocations")
            case t.STRING if self._chance.random() < 0.3:
                return piece(of, "device.driver")
            case t.BOOL | t.INT | t.STRING | t.SEMVER | t.DYN if not self._uniform:
                return self._attribute_of_type(of)
            case _:
                return self._map_of_device(of)

    def _attribute_of_type(self, of: t.Type) -> Piece | None:
        if not self._fitting_attributes(of) and self._chance.random() < 0.8:
            return None
        return piece(of, self._attribute_text(of))

    def _map_of_device(self, of: t.Type) -> Piece | None:
        if of.kind is not t.Kind.MAP or of.parameters[0] != t.STRING:
            return None
        value = of.parameters[1]
        if value.kind is t.Kind.MAP and value.parameters[1] in (t.DYN, t.QUANTITY):
            return piece(of, _whole_map(value.parameters[1]))
        if value in (t.DYN, t.QUANTITY):
            part = "attributes" if value == t.DYN else "capacity"
            return piece(of, f"device.{part}[{self._domain()}]")
        return None

    def attribute(self) -> Piece:
        return piece(t.DYN, self._attribute_text(t.DYN))

    def _attribute_text(self, of: t.Type) -> str:
        """Mostly an attribute that the device has and that has the type."""
        fitting = self._fitting_attributes(of)
        if fitting and self._chance.random() < 0.85:
            return "device.attributes" + self._path(self._chance.choice(fitting))
        usual = [name for name in NAMES if USUAL.get(name) == _KINDS.get(of)] or list(NAMES)
        return f"device.attributes[{self._domain()}].{self._chance.choice(usual)}"

    def _fitting_attributes(self, of: t.Type) -> list[str]:
        kind = _KINDS.get(of)
        attributes: Mapping[str, Any] = self._device.get("attributes", {})
        return [name for name, value in attributes.items() if kind is None or kind in value]

    def _lookup(self, part: str) -> str:
        names = list(self._device.get(part, {}))
        if names and self._chance.random() < 0.8:
            return self._path(self._chance.choice(names))
        return f"[{self._domain()}].{self._chance.choice(NAMES)}"

    def _path(self, name: str) -> str:
        domain, _, identifier = name.rpartition("/")
        domain = domain or self._device["driver"]
        if self._chance.random() < 0.25:
            return f"['{domain}']['{identifier}']"
        return f'["{domain}"].{identifier}'

    def _domain(self) -> str:
        if self._chance.random() < 0.6:
            return f'"{self._device["driver"]}"'
        return f'"{self._chance.choice((*DOMAINS, "nowhere"))}"'

    def constant(self, of: t.Type) -> Piece:
        match of.kind:
            case t.Kind.LIST:
                return self._list(of, 0)
            case t.Kind.MAP:
                return self._map(of, 0)
            case t.Kind.DYN | t.Kind.ANY | t.Kind.TYPE_PARAM:
                return self.constant(self._chance.choice(SCALARS))
            case t.Kind.OPAQUE if of.name == "optional_type":
                return piece(of, "optional.of(", self.leaf(of.parameters[0]), ")")
            case _:
                return piece(of, self._constant_text(of))

    def _constant_text(self, of: t.Type) -> str:
        chance = self._chance
        plain: dict[t.Type, Callable[[], str]] = {
            t.BOOL: lambda: chance.choice(("true", "false")),
            t.INT: lambda: literals.integer(chance),
            t.UINT: lambda: literals.number(chance, literals.UINTS),
            t.DOUBLE: lambda: literals.number(chance, literals.DOUBLES),
            t.STRING: lambda: literals.string(chance),
            t.BYTES: lambda: literals.bytes_literal(chance),
            t.NULL: lambda: "null",
            t.DEVICE: lambda: "device",
            t.FORMAT: lambda: f"format.{chance.choice(literals.FORMAT_NAMES.good)}()",
        }
        if of in _MESSAGES and chance.random() < 0.002:
            return chance.choice(_MESSAGES[of])
        if of in plain:
            return plain[of]()
        if of in _MADE_FROM_STRING:
            function = _MADE_FROM_STRING[of]
            return f"{function}({literals.string(chance, literals.pool_of(function))})"
        if of.kind is t.Kind.TYPE:
            return chance.choice(
                ("int", "string", "type(1)", "type(null)", "list", "net.IP", "bool")
            )
        return f"dyn({literals.integer(chance)})"

    # -- calls -----------------------------------------------------------------------------

    def _call(self, of: t.Type, depth: int) -> Piece:
        if of == t.list_of(t.INT) and self._chance.random() < 0.1:
            return self._range_of_ints(of)
        candidates = self._signatures.returning(of)
        if not candidates:
            return self.leaf(of)
        name, overloads = self._chance.choice(candidates)
        overload, bound = self._chance.choice(overloads)
        return self._call_of(name, overload, self._bound(overload, bound), depth)

    def _exercise(self, of: t.Type, depth: int) -> Piece:
        """A call of any function at all, and a question about what it returns."""
        name, overload = self._chance.choice(self._signatures.every())
        with self._misled():
            call = self._call_of(name, overload, self._bound(overload, {}), depth)
        roll = self._chance.random()
        if call.type == of:
            return call
        if call.type.kind in (t.Kind.LIST, t.Kind.MAP) and roll < 0.4:
            return piece(of, *_primary(call), ".size() ", f"== {self._chance.randint(0, 3)}")
        sign = self._chance.choice((" == ", " != "))
        return piece(of, "(", call, sign, self.make(call.type, min(depth - 1, 1)), ")")

    @contextmanager
    def _misled(self) -> Iterator[None]:
        """At times, arguments whose types only the evaluation finds wrong."""
        before = self._disguises
        self._disguises = 0.4 if self._chance.random() < 0.15 else before
        yield
        self._disguises = before

    def _bound(self, overload: Overload, bound: Mapping[str, t.Type]) -> Mapping[str, t.Type]:
        """Every type parameter with a type, those that are free with a random one."""
        free = (name for name in overload.type_params if name not in bound)
        return {**bound, **{name: self._any_type(1) for name in free}}

    def _call_of(
        self, name: str, overload: Overload, bound: Mapping[str, t.Type], depth: int
    ) -> Piece:
        pool_at = 1 if overload.member or name == "matches" else 0
        arguments = [
            self._argument(
                substituted(a, bound), depth - 1, literals.pool_of(name) if i == pool_at else None
            )
            for i, a in enumerate(overload.args)
        ]
        of = substituted(overload.result, bound)
        return self._written(of, name, arguments, member=overload.member)

    def _argument(self, of: t.Type, depth: int, pool: str | None) -> Piece:
        if of == t.STRING and pool and self._chance.random() < 0.7:
            return piece(of, literals.string(self._chance, pool))
        return self.make(of, depth)

    def _written(self, of: t.Type, name: str, arguments: list[Piece], *, member: bool) -> Piece:
        if sign := literals.INFIX.get(name):
            left, right = arguments
            if self._chance.random() < 0.1:
                return piece(of, left, f" {sign} ", right)
            return piece(of, "(", left, f" {sign} ", right, ")")
        if sign := literals.PREFIX.get(name):
            return piece(of, f"{sign}(", arguments[0], ")")
        if not member:
            return piece(of, f"{name}(", *_comma_separated(arguments), ")")
        if name == "format" and self._chance.random() < 0.8:
            template = literals.string(self._chance, "template")
            return piece(of, template, ".format(", *_comma_separated(arguments[1:]), ")")
        rest = _comma_separated(arguments[1:])
        return piece(of, *_primary(arguments[0]), f".{name}(", *rest, ")")

    def _range_of_ints(self, of: t.Type) -> Piece:
        # Never a random number: both sides would really build the list.
        length = self._chance.choice(("0", "1", "3", "10", "-1", "size('abc')", "100"))
        return piece(of, f"lists.range({length})")

    # -- operators -------------------------------------------------------------------------

    def _logic(self, of: t.Type, depth: int) -> Piece:
        if self._chance.random() < 0.2:
            return piece(of, "!", *_primary(self.make(of, depth - 1)))
        sign = self._chance.choice((" && ", " || "))
        return piece(of, "(", self.make(of, depth - 1), sign, self.make(of, depth - 1), ")")

    def _conditional(self, of: t.Type, depth: int) -> Piece:
        parts = (self.make(t.BOOL, depth - 1), self.make(of, depth - 1), self.make(of, depth - 1))
        return piece(of, "(", parts[0], " ? ", parts[1], " : ", parts[2], ")")

    def _from_container(self, of: t.Type, depth: int) -> Piece:
        match self._chance.randrange(4):
            case 0:
                inner = self.make(t.list_of(of), depth - 1)
                return piece(of, *_primary(inner), "[", self._index(), "]")
            case 1:
                key = self._chance.choice((t.STRING, t.INT, t.UINT, t.BOOL))
                inner = self.make(t.map_of(key, of), depth - 1)
                return piece(of, *_primary(inner), "[", self.make(key, 1), "]")
            case 2:
                return piece(of, '{"f": ', self.make(of, depth - 1), "}.f")
            case _:
                inner = self.make(t.map_of(t.STRING, of), depth - 1)
                return piece(of, *_primary(inner), self._chance.choice((".f", ".missing")))

    def _index(self) -> Piece:
        return piece(
            t.INT, self._chance.choice(("0", "0", "0", "1", "-1", "5", "0u", "0.0", "0.5"))
        )

    def _from_optional(self, of: t.Type, depth: int) -> Piece:
        inner = self.make(t.optional_of(of), depth - 1)
        if self._chance.random() < 0.3:
            return piece(of, *_primary(inner), ".value()")
        return piece(of, *_primary(inner), ".orValue(", self.make(of, depth - 1), ")")

    def _presence(self, of: t.Type, depth: int) -> Piece:
        match self._chance.randrange(4):
            case 0:
                name = self._chance.choice(NAMES)
                return piece(of, f"has(device.attributes[{self._domain()}].{name})")
            case 1:
                inner = self.make(t.map_of(t.STRING, t.INT), depth - 1)
                return piece(of, "has(", *_primary(inner), ".f)")
            case 2:
                name = f"'{self._chance.choice(NAMES)}'"
                return piece(of, f"({name} in device.attributes[{self._domain()}])")
            case _:
                where = f"device.attributes[{self._domain()}]"
                return piece(of, f"{where}.?{self._chance.choice(NAMES)}.hasValue()")

    def _dynamic(self, of: t.Type, depth: int) -> Piece:
        if self._chance.random() < 0.3:
            return self.attribute()
        return piece(of, "dyn(", self.make(self._any_type(1), depth - 1), ")")

    # -- containers ------------------------------------------------------------------------

    def _list(self, of: t.Type, depth: int) -> Piece:
        count = self._chance.choice((0, 1, 1, 2, 2, 3))
        with self._elements(count):
            made = [self._element(of.parameters[0], depth - 1) for _ in range(count)]
        return piece(of, "[", *_comma_separated(made), "]")

    def _element(self, of: t.Type, depth: int) -> Piece:
        if self._chance.random() < 0.03:
            return piece(of, "?", self.make(t.optional_of(of), depth))
        return self.make(of, depth)

    @contextmanager
    def _elements(self, count: int) -> Iterator[None]:
        """The elements of a literal must be of one type: usually no `dyn` among several."""
        before = self._uniform
        self._uniform = before or (count > 1 and self._chance.random() < 0.93)
        yield
        self._uniform = before

    def _map(self, of: t.Type, depth: int) -> Piece:
        count = self._chance.choice((0, 1, 1, 1, 1, 2))
        with self._elements(count):
            made = [self._entry(of, depth - 1) for _ in range(count)]
        return piece(of, "{", *_comma_separated(made), "}")

    def _entry(self, of: t.Type, depth: int) -> Piece:
        key, value = of.parameters
        name = self._key(key, depth)
        if self._chance.random() < 0.03:
            return piece(value, "?", name, ": ", self.make(t.optional_of(value), depth))
        return piece(value, name, ": ", self.make(value, depth))

    def _key(self, of: t.Type, depth: int) -> Piece:
        if of == t.STRING and self._chance.random() < 0.6:
            return piece(of, self._chance.choice(('"f"', '"g"', '"fish"')))
        return self.make(of, min(depth - 1, 1))

    def _optional(self, of: t.Type, depth: int) -> Piece:
        value = of.parameters[0]
        match self._chance.randrange(9):
            case 0:
                return piece(of, "optional.none()")
            case 8:
                inner = self.make(t.optional_of(t.list_of(value)), depth - 1)
                index = self._chance.choice(("[?", "["))
                return piece(of, *_primary(inner), index, self._index(), "]")
            case 1:
                return piece(of, "optional.ofNonZeroValue(", self.make(value, depth - 1), ")")
            case 2:
                inner = self.make(t.list_of(value), depth - 1)
                return piece(of, *_primary(inner), "[?", self._index(), "]")
            case 3:
                inner = self.make(t.map_of(t.STRING, value), depth - 1)
                return piece(of, *_primary(inner), "[?", self._key(t.STRING, depth), "]")
            case 4:
                inner = self.make(t.map_of(t.STRING, value), depth - 1)
                return piece(of, *_primary(inner), ".?f")
            case 5:
                return self._optional_macro(of, depth, "optMap", value)
            case 6:
                return self._optional_macro(of, depth, "optFlatMap", of)
            case _:
                return piece(of, "optional.of(", self.make(value, depth - 1), ")")

    def _optional_macro(self, of: t.Type, depth: int, macro: str, result: t.Type) -> Piece:
        element = self._any_type(1)
        inner = self.make(t.optional_of(element), depth - 1)
        with self._variable(element) as name:
            body = self.make(result, depth - 1)
        return piece(of, *_primary(inner), f".{macro}({name}, ", body, ")")

    # -- macros ----------------------------------------------------------------------------

    def _bind(self, of: t.Type, depth: int) -> Piece:
        bound = self._any_type(2)
        if self._chance.random() < 0.3:
            bound = t.map_of(t.STRING, t.DYN)
        value = self.make(bound, depth - 1)
        with self._variable(bound) as name:
            body = self.make(of, depth - 1)
        return piece(of, f"cel.bind({name}, ", value, ", ", body, ")")

    def _test(self, of: t.Type, depth: int) -> Piece:
        over = self._range_type()
        inner = self.make(over, depth - 1)
        macro = self._chance.choice(("all", "exists", "exists_one"))
        if self._chance.random() < 0.3:
            macro = "existsOne" if macro == "exists_one" else macro
            with self._pair(over) as (key, value):
                body = self.make(t.BOOL, depth - 1)
            return piece(of, *_primary(inner), f".{macro}({key}, {value}, ", body, ")")
        with self._variable(over.parameters[0]) as name:
            body = self.make(t.BOOL, depth - 1)
        return piece(of, *_primary(inner), f".{macro}({name}, ", body, ")")

    def _collected(self, of: t.Type, depth: int) -> Piece:
        match self._chance.randrange(4):
            case 0:
                return self._filtered(of, depth)
            case 1:
                return self._transformed(of, depth, "transformList", of.parameters[0])
            case 2:
                return self._sorted(of, depth)
            case _:
                return self._mapped(of, depth)

    def _mapped(self, of: t.Type, depth: int) -> Piece:
        over = self._range_type()
        inner = self.make(over, depth - 1)
        with self._variable(over.parameters[0]) as name:
            condition = self._maybe_condition(depth)
            body = self.make(of.parameters[0], depth - 1)
        return piece(of, *_primary(inner), f".map({name}, ", *condition, body, ")")

    def _maybe_condition(self, depth: int) -> tuple[str | Piece, ...]:
        if self._chance.random() < 0.7:
            return ()
        return (self.make(t.BOOL, depth - 1), ", ")

    def _filtered(self, of: t.Type, depth: int) -> Piece:
        inner = self.make(of, depth - 1)
        with self._variable(of.parameters[0]) as name:
            body = self.make(t.BOOL, depth - 1)
        return piece(of, *_primary(inner), f".filter({name}, ", body, ")")

    def _sorted(self, of: t.Type, depth: int) -> Piece:
        inner = self.make(of, depth - 1)
        key = self._chance.choice((t.INT, t.STRING, t.DOUBLE, t.BOOL, t.DURATION))
        with self._variable(of.parameters[0]) as name:
            body = self.make(key, min(depth - 1, 2))
        return piece(of, *_primary(inner), f".sortBy({name}, ", body, ")")

    def _transformed(self, of: t.Type, depth: int, macro: str, result: t.Type) -> Piece:
        over = self._range_type()
        inner = self.make(over, depth - 1)
        with self._pair(over) as (key, value):
            condition = self._maybe_condition(depth)
            body = self.make(result, depth - 1)
        variables = f"{key}, {value}, "
        return piece(of, *_primary(inner), f".{macro}({variables}", *condition, body, ")")

    def _collected_map(self, of: t.Type, depth: int) -> Piece:
        if self._chance.random() < 0.5:
            return self._transformed(of, depth, "transformMap", of.parameters[1])
        return self._transformed(of, depth, "transformMapEntry", of)

    # -- types and scope -------------------------------------------------------------------

    def _range_type(self) -> t.Type:
        element = self._any_type(1)
        roll = self._chance.random()
        if roll < 0.06:
            return t.map_of(t.STRING, t.DYN)
        if roll < 0.08:
            return t.map_of(t.STRING, t.map_of(t.STRING, self._chance.choice((t.DYN, t.QUANTITY))))
        if roll < 0.16:
            return t.map_of(self._chance.choice((t.STRING, t.INT)), element)
        return t.list_of(element)

    def _any_type(self, nesting: int) -> t.Type:
        roll = self._chance.random()
        if roll < 0.62 or nesting <= 0:
            return self._chance.choice((*SCALARS, t.INT, t.STRING, t.STRING))
        if roll < 0.78:
            return self._chance.choice(SPECIAL)
        if roll < 0.82:
            return t.DYN
        inner = self._any_type(nesting - 1)
        if roll < 0.92:
            return t.list_of(inner)
        if roll < 0.97:
            return t.map_of(self._chance.choice(_KEYS), inner)
        return t.optional_of(inner)

    @contextmanager
    def _variable(self, of: t.Type) -> Iterator[str]:
        self._variables += 1
        name = f"v{self._variables}" if self._chance.random() < 0.95 else "v"
        self._scope.append((name, of))
        yield name
        self._scope.pop()

    @contextmanager
    def _pair(self, over: t.Type) -> Iterator[tuple[str, str]]:
        key = over.parameters[0] if over.kind is t.Kind.MAP else t.INT
        with self._variable(key) as first, self._variable(over.parameters[-1]) as second:
            yield first, second


def _whole_map(value: t.Type) -> str:
    return "device.attributes" if value == t.DYN else "device.capacity"


def _comma_separated(pieces: list[Piece]) -> tuple[str | Piece, ...]:
    parts: list[str | Piece] = []
    for part in pieces:
        parts += [", ", part]
    return tuple(parts[1:])


def _primary(of: Piece) -> tuple[str | Piece, ...]:
    """Return an operand for a dot or a bracket: in parentheses, unless it has a head already."""
    head = of.text[:1]
    bare = (head.isalpha() or head in "[{\"'") and " " not in of.text
    return (of,) if bare else ("(", of, ")")
