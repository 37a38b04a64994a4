"""
Makes a case that shows a difference small enough to be understood.

Every step takes something away (a part of the expression, an attribute, a switch) and is kept
if the answers still differ in the same respect. It ends where nothing more can be taken away.
"""

from __future__ import annotations

import re
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from tests.cel.compare import Difference, our_verdict, settled
from tests.cel.pieces import exchanged, piece, ways

from dryrack.cel.checking import types as t

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.cel.compare import Asks
    from tests.cel.generate import Generated
    from tests.cel.pieces import Piece

_SIMPLEST = {
    t.BOOL: "true",
    t.INT: "1",
    t.UINT: "1u",
    t.DOUBLE: "1.0",
    t.STRING: '"a"',
    t.BYTES: 'b"a"',
    t.NULL: "null",
    t.DURATION: 'duration("1s")',
    t.TIMESTAMP: "timestamp(0)",
    t.QUANTITY: 'quantity("1")',
    t.SEMVER: 'semver("1.0.0")',
    t.IP: 'ip("::1")',
    t.CIDR: 'cidr("::/0")',
}
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
STEPS_MAX = 400


def shrunk(generated: Generated, found: Difference, oracle: Asks) -> Difference:
    """The smallest case that differs as the found one does."""
    tree = generated.expression
    for _ in range(STEPS_MAX):
        smaller = _first_that_differs(found, tree, oracle)
        if smaller is None:
            break
        found, tree = smaller
    return found


def _first_that_differs(
    found: Difference, tree: Piece, oracle: Asks
) -> tuple[Difference, Piece] | None:
    expressions = ((_with(found.case, smaller), smaller) for smaller in _smaller_trees(tree))
    cases = ((case, tree) for case in _smaller_cases(found.case))
    for case, kept in chain(islice(expressions, 3000), cases):
        ours = our_verdict(case)
        theirs = settled(oracle, case, ours)
        if theirs is None:
            continue
        smaller = Difference(found.seed, case, ours, theirs)
        if smaller.fields == found.fields:
            return smaller, kept
    return None


def _with(case: Mapping[str, Any], tree: Piece) -> dict[str, Any]:
    return {**case, "expression": tree.text}


def _smaller_trees(tree: Piece) -> Iterator[Piece]:
    length = len(tree.text)
    for way, part in ways(tree):
        for smaller in _smaller_pieces(part):
            candidate = exchanged(tree, way, smaller)
            if len(candidate.text) < length:
                yield candidate


def _smaller_pieces(part: Piece) -> Iterator[Piece]:
    if simplest := _SIMPLEST.get(part.type):
        yield piece(part.type, simplest)
    yield from (inner for _, inner in islice(ways(part), 1, None))
    for index in range(len(part.parts)):
        yield piece(part.type, *part.parts[:index], *part.parts[index + 1 :])
    if len(part.parts) == 1 and isinstance(part.parts[0], str):
        tokens = _TOKEN.findall(part.parts[0])
        for index in range(len(tokens)):
            yield piece(part.type, "".join(tokens[:index] + tokens[index + 1 :]))


def _smaller_cases(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name in ("attributes", "capacity"):
        for key in case.get(name, {}):
            rest = {k: v for k, v in case[name].items() if k != key}
            yield {**case, name: rest}
    for name in ("attributes", "capacity", "allowMultipleAllocations"):
        if name in case and not case[name]:
            yield {k: v for k, v in case.items() if k != name}
    for switch in ("newExpressions", "listTypeAttributes", "consumableCapacity"):
        if case.get(switch):
            yield {**case, switch: False}
