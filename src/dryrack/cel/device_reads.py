"""
The attributes and capacities that an expression reads of a device.

The tree is searched for the forms in which people write selectors:
`device.attributes["domain"].name`, the same with `["name"]`, and `device.driver`. An expression
that is written in another way yields nothing, never a wrong answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from msgspec.structs import replace

from dryrack.cel.parsing import ast
from dryrack.cel.parsing.ast import Call, Expr, Ident, Literal, Select

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERINGS = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
EQUALITY = frozenset({"_==_"})
COMPARISONS = ORDERINGS | EQUALITY | {"_!=_"}
KINDS = ("attributes", "capacity")
_INDEX = "_[_]"


@dataclass(frozen=True, slots=True)
class Read:
    """`device.<kind>[domain].name`; for the driver, both are empty."""

    kind: str
    domain: str
    name: str

    def __str__(self) -> str:
        return f'device.{self.kind}["{self.domain}"].{self.name}'


def reads_of(tree: Expr) -> tuple[Read, ...] | None:
    """
    Return all attributes and capacities that the expression reads of a device.

    None if it reads a device in any other way than by name, as with a loop over attributes. The
    driver, and whether the device can be shared, are not included.
    """
    reads: dict[Read, None] = {}
    # A node, and the variables of `cel.bind` that stand for a domain there.
    pending: list[tuple[Expr, dict[str, tuple[str, str]]]] = [(tree, {})]
    while pending:
        node, bound = pending.pop()
        if isinstance(node, Ident):
            if node.name == "device" or node.name in bound:
                return None
        elif isinstance(node, ast.Comprehension):
            own = {node.iter_var, node.iter_var2, node.accu_var}
            inner = {name: domain for name, domain in bound.items() if name not in own}
            domain = _domain(node.accu_init, bound) if node.accu_var != "device" else None
            if domain is not None and _is_binding(node):
                pending.append((node.result, {**inner, node.accu_var: domain}))
            else:
                pending += [(node.iter_range, bound), (node.accu_init, bound)]
                parts = (node.loop_condition, node.loop_step, node.result)
                pending += [(part, inner) for part in parts]
        elif not _is_own_field(node):
            operand, name = _operand_and_name(node)
            domain = _domain(operand, bound) if operand is not None else None
            if domain is not None:
                reads[Read(*domain, name)] = None
            else:
                pending += [(child, bound) for child in children_of(node)]
    return tuple(reads)


def _is_binding(node: ast.Comprehension) -> bool:
    """Return whether the node is `cel.bind`, which is a loop over nothing."""
    return isinstance(node.iter_range, ast.ListLiteral) and not node.iter_range.elements


def _is_own_field(node: Expr) -> bool:
    fields = ("driver", "allowMultipleAllocations")
    return isinstance(node, Select) and node.field in fields and is_device(node.operand)


def _operand_and_name(node: Expr) -> tuple[Expr | None, str]:
    """Return the operand and the name of `x.name`, `x["name"]`, `x.?name`, and `"name" in x`."""
    if isinstance(node, Select):
        return node.operand, node.field
    if isinstance(node, Call) and node.function in (_INDEX, "_?._", "_[?_]", "@in"):
        operand, key = reversed(node.args) if node.function == "@in" else node.args
        if isinstance(key, Literal) and isinstance(key.value, str):
            return operand, key.value
    return None, ""


def _domain(node: Expr, bound: dict[str, tuple[str, str]]) -> tuple[str, str] | None:
    """Return kind and domain of `device.attributes["domain"]` or of a variable bound to it."""
    if isinstance(node, Ident):
        return bound.get(node.name)
    step = _step(node)
    if step is not None:
        of_kind, domain = step
        if isinstance(of_kind, Select) and of_kind.field in KINDS and is_device(of_kind.operand):
            return of_kind.field, domain
    return None


def nodes_of(tree: Expr) -> Iterator[Expr]:
    """Yield all nodes of a tree, a node before its parts."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(children_of(node)))


def children_of(node: Expr) -> tuple[Expr, ...]:
    """Return the parts of a node."""
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


def comparisons_of(
    tree: Expr, functions: frozenset[str] = COMPARISONS
) -> Iterator[tuple[Read, Literal]]:
    """Yield what is compared with a text, and the text."""
    for node in nodes_of(tree):
        if isinstance(node, Call) and node.function in functions:
            left, right = node.args
            for side, other in ((left, right), (right, left)):
                read = read_of(side)
                if read is not None and isinstance(other, Literal) and isinstance(other.value, str):
                    yield read, other


def read_of(node: Expr) -> Read | None:
    """Return what `node` reads of the device, if it is written in one of the usual forms."""
    if isinstance(node, Select) and node.field == "driver" and is_device(node.operand):
        return Read("driver", "", "")
    step = _step(node)
    outer = _step(step[0]) if step else None
    if step is None or outer is None:
        return None
    (_of_domain, name), (of_kind, domain) = step, outer
    if isinstance(of_kind, Select) and of_kind.field in KINDS and is_device(of_kind.operand):
        return Read(of_kind.field, domain, name)
    return None


def presence_of(node: Expr) -> Read | None:
    """Return what `"name" in device.attributes["domain"]` and `has(…)` ask for."""
    if isinstance(node, Select) and node.test_only:
        return read_of(replace(node, test_only=False))
    if isinstance(node, Call) and node.function == "@in":
        key, operand = node.args
        if isinstance(key, Literal) and isinstance(key.value, str):
            return read_of(Select(node.id, node.position, operand, key.value))
    return None


def is_device(node: Expr) -> bool:
    """Return whether the node is the variable `device`."""
    return isinstance(node, Ident) and node.name == "device"


def _step(node: Expr) -> tuple[Expr, str] | None:
    """Return the operand and the key of `operand.key` and `operand["key"]`."""
    if isinstance(node, Select) and not node.test_only:
        return node.operand, node.field
    if isinstance(node, Call) and node.function == _INDEX:
        operand, key = node.args
        if isinstance(key, Literal) and isinstance(key.value, str):
            return operand, key.value
    return None
