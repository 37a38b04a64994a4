"""
What else is wrong with a text that has syntax errors.

The reference makes a tree of what it could parse and looks at it all the same: a reserved word,
a literal out of range or a bad argument of a macro is told beside the syntax errors. What is not
there, or was given up, is a gap: nothing is said of it, but a macro may not like it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.cel import ast, literals, macros
from dryrack.cel.lexer import RESERVED_WORDS, Token
from dryrack.cel.nodes import ExpansionError, Ids, MacroNodes
from dryrack.cel.source import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# So many operations may lie below each other.
DEPTH_MAX = 250
# What is nowhere in the text.
_NOWHERE = -1


@dataclass(slots=True)
class Node:
    """
    A rule that was parsed, from its first token on, as far as it went.

    `alternative` is the one that was taken, 0 if none was.
    """

    rule: str
    start: Token
    alternative: int = 0
    parts: list[Token | Node] = field(default_factory=list)

    @property
    def is_chained(self) -> bool:
        """Whether it adds to the depth that is allowed."""
        if self.rule == "member":
            return self.alternative > 0
        return self.rule in ("expr", "relation", "calc") and len(self.parts) > 1

    def nodes(self, rule: str) -> list[Node]:
        return [part for part in self.parts if isinstance(part, Node) and part.rule == rule]

    def node(self, rule: str) -> Node | None:
        return next(iter(self.nodes(rule)), None)

    def token(self, kind: str) -> Token | None:
        tokens = (part for part in self.parts if isinstance(part, Token))
        return next((token for token in tokens if token.kind == kind), None)


class _TooDeepError(Exception):
    """Too many operations lie below each other."""


def problems_in(node: Node) -> list[Problem]:
    """What is wrong with what was understood."""
    reader = _Reader()
    try:
        reader.read(node.node("expr"))
    except _TooDeepError:
        reader.problems.append(Problem(None, "max recursion depth exceeded"))
    except ExpansionError as error:
        reader.problems.append(Problem(None, str(error)))
    return reader.problems


class _Reader:
    """Makes nodes of which only the form and the place matter."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._ids = Ids()
        self._depth = 0

    def read(self, node: Node | None) -> ast.Expr:
        if node is None:
            return self._gap(_NOWHERE)
        self._depth += node.is_chained
        if self._depth > DEPTH_MAX:
            raise _TooDeepError
        read = _READ[node.rule](self, node)
        self._depth -= node.is_chained
        return read

    def _gap(self, position: int) -> ast.Expr:
        return ast.StructLiteral(self._ids.take(), position, "", ())

    def _wrong(self, position: int, problem: str) -> ast.Expr:
        self.problems.append(Problem(position, problem))
        return self._gap(position)

    def _call(self, position: int, function: str, args: Sequence[ast.Expr]) -> ast.Expr:
        return ast.Call(self._ids.take(), position, function, tuple(args))

    # Operators.

    def _expr(self, node: Node) -> ast.Expr:
        question = node.token("?")
        first, *others = node.nodes("conditionalOr")
        condition = self.read(first)
        if question is None:
            return condition
        args = (condition, self.read(next(iter(others), None)), self.read(node.node("expr")))
        return self._call(question.position, "_?_:_", args)

    def _logic(self, node: Node) -> ast.Expr:
        terms = [self.read(part) for part in node.parts if isinstance(part, Node)]
        operators = [part for part in node.parts if isinstance(part, Token)]
        if not operators:
            return terms[0]
        # The tree is balanced: the operator in the middle is on top.
        return self._call(operators[len(operators) // 2].position, "&&", terms)

    def _binary(self, node: Node) -> ast.Expr:
        operands = [self.read(part) for part in node.parts if isinstance(part, Node)]
        operators = [part for part in node.parts if isinstance(part, Token)]
        if operators:
            return self._call(operators[0].position, operators[0].text, operands)
        return operands[0] if operands else self._gap(_NOWHERE)

    def _unary(self, node: Node) -> ast.Expr:
        if not node.alternative:
            return ast.Literal(self._ids.take(), node.start.position, "")
        operators = [part for part in node.parts if isinstance(part, Token)]
        operand = self.read(node.node("member"))
        if len(operators) % 2 == 0:
            return operand
        return self._call(operators[0].position, operators[0].text, (operand,))

    # Selections and calls.

    def _member(self, node: Node) -> ast.Expr:
        match node.alternative:
            case 1:
                return self._select(node)
            case 2:
                return self._member_call(node)
            case 3:
                return self._index(node)
            case _:
                return self.read(node.node("primary"))

    def _select(self, node: Node) -> ast.Expr:
        operand, dot = self.read(node.node("member")), node.token(".")
        name = node.node("escapeIdent")
        if dot is None or name is None:
            return self._gap(node.start.position)
        if (problem := _name_problem(name)) is not None:
            self._wrong(name.start.position, problem)
        if node.token("?") is not None:
            return self._call(dot.position, "_?._", (operand,))
        return ast.Select(self._ids.take(), dot.position, operand, "")

    def _member_call(self, node: Node) -> ast.Expr:
        target, name = self.read(node.node("member")), node.token("ident")
        if name is None:
            return self._gap(node.start.position)
        return self._called(node, name.text, target)

    def _index(self, node: Node) -> ast.Expr:
        target, opened = self.read(node.node("member")), node.token("[")
        if opened is None:
            return self._gap(node.start.position)
        return self._call(opened.position, "_[_]", (target, self.read(node.node("expr"))))

    def _called(self, node: Node, name: str, target: ast.Expr | None) -> ast.Expr:
        opened, listed = node.token("("), node.node("exprList")
        args = tuple(self.read(one) for one in listed.nodes("expr")) if listed else ()
        position = opened.position if opened else _NOWHERE
        try:
            nodes = MacroNodes(self._ids, position)
            expanded = macros.expand(nodes, name, args, target=target)
        except macros.MacroError as error:
            return self._wrong(error.position, error.problem)
        return expanded or ast.Call(self._ids.take(), position, name, args, target)

    # Primaries.

    def _primary(self, node: Node) -> ast.Expr:
        match node.alternative:
            case 1 | 2:
                return self._named(node)
            case 3:
                return self.read(node.node("expr"))
            case 4:
                return self._list(node)
            case 5:
                return self._map(node)
            case 6:
                return self._message(node)
            case _:
                return self.read(node.node("literal"))

    def _named(self, node: Node) -> ast.Expr:
        name = node.token("ident")
        if name is None:
            return self._gap(node.start.position)
        if name.text in RESERVED_WORDS:
            return self._wrong(node.start.position, f"reserved identifier: {name.text}")
        dot = "." if node.token(".") else ""
        if node.alternative == 2:
            return self._called(node, dot + name.text, None)
        return ast.Ident(self._ids.take(), name.position, dot + name.text)

    def _list(self, node: Node) -> ast.Expr:
        listed = node.node("listInit")
        items = listed.nodes("optExpr") if listed else []
        elements = tuple(self.read(item.node("expr")) for item in items)
        return ast.ListLiteral(self._ids.take(), node.start.position, elements)

    def _map(self, node: Node) -> ast.Expr:
        listed = node.node("mapInitializerList")
        if listed is not None:
            colons = [part for part in listed.parts if isinstance(part, Token) and part.kind == ":"]
            entries = zip(colons, listed.nodes("optExpr"), listed.nodes("expr"), strict=False)
            for _, key, value in entries:
                self.read(key.node("expr"))
                self.read(value)
        return ast.MapLiteral(self._ids.take(), node.start.position, ())

    def _message(self, node: Node) -> ast.Expr:
        listed = node.node("fieldInitializerList")
        if listed is not None:
            colons = [part for part in listed.parts if isinstance(part, Token) and part.kind == ":"]
            fields = zip(colons, listed.nodes("optField"), listed.nodes("expr"), strict=False)
            for _, name, value in fields:
                self._field(listed, name, value)
        opened = node.token("{")
        return self._gap(opened.position if opened else _NOWHERE)

    def _field(self, listed: Node, name: Node, value: Node) -> None:
        problem = _name_problem(name.node("escapeIdent"))
        if problem is None:
            self.read(value)
        else:
            self._wrong(listed.start.position, problem)

    def _literal(self, node: Node) -> ast.Expr:
        tokens = [part for part in node.parts if isinstance(part, Token)]
        if not tokens or tokens[-1].kind not in literals.READERS:
            return self._gap(_NOWHERE)
        written = "".join(token.text for token in tokens)
        try:
            value = literals.READERS[tokens[-1].kind](written)
        except literals.LiteralError as error:
            return self._wrong(node.start.position, str(error))
        return ast.Literal(self._ids.take(), node.start.position, value)


def _name_problem(name: Node | None) -> str | None:
    if name is None or not name.alternative:
        return "unsupported ident kind"
    return "unsupported syntax: '`'" if name.alternative == 2 else None


_READ: dict[str, Callable[[_Reader, Node], ast.Expr]] = {
    "expr": _Reader._expr,
    "conditionalOr": _Reader._logic,
    "conditionalAnd": _Reader._logic,
    "relation": _Reader._binary,
    "calc": _Reader._binary,
    "unary": _Reader._unary,
    "member": _Reader._member,
    "primary": _Reader._primary,
    "literal": _Reader._literal,
}
