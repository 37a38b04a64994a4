"""
Tokens to an expression, with its macros expanded.

The grammar and its limits are those of the reference implementation: how deep rules may nest,
how deep operators and selections may chain, and that `a && b && c` becomes a balanced tree. The
first syntax error ends the parse; other errors (a reserved word, a literal out of range, a bad
argument of a macro) are collected and reported together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dryrack.cel.evaluation.nodes import ExpansionError, Ids, MacroNodes
from dryrack.cel.evaluation.trampoline import run
from dryrack.cel.parsing import ast, literals, macros
from dryrack.cel.parsing.lexer import EOF, RESERVED_WORDS, Token, syntax_error, tokenize
from dryrack.cel.parsing.source import Issues, Problem, report
from dryrack.kinds.releases import CEL, DEFAULT_RELEASE

if TYPE_CHECKING:
    from dryrack.cel.evaluation.trampoline import Steps
    from dryrack.kinds.releases import CelBehaviour

CODE_POINTS_MAX = 100_000
DEPTH_MAX = 250


@dataclass(frozen=True, slots=True)
class _Operator:
    function: str
    precedence: int


# What an expression can begin with.
_STARTS = frozenset(
    (*"[{(.-!", "true", "false", "null", "float", "int", "uint", "string", "bytes", "ident")
)
_OPERANDS = _STARTS - {"-", "!"}
_OR, _AND, _RELATION, _SUM, _PRODUCT = range(1, 6)
_FIELD_NAMES = ("ident", "escaped")
_FIELD_STARTS = frozenset((*_FIELD_NAMES, "?"))
_ITEM_STARTS = _STARTS | {"?"}
_ESCAPED = "unsupported syntax: '`'"
_GOING_DEEPER = frozenset((".", "["))
_ENDS = frozenset((",", "]", "}", ")", ":"))
_COMPOUND = ("ident", "(", "[", "{", ".")
_OPERATORS = {
    "||": _Operator("_||_", _OR),
    "&&": _Operator("_&&_", _AND),
    **{op: _Operator(f"_{op}_", _RELATION) for op in ("<", "<=", ">", ">=", "==", "!=")},
    "in": _Operator("@in", _RELATION),
    **{op: _Operator(f"_{op}_", _SUM) for op in "+-"},
    **{op: _Operator(f"_{op}_", _PRODUCT) for op in "*/%"},
}


class _Depth(NamedTuple):
    """The number of times that each recursive rule is entered above this point."""

    expr: int = 0
    relation: int = 0
    calc: int = 0


@dataclass(slots=True)
class _Part:
    """A parsed piece: the node, and how many chained operations lie below each other in it."""

    expr: ast.Expr
    height: int


@dataclass(slots=True)
class _Chain:
    """`a && b && c` while it grows; balanced when it ends."""

    function: str
    terms: list[_Part]
    operators: list[tuple[int, int]]


class _Pending(NamedTuple):
    operator: _Operator
    token: Token
    id: int


_Operand: TypeAlias = _Part | _Chain


class _SyntaxError(Exception):
    """
    The tokens are not an expression: the next one is not among those expected.

    After a `-` that is neither an operator nor a sign, nothing is expected.
    """

    def __init__(self, *expected: str) -> None:
        super().__init__()
        self.expected = expected


class _TooDeepError(Exception):
    """A rule is inside itself too often."""


def parse(text: str, behaviour: CelBehaviour = CEL[DEFAULT_RELEASE]) -> ast.Expr | Issues:
    """Return the parsed expression, or all that is wrong with its form."""
    if len(text) > CODE_POINTS_MAX:
        size = f"size: {len(text)}, limit {CODE_POINTS_MAX}"
        problem = Problem(None, f"expression code point size exceeds limit: {size}")
        return report(text, [problem])
    tokens, no_tokens = tokenize(text)
    problems: list[Problem] = []
    parser = _Parser(tokens, problems, behaviour)
    try:
        part = run(parser.start())
    except _SyntaxError as error:
        no_tokens.append(syntax_error(text, tokens, parser.index, error.expected))
    except _TooDeepError:
        problems = [Problem(None, f"expression recursion limit exceeded: {DEPTH_MAX}")]
    except ExpansionError as error:
        problems.append(Problem(None, str(error)))
    else:
        if part.height > DEPTH_MAX:
            problems.append(Problem(None, "max recursion depth exceeded"))
    if no_tokens:
        problems = [min(no_tokens, key=_position)]
    return report(text, problems) if problems else part.expr


class _Parser:
    def __init__(
        self, tokens: list[Token], problems: list[Problem], behaviour: CelBehaviour
    ) -> None:
        self._tokens = tokens
        self._has_escaped_names = behaviour.has_escaped_names
        # The last token is repeated for the look-ahead.
        self._kinds = [*(token.kind for token in tokens), EOF, EOF, EOF]
        self._problems = problems
        self.index = 0
        self._ids = Ids()

    def start(self) -> Steps[_Part]:
        part: _Part = yield self._expr(_Depth())
        self._expect(EOF)
        return part

    # Tokens

    def _peek(self, ahead: int = 0) -> str:
        return self._kinds[self.index + ahead]

    def _take(self) -> Token:
        token = self._tokens[self.index]
        self.index += 1
        return token

    def _expect(self, kind: str, *others: str) -> Token:
        if self._kinds[self.index] != kind:
            raise _SyntaxError(kind, *others)
        return self._take()

    def _require(self, *kinds: str) -> None:
        if self._kinds[self.index] not in kinds:
            raise _SyntaxError(*kinds)

    def _accept(self, kind: str) -> bool:
        if self._kinds[self.index] != kind:
            return False
        self.index += 1
        return True

    def _wrong(self, position: int, problem: str) -> ast.Expr:
        """Note a problem and stand in for the node that it prevents."""
        self._problems.append(Problem(position, problem))
        return ast.Literal(self._ids.take(), position, None)

    # Operators

    def _expr(self, depth: _Depth) -> Steps[_Part]:
        inside = _Depth(depth.expr + 1, depth.relation, depth.calc)
        _limit(inside.expr)
        condition: _Part = yield self._binary(inside)
        if self._kinds[self.index] != "?":
            return condition
        question = self._take()
        taken = self._ids.take()
        if_true: _Part = yield self._binary(inside)
        self._expect(":")
        if_false: _Part = yield self._expr(inside)
        args = (condition.expr, if_true.expr, if_false.expr)
        call = ast.Call(taken, question.position, "_?_:_", args)
        return _Part(call, 1 + max(condition.height, if_true.height, if_false.height))

    def _binary(self, depth: _Depth) -> Steps[_Part]:
        pending: list[_Pending] = []
        inside = _operand_depth(depth, pending)
        operands: list[_Operand] = [self._single() or (yield self._unary(inside))]
        while (operator := _OPERATORS.get(self._kinds[self.index])) is not None:
            self._reduce(operands, pending, operator.precedence)
            token = self._take()
            # The nodes of `&&` and `||` are numbered when their right side is complete.
            taken = self._ids.take() if operator.precedence > _AND else 0
            pending.append(_Pending(operator, token, taken))
            inside = _operand_depth(depth, pending)
            operands.append(self._single() or (yield self._unary(inside)))
        self._reduce(operands, pending, 0)
        return _finish(operands[0])

    def _single(self) -> _Part | None:
        """An operand that is one token; most are, and need nothing that nests."""
        kind = self._kinds[self.index]
        after = self._kinds[self.index + 1]
        if kind in literals.READERS and after not in _GOING_DEEPER:
            return _Part(self._literal(), 0)
        return None

    def _sole(self, depth: _Depth) -> _Part | None:
        """Parse an expression that ends after one token."""
        if self._kinds[self.index + 1] not in _ENDS:
            return None
        _limit(1 + max(depth.expr, depth.relation, depth.calc))
        return self._single()

    def _reduce(self, operands: list[_Operand], pending: list[_Pending], precedence: int) -> None:
        while pending and pending[-1].operator.precedence >= precedence:
            done = pending.pop()
            right = _finish(operands.pop())
            left = operands.pop()
            if done.operator.precedence <= _AND:
                operands.append(self._chain(left, done, right))
            else:
                operands.append(_combine(_finish(left), done, right))

    def _chain(self, left: _Operand, done: _Pending, right: _Part) -> _Chain:
        function = done.operator.function
        if not isinstance(left, _Chain) or left.function != function:
            left = _Chain(function, [_finish(left)], [])
        left.terms.append(right)
        left.operators.append((self._ids.take(), done.token.position))
        return left

    def _unary(self, depth: _Depth) -> Steps[_Part]:
        kind = self._peek()
        if kind == "!" or (kind == "-" and self._peek(1) not in ("int", "float")):
            return self._negate(kind, depth)
        return self._member(depth)

    def _negate(self, kind: str, depth: _Depth) -> Steps[_Part]:
        first = self._take()
        count = 1
        while self._accept(kind):
            count += 1
        if kind == "-" and self._peek() not in _OPERANDS:
            raise _SyntaxError
        taken = self._ids.take() if count % 2 else 0
        operand: _Part = yield self._member(depth)
        if not taken:
            return operand
        call = ast.Call(taken, first.position, f"{kind}_", (operand.expr,))
        return _Part(call, operand.height)

    # Selections and calls

    def _member(self, depth: _Depth) -> Steps[_Part]:
        part: _Part
        if self._peek() in _COMPOUND:
            part = yield self._compound(depth)
        else:
            part = _Part(self._literal(), 0)
        while True:
            match self._peek():
                case ".":
                    part = yield self._select(part, depth)
                case "[":
                    part = yield self._index_of(part, depth)
                case _:
                    return part

    def _select(self, part: _Part, depth: _Depth) -> Steps[_Part]:
        dot = self._take()
        optional = self._accept("?")
        self._require(*_FIELD_NAMES)
        name = self._take()
        if self._peek() == "(" and not optional and name.kind == "ident":
            called: _Part = yield self._member_call(part, name, depth)
            return called
        if name.kind == "escaped" and not self._has_escaped_names:
            self._wrong(name.position, _ESCAPED)
        return _Part(self._selection(part.expr, dot, name, optional=optional), part.height + 1)

    def _selection(self, operand: ast.Expr, dot: Token, name: Token, *, optional: bool) -> ast.Expr:
        if not optional:
            return ast.Select(self._ids.take(), dot.position, operand, _field_name(name))
        field = ast.Literal(self._ids.take(), name.position, _field_name(name))
        return ast.Call(self._ids.take(), dot.position, "_?._", (operand, field))

    def _member_call(self, part: _Part, name: Token, depth: _Depth) -> Steps[_Part]:
        opened = self._take()
        taken = self._ids.take()
        args: list[_Part] = yield self._arguments(depth)
        call = ast.Call(taken, opened.position, name.text, _exprs(args), part.expr)
        return _Part(self._expand(call), 1 + max(part.height, _height(args)))

    def _index_of(self, part: _Part, depth: _Depth) -> Steps[_Part]:
        opened = self._take()
        self._require(*_ITEM_STARTS)
        function = "_[?_]" if self._accept("?") else "_[_]"
        taken = self._ids.take()
        index: _Part = yield self._expr(depth)
        self._expect("]")
        call = ast.Call(taken, opened.position, function, (part.expr, index.expr))
        return _Part(call, 1 + max(part.height, index.height))

    def _arguments(self, depth: _Depth) -> Steps[list[_Part]]:
        args: list[_Part] = []
        if self._accept(")"):
            return args
        self._require(*_STARTS, ")")
        args.append((yield self._expr(depth)))
        while self._accept(","):
            args.append((yield self._expr(depth)))
        self._expect(")")
        return args

    def _expand(self, call: ast.Call) -> ast.Expr:
        nodes = MacroNodes(self._ids, call.position)
        try:
            expanded = macros.expand(nodes, call.function, call.args, target=call.target)
        except macros.MacroError as error:
            self._ids.give_back(call.id)
            return self._wrong(error.position, error.problem)
        if expanded is None:
            return call
        self._ids.give_back(call.id)
        return expanded

    # Primaries

    def _compound(self, depth: _Depth) -> Steps[_Part]:
        match self._peek():
            case "(":
                return self._nested(depth)
            case "[":
                return self._list(depth)
            case "{":
                return self._map(depth)
        if self._opens_struct():
            return self._struct(depth)
        return self._named(depth)

    def _nested(self, depth: _Depth) -> Steps[_Part]:
        self._take()
        part: _Part = yield self._expr(depth)
        self._expect(")")
        return part

    def _named(self, depth: _Depth) -> Steps[_Part]:
        position = self._tokens[self.index].position
        dot = "." if self._accept(".") else ""
        self._require("ident")
        name = self._take()
        if self._peek() != "(":
            if name.text in RESERVED_WORDS:
                return _Part(self._wrong(position, f"reserved identifier: {name.text}"), 0)
            return _Part(ast.Ident(self._ids.take(), name.position, dot + name.text), 0)
        opened = self._take()
        taken = self._ids.take()
        noted = len(self._problems)
        args: list[_Part] = yield self._arguments(depth)
        if name.text in RESERVED_WORDS:
            # What is in the call is not looked at then.
            del self._problems[noted:]
            return _Part(self._wrong(position, f"reserved identifier: {name.text}"), 0)
        call = ast.Call(taken, opened.position, dot + name.text, _exprs(args))
        return _Part(self._expand(call), _height(args))

    def _opens_struct(self) -> bool:
        ahead = 1 if self._peek() == "." else 0
        while self._peek(ahead) == "ident" and self._peek(ahead + 1) == ".":
            ahead += 2
        return self._peek(ahead) == "ident" and self._peek(ahead + 1) == "{"

    def _struct(self, depth: _Depth) -> Steps[_Part]:
        name = ""
        while self._peek() != "{":
            name += self._take().text
        opened = self._take()
        taken = self._ids.take()
        fields: list[ast.StructField] = []
        height = 0
        self._require(*_FIELD_STARTS, "}", ",")
        more = self._peek() not in ("}", ",")
        first = self._tokens[self.index]
        while more:
            field, reach = yield self._field(depth, first)
            fields.append(field)
            height = max(height, reach)
            more = self._another(_FIELD_STARTS)
        self._close("}")
        return _Part(ast.StructLiteral(taken, opened.position, name, tuple(fields)), height)

    def _field(self, depth: _Depth, first: Token) -> Steps[tuple[ast.StructField, int]]:
        optional = self._accept("?")
        self._require(*_FIELD_NAMES)
        name = self._take()
        colon = self._expect(":")
        taken = self._ids.take()
        noted = len(self._problems)
        value: _Part = yield self._expr(depth)
        if name.kind == "escaped" and not self._has_escaped_names:
            # Said where the fields begin, and the value is not looked at.
            del self._problems[noted:]
            self._wrong(first.position, _ESCAPED)
        field = ast.StructField(
            taken, colon.position, _field_name(name), value.expr, optional=optional
        )
        return field, value.height

    def _close(self, kind: str) -> None:
        """Step over the end of a literal, and the comma that may be before it."""
        if self._accept(","):
            self._expect(kind)
        else:
            self._expect(kind, ",")

    def _another(self, starts: frozenset[str]) -> bool:
        """Step over a comma unless it is the last one."""
        return self._peek() == "," and self._peek(1) in starts and self._accept(",")

    def _list(self, depth: _Depth) -> Steps[_Part]:
        opened = self._take()
        taken = self._ids.take()
        elements: list[_Part] = []
        optionals: list[int] = []
        self._require(*_ITEM_STARTS, "]", ",")
        more = self._peek() not in ("]", ",")
        while more:
            if self._accept("?"):
                optionals.append(len(elements))
            elements.append(self._sole(depth) or (yield self._expr(depth)))
            more = self._another(_ITEM_STARTS)
        self._close("]")
        literal = ast.ListLiteral(taken, opened.position, _exprs(elements), tuple(optionals))
        return _Part(literal, _height(elements))

    def _map(self, depth: _Depth) -> Steps[_Part]:
        opened = self._take()
        taken = self._ids.take()
        entries: list[ast.MapEntry] = []
        height = 0
        self._require(*_ITEM_STARTS, "}", ",")
        more = self._peek() not in ("}", ",")
        while more:
            entry, reach = yield self._entry(depth)
            entries.append(entry)
            height = max(height, reach)
            more = self._another(_ITEM_STARTS)
        self._close("}")
        return _Part(ast.MapLiteral(taken, opened.position, tuple(entries)), height)

    def _entry(self, depth: _Depth) -> Steps[tuple[ast.MapEntry, int]]:
        optional = self._accept("?")
        taken = self._ids.take()
        key: _Part = self._sole(depth) or (yield self._expr(depth))
        colon = self._expect(":")
        value: _Part = self._sole(depth) or (yield self._expr(depth))
        entry = ast.MapEntry(taken, colon.position, key.expr, value.expr, optional=optional)
        return entry, max(key.height, value.height)

    def _literal(self) -> ast.Expr:
        position = self._tokens[self.index].position
        sign = "-" if self._peek() == "-" and self._peek(1) in ("int", "float") else ""
        self.index += len(sign)
        if self._accept("-"):
            raise _SyntaxError
        if self._peek() not in literals.READERS:
            raise _SyntaxError(*_STARTS)
        token = self._take()
        try:
            value = literals.READERS[token.kind](sign + token.text)
        except literals.LiteralError as error:
            return self._wrong(position, str(error))
        return ast.Literal(self._ids.take(), position, value)


def _field_name(name: Token) -> str:
    return name.text[1:-1] if name.kind == "escaped" else name.text


def _position(problem: Problem) -> int:
    assert problem.position is not None, "a syntax error is somewhere"
    return problem.position


def _limit(depth: int) -> None:
    if depth > DEPTH_MAX:
        raise _TooDeepError


def _operand_depth(depth: _Depth, pending: list[_Pending]) -> _Depth:
    """Give the depth at which the operand after the pending operators is parsed."""
    relation = depth.relation + 1
    calc = depth.calc + 1
    for waiting in pending:
        precedence = waiting.operator.precedence
        relation += precedence == _RELATION
        calc += precedence > _RELATION
    _limit(max(relation, calc))
    return _Depth(depth.expr, relation, calc)


def _finish(operand: _Operand) -> _Part:
    if isinstance(operand, _Part):
        return operand
    expr = _balance(operand, 0, len(operand.operators) - 1)
    return _Part(expr, _height(operand.terms))


def _balance(chain: _Chain, low: int, high: int) -> ast.Expr:
    middle = (low + high + 1) // 2
    left = chain.terms[middle].expr if middle == low else _balance(chain, low, middle - 1)
    right = chain.terms[middle + 1].expr if middle == high else _balance(chain, middle + 1, high)
    taken, position = chain.operators[middle]
    return ast.Call(taken, position, chain.function, (left, right))


def _combine(left: _Part, done: _Pending, right: _Part) -> _Part:
    args = (left.expr, right.expr)
    call = ast.Call(done.id, done.token.position, done.operator.function, args)
    return _Part(call, 1 + max(left.height, right.height))


def _exprs(parts: list[_Part]) -> tuple[ast.Expr, ...]:
    return tuple(part.expr for part in parts)


def _height(parts: list[_Part]) -> int:
    return max((part.height for part in parts), default=0)
