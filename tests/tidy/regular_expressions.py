"""
Every regular expression of the sources, and text that is meant to make it backtrack.

Expressions are found in the syntax tree: the first argument of `re.compile`, `re.sub` and so on,
and the literals of JavaScript. For each unbounded repetition in one, the attack is a text that
leads there, many repetitions of what it takes, and a sign that nothing takes.
"""

from __future__ import annotations

import ast
import importlib
import itertools
import re
from dataclasses import dataclass
from re import _constants as sre
from re import _parser
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

METHODS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
# A repetition that ends here costs little, however it is divided.
_BOUNDED_MAX = 100
_EXAMPLES_MAX = 16
_USUAL = " \n\t0a.-_/:,;\\'\"%![]()x"
_FLAGS = re.compile(r"re\.[A-Z]+(?: \| re\.[A-Z]+)*")
_JAVASCRIPT = re.compile(r"[(=,:]\s*/((?:[^/\\\n*]|\\.)(?:[^/\\\n]|\\.)*)/[gimsuy]*")
_SETS = {
    sre.CATEGORY_DIGIT: "0",
    sre.CATEGORY_WORD: "a0_",
    sre.CATEGORY_SPACE: " \n",
    sre.CATEGORY_NOT_DIGIT: "a !",
    sre.CATEGORY_NOT_WORD: " !",
    sre.CATEGORY_NOT_SPACE: "a0!",
}


@dataclass(frozen=True)
class Expression:
    """An expression, where it stands, and what is done with it."""

    place: str
    text: str | bytes
    flags: int
    methods: frozenset[str]

    def __str__(self) -> str:
        return f"{self.place}: {self.text!r}"


def expressions(root: Path) -> Iterator[Expression]:
    """Every expression below `src`."""
    sources = root / "src"
    uses = _uses(sources)
    for path in sorted(sources.rglob("*.py")):
        tree = ast.parse(path.read_text())
        calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call) and _is_call(each)]
        if calls:
            name = ".".join(path.relative_to(sources).with_suffix("").parts)
            names = vars(importlib.import_module(name.removesuffix(".__init__")))
            bound = _methods(tree, {**uses, **_uses_in(tree)})
            for call in calls:
                text = _value(call.args[0], names)
                if not isinstance(text, re.Pattern):
                    place = f"{path.relative_to(root)}:{call.lineno}"
                    methods = frozenset(bound.get(call.lineno, ("fullmatch", "match")))
                    yield Expression(place, text, _flags(call, names), methods)
    for path in sorted(sources.rglob("*.js")):
        for found in _JAVASCRIPT.finditer(path.read_text()):
            yield Expression(str(path.relative_to(root)), found[1], 0, frozenset({"sub"}))


def _is_call(node: ast.Call) -> bool:
    return (
        isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr in ("compile", *METHODS)
    )


def _methods(tree: ast.Module, uses: dict[str, set[str]]) -> dict[int, set[str]]:
    """What is done with the expressions of a module, by the lines of their calls."""
    found: dict[int, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Name):
            calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
            if target.id in uses and len(calls) == 1 and _is_call(calls[0]):
                found.setdefault(calls[0].lineno, set()).update(uses[target.id])
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            if isinstance(node.value, ast.Name) and node.value.id == "re":
                found.setdefault(node.lineno, set()).add(node.attr)
            elif isinstance(node.value, ast.Call) and _is_call(node.value):
                found.setdefault(node.value.lineno, set()).add(node.attr)
    return found


def _uses(sources: Path) -> dict[str, set[str]]:
    """Which methods of a name are called in any module."""
    found: dict[str, set[str]] = {}
    for path in sources.rglob("*.py"):
        for name, methods in _uses_in(ast.parse(path.read_text())).items():
            found.setdefault(name, set()).update(methods)
    return found


def _uses_in(tree: ast.Module) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            name = getattr(node.value, "id", getattr(node.value, "attr", ""))
            found.setdefault(name, set()).add(node.attr)
    return found


def _flags(call: ast.Call, names: dict[str, Any]) -> int:
    arguments = (*call.args[1:], *(word.value for word in call.keywords))
    flags = (each for each in arguments if _FLAGS.fullmatch(ast.unparse(each)))
    return sum(int(_value(each, names)) for each in flags)


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """The value of an expression; what only a function knows is some word."""
    missing = {
        each.id: "word"
        for each in ast.walk(node)
        if isinstance(each, ast.Name) and each.id not in names
    }
    code = compile(ast.Expression(node), "<expression>", "eval")
    return eval(code, {**names, **missing, "__builtins__": __builtins__})


def attacks(expression: Expression) -> Iterator[tuple[str | bytes, str | bytes, str | bytes]]:
    """What leads to a repetition, what it repeats, and what it does not take."""
    is_text = isinstance(expression.text, str)
    tree = _parser.parse(expression.text, expression.flags)
    seen: set[tuple[str, str]] = set()
    alphabet = _alphabet(tree)
    for before, body in _repetitions(list(tree), "", alphabet):
        for pump in _examples(body, alphabet):
            if pump and (before, pump) not in seen:
                seen.add((before, pump))
                for after in ("\0", ".\n"):
                    whole = (before, pump, after)
                    yield (
                        whole
                        if is_text
                        else tuple(each.encode("latin-1", "replace") for each in whole)
                    )  # type: ignore[misc]


def _alphabet(tree: Any) -> str:
    signs: set[str] = set()
    pending = list(tree)
    while pending:
        node = pending.pop()
        if isinstance(node, tuple) and len(node) == 2 and node[0] in (sre.LITERAL, sre.NOT_LITERAL):
            signs.add(chr(node[1]))
        elif isinstance(node, tuple) and len(node) == 2 and node[0] is sre.RANGE:
            signs |= {chr(each) for each in node[1]}
        elif isinstance(node, tuple | list | _parser.SubPattern):
            pending += list(node)
    # Those of the expression first: they matter more often.
    return "".join(dict.fromkeys([*sorted(signs), *_USUAL]))


def _repetitions(nodes: list[Any], before: str, alphabet: str) -> Iterator[tuple[str, list[Any]]]:
    for code, argument in nodes:
        if code in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            _, most, body = argument
            if most > _BOUNDED_MAX:
                yield before, list(body)
            yield from _repetitions(list(body), before, alphabet)
        elif code is sre.BRANCH:
            for branch in argument[1]:
                yield from _repetitions(list(branch), before, alphabet)
        elif code is sre.SUBPATTERN:
            yield from _repetitions(list(argument[-1]), before, alphabet)
        elif code is sre.ATOMIC_GROUP:
            yield from _repetitions(list(argument), before, alphabet)
        elif code in (sre.ASSERT, sre.ASSERT_NOT):
            yield from _repetitions(list(argument[1]), before, alphabet)
        before += next(iter(_examples([(code, argument)], alphabet)), "")


def _examples(nodes: list[Any], alphabet: str) -> list[str]:
    """A few texts that a part of an expression takes."""
    found = [""]
    for code, argument in nodes:
        options = _options(code, argument, alphabet)
        pairs = itertools.product(found, options or [""])
        found = [left + right for left, right in itertools.islice(pairs, _EXAMPLES_MAX)]
    return found


def _options(code: Any, argument: Any, alphabet: str) -> list[str]:
    match code:
        case sre.LITERAL:
            return [chr(argument)]
        case sre.NOT_LITERAL:
            return [sign for sign in alphabet if ord(sign) != argument]
        case sre.ANY:
            return list(alphabet)
        case sre.IN:
            return _members(argument, alphabet)
        case sre.BRANCH:
            return [text for branch in argument[1] for text in _examples(list(branch), alphabet)]
        case sre.SUBPATTERN:
            return _examples(list(argument[-1]), alphabet)
        case sre.ATOMIC_GROUP:
            return _examples(list(argument), alphabet)
        case sre.MAX_REPEAT | sre.MIN_REPEAT | sre.POSSESSIVE_REPEAT:
            least, _, body = argument
            inner = _examples(list(body), alphabet)
            return [text * max(least, 1) for text in inner] + ([""] if least == 0 else [])
    return [""]


def _members(parts: list[Any], alphabet: str) -> list[str]:
    is_negated = parts[0][0] is sre.NEGATE
    taken: set[str] = set()
    for code, argument in parts:
        if code is sre.LITERAL:
            taken.add(chr(argument))
        elif code is sre.RANGE:
            taken |= {sign for sign in alphabet if argument[0] <= ord(sign) <= argument[1]}
        elif code is sre.CATEGORY:
            taken |= set(_SETS.get(argument, ""))
    signs = [sign for sign in alphabet if (sign in taken) != is_negated]
    return signs if is_negated else [*signs, *sorted(taken - set(signs))]
