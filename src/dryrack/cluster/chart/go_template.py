"""
Interpret templates in the language of Go's `text/template`, as Helm does.

The subset: text, `if`, `else if`, `with`, `range`, `define`, variables, pipelines, and the
functions that the caller passes. The rest of the language is an error when a template is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dryrack.base.errors import DryrackError

Function = Callable[..., Any]
_TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\])*")|(?P<number>-?\d+)|(?P<variable>\$\w*(?:\.\w+)*)"""
    r"""|(?P<close>\)(?:\.\w+)*)|(?P<field>\.(?:\w+(?:\.\w+)*)?)|(?P<name>\w+)"""
    r"""|(?P<sign>:=|[(|,=]))"""
)
_DECLARATION = re.compile(r"(\$\w+)(?:\s*,\s*(\$\w+))?\s*(:?=)\s*(.*)", re.S)


class TemplateError(DryrackError):
    """A template cannot be read or executed."""


@dataclass(slots=True)
class Scope:
    """The value of `.`, and the variables of a block."""

    dot: Any
    variables: dict[str, Any]
    parent: Scope | None = None

    def holder(self, name: str) -> Scope:
        """Return the innermost scope that declares the variable."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.variables:
                return scope
            scope = scope.parent
        raise TemplateError(f"variable {name} is not declared")

    def inner(self, dot: Any, **variables: Any) -> Scope:
        return Scope(dot, variables, self)


Expression = Callable[[Scope], Any]
Block = Callable[[Scope], str]


@dataclass(slots=True)
class Templates:
    """The named templates of a chart, and the functions that they call."""

    functions: Mapping[str, Function]
    named: dict[str, Block] = field(default_factory=dict)

    def read(self, name: str, text: str) -> Block:
        """Return the template of a file, and keep the templates that it defines."""
        try:
            return _Reader(self, text).read()
        except TemplateError as error:
            raise TemplateError(f"{name}: {error}") from None

    def include(self, name: str, dot: Any) -> str:
        """Return the output of a named template."""
        if name not in self.named:
            raise TemplateError(f"no template {name!r}")
        return self.named[name](Scope(dot, {"$": dot}))


class _Reader:
    """The tags of one file, and the position in them."""

    def __init__(self, templates: Templates, text: str) -> None:
        self._templates = templates
        self._items: list[tuple[bool, str]] = []
        before, *tags = text.split("{{")
        for tag in tags:
            content, separator, after = tag.partition("}}")
            if not separator:
                raise TemplateError(f"no }}}} after {{{{{tag[:20]}")
            self._items.append((False, before.rstrip() if content.startswith("-") else before))
            self._items.append((True, content.removeprefix("-").removesuffix("-").strip()))
            before = after.lstrip() if content.endswith("-") else after
        self._items.append((False, before))
        self._next = 0

    def read(self) -> Block:
        block, stop = self._block()
        if stop:
            raise TemplateError(f"{{{{ {stop} }}}} without a beginning")
        return block

    def _block(self) -> tuple[Block, str]:
        """Read up to `end` or `else`; return the block and that tag, or "" at the end."""
        parts: list[Block] = []
        stop = ""
        while self._next < len(self._items):
            is_tag, content = self._items[self._next]
            self._next += 1
            if not is_tag:
                parts.append(lambda _, content=content: content)  # type: ignore[misc]
            elif content == "end" or content.startswith("else"):
                stop = content
                break
            elif not content.startswith("/*"):
                parts.append(self._action(content))
        return (lambda scope: "".join([part(scope) for part in parts])), stop

    def _action(self, content: str) -> Block:
        word, _, rest = content.partition(" ")
        if word == "define":
            block, _ = self._block()
            self._templates.named[json.loads(rest)] = block
            return lambda _: ""
        if word in ("if", "with"):
            return self._condition(word, rest)
        if word == "range":
            return self._range(rest)
        declaration = _DECLARATION.fullmatch(content)
        if declaration is None:
            value = self._expression(content)
            return lambda scope: to_text(value(scope))
        name, _, sign, rest = declaration.groups()
        value = self._expression(rest)

        def assign(scope: Scope) -> str:
            target = scope if sign == ":=" else scope.holder(name)
            target.variables[name] = value(scope)
            return ""

        return assign

    def _condition(self, word: str, text: str) -> Block:
        condition = self._expression(text)
        then, stop = self._block()
        otherwise: Block = lambda _: ""  # noqa: E731
        if stop.startswith("else "):
            kind, _, rest = stop.removeprefix("else ").partition(" ")
            otherwise = self._condition(kind, rest)
        elif stop == "else":
            otherwise, _ = self._block()

        def run(scope: Scope) -> str:
            value = condition(scope)
            if not is_true(value):
                return otherwise(scope.inner(scope.dot))
            return then(scope.inner(value if word == "with" else scope.dot))

        return run

    def _range(self, text: str) -> Block:
        declaration = _DECLARATION.fullmatch(text)
        first, second = (declaration[1], declaration[2]) if declaration else (None, None)
        items = self._expression(declaration[4] if declaration else text)
        body, _ = self._block()

        def run(scope: Scope) -> str:
            values: Any = items(scope) or ()
            is_map = isinstance(values, dict)
            pairs = sorted(values.items()) if is_map else enumerate(values)
            output = []
            for key, value in pairs:
                inner = scope.inner(value)
                if first:
                    inner.variables.update(
                        {first: key, second: value} if second else {first: value}
                    )
                output.append(body(inner))
            return "".join(output)

        return run

    def _expression(self, text: str) -> Expression:
        tokens = []
        position = 0
        while position < len(text.rstrip()):
            token = _TOKEN.match(text, position)
            if token is None:
                raise TemplateError(f"cannot read {text[position:]!r}")
            tokens.append((str(token.lastgroup), token[0].strip()))
            position = token.end()
        parser = _Parser(self._templates, tokens)
        return parser.pipeline()


class _Parser:
    """The tokens of one pipeline."""

    def __init__(self, templates: Templates, tokens: Sequence[tuple[str, str]]) -> None:
        self._templates = templates
        self._tokens = list(tokens)

    def pipeline(self) -> Expression:
        value = self._call(None)
        while self._tokens and self._tokens[0][1] == "|":
            self._tokens.pop(0)
            value = self._call(value)
        return value

    def _call(self, piped: Expression | None) -> Expression:
        kind, word = self._tokens[0]
        callee = self._operand()
        operands = []
        while self._tokens and self._tokens[0][0] != "close" and self._tokens[0][1] != "|":
            operands.append(self._operand())
        if piped is not None:
            operands.append(piped)
        if kind == "name" and word in ("and", "or"):
            return lambda scope: _shortcut(word, operands, scope)
        if kind == "name" and word == "include":
            name, dot = operands
            return lambda scope: self._templates.include(name(scope), dot(scope))
        if not operands:
            return callee
        if kind == "name" and word in self._templates.functions:
            function = self._templates.functions[word]
            return lambda scope: function(*[each(scope) for each in operands])
        return lambda scope: callee(scope)(*[each(scope) for each in operands])

    def _operand(self) -> Expression:
        kind, text = self._tokens.pop(0)
        if kind == "text":
            constant = json.loads(text)
            return lambda _: constant
        if kind == "number":
            number = int(text)
            return lambda _: number
        if kind == "field":
            fields = [each for each in text.split(".") if each]
            return lambda scope: _fields(scope.dot, fields)
        if kind == "variable":
            name, *fields = text.split(".")
            return lambda scope: _fields(scope.holder(name).variables[name], fields)
        if text == "(":
            inner = self.pipeline()
            _, *fields = self._tokens.pop(0)[1].split(".")
            return lambda scope: _fields(inner(scope), fields)
        if text in ("true", "false", "nil"):
            value = {"true": True, "false": False}.get(text)
            return lambda _: value
        if text in ("and", "or", "include"):
            return lambda _: None
        if text not in self._templates.functions:
            raise TemplateError(f"no function {text!r}")
        function = self._templates.functions[text]
        return lambda _: function()


def _shortcut(word: str, operands: Sequence[Expression], scope: Scope) -> Any:
    """Return the first operand that decides, or the last one."""
    value: Any = None
    for each in operands:
        value = each(scope)
        if is_true(value) == (word == "or"):
            break
    return value


def _fields(value: Any, names: Sequence[str]) -> Any:
    for name in names:
        if value is None:
            raise TemplateError(f"nil pointer evaluating interface {{}}.{name}")
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
    return value


def is_true(value: Any) -> bool:
    """Return whether a condition with this value holds: all empty values are false."""
    return bool(value)


def to_text(value: Any) -> str:
    """Return a value as a template prints it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
