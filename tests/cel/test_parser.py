"""The trees of expressions before their types are known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cel.compare import first_syntax_error

from dryrack.cel.parsing import ast
from dryrack.cel.parsing.parser import parse
from dryrack.cel.parsing.source import Issues


def parsed(text: str) -> ast.Expr:
    result = parse(text)
    assert not isinstance(result, Issues), result.text
    return result


def refusal(text: str) -> str:
    result = parse(text)
    assert isinstance(result, Issues), result
    return result.text


def shape(expr: ast.Expr) -> str:
    """Write an expression of calls, names and literals with all its parentheses."""
    match expr:
        case ast.Literal():
            return repr(expr.value)
        case ast.Ident():
            return expr.name
        case ast.Call(target=None):
            return f"{expr.function}({', '.join(map(shape, expr.args))})"
        case _:
            return type(expr).__name__


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("1 + 2 * 3", "_+_(1, _*_(2, 3))"),
        ("1 - 2 - 3", "_-_(_-_(1, 2), 3)"),
        ("a ? b : c ? d : e", "_?_:_(a, b, _?_:_(c, d, e))"),
        ("a == b == c", "_==_(_==_(a, b), c)"),
        ("a in b", "@in(a, b)"),
        ("-1", "-1"),
        ("--1", "1"),
        ("---1", "-_(1)"),
        ("-(1)", "-_(1)"),
        ("!!a", "a"),
        ("1 -1", "_-_(1, 1)"),
        (".a", ".a"),
        ("a && b || c && d", "_||_(_&&_(a, b), _&&_(c, d))"),
        ("a && b && c && d", "_&&_(_&&_(a, b), _&&_(c, d))"),
        ("a || b || c", "_||_(_||_(a, b), c)"),
    ],
)
def test_operators_bind_as_the_grammar_says(text: str, meaning: str) -> None:
    """Precedence, association, folded signs and balanced logic are those of the language."""
    assert shape(parsed(text)) == meaning


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-9223372036854775808", -(2**63)),
        ("-0x10", -16),
        ("0xFFu", ast.Uint(255)),
        (".5e1", 5.0),
        (r"'\x41\u00e9\101\n'", "Aé" + "A\n"),
        (r"r'\n'", r"\n"),
        ('"""a"\nb"""', 'a"\nb'),
        ("'''a\r\nb'''", "a\nb"),
        (r"b'\xff\377é'", b"\xff\xff\xc3\xa9"),
        (r"br'\xff'", rb"\xff"),
        ("null", None),
    ],
)
def test_literals_have_the_value_that_they_spell(text: str, value: ast.Constant) -> None:
    """Numbers in every base, and strings with every kind of quote and escape."""
    expr = parsed(text)

    assert isinstance(expr, ast.Literal)
    assert expr.value == value
    assert type(expr.value) is type(value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("9223372036854775808", "1:1: invalid int literal"),
        ("18446744073709551616u", "1:1: invalid uint literal"),
        ("1e999", "1:1: invalid double literal"),
        (r"'\ud800'", "1:1: invalid unicode code point"),
        (r"b'\u0041'", "1:1: unable to unescape string"),
        ("1 + package", "1:5: reserved identifier: package"),
        ("has(a)", "1:5: invalid argument to has() macro"),
        ("[1].all(x.y, true)", "1:10: argument must be a simple name"),
        ("[1].all(i, i, true)", "1:12: duplicate variable name: i"),
        ("a & b", "1:3: Syntax error:"),
        ("a ? b ? c : d : e", "1:7: Syntax error:"),
        ("f(1,)", "1:5: Syntax error:"),
        ("!-a", "1:3: Syntax error: no viable alternative at input '-a'"),
        ("-!a", "1:2: Syntax error: no viable alternative at input '-!'"),
        ("1 - - \t)", "1:8: Syntax error: no viable alternative at input '- \\t)'"),
        ("[-]", "1:3: Syntax error: no viable alternative at input '-]'"),
        ("-", "1:2: Syntax error: no viable alternative at input '-'"),
        ("1 +\n", "2:1: Syntax error:"),
        ("", "1:0: Syntax error:"),
        ("[1, , 2]", "1:5: Syntax error:"),
    ],
)
def test_what_is_wrong_is_said_where_it_is(text: str, problem: str) -> None:
    """The error names the line and the column of what cannot be."""
    assert refusal(text).startswith(f"ERROR: <input>:{problem}")


SYNTAX_ERRORS = json.loads((Path(__file__).parent / "syntax_errors.json").read_text())


@pytest.mark.parametrize("row", SYNTAX_ERRORS, ids=lambda row: row["expression"])
def test_the_first_syntax_error_is_where_kubernetes_finds_it(row: dict[str, str]) -> None:
    """Kubernetes wrote the file: line and column of the first mistake are its own."""
    said = f"compilation failed: {refusal(row['expression'])}"

    assert first_syntax_error(said)
    assert first_syntax_error(said) == first_syntax_error(row["error"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(1", "missing ')' at '<EOF>'"),
        ("{1 2}", "missing ':' at '2'"),
        ("1 2", "extraneous input '2' expecting <EOF>"),
        ("1 2 3", "mismatched input '2' expecting <EOF>"),
        ("[1", "mismatched input '<EOF>' expecting {']', ','}"),
        ("[1, , 2]", "mismatched input ',' expecting ']'"),
        ("x{1:1}", "mismatched input '1' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"),
        ("a = b || (", "token recognition error at: '= '"),
    ],
)
def test_what_would_have_been_right_is_said(text: str, words: str) -> None:
    """In the words of Kubernetes: tokens too many, missing, or just wrong."""
    [line, *_snippet] = refusal(text).splitlines()

    assert line.partition("Syntax error: ")[2] == words


def test_only_the_first_syntax_error_is_reported() -> None:
    """Later syntax errors and other problems of the text are not reported."""
    assert refusal("1 2 3 & 99999999999999999999 )").count("ERROR") == 1


@pytest.mark.parametrize("text", ["[,]", "{,}", "[1,]", "{1: 2,}", "a{,}", "[?a, b]", "{?a: b}"])
def test_a_last_comma_is_allowed_in_literals(text: str) -> None:
    """Lists, maps and messages may end with a comma, or be nothing else."""
    parsed(text)


DEEP = {
    "parentheses": ("(" * 249 + "1" + ")" * 249, "(" * 250 + "1" + ")" * 250),
    "sums in parentheses": ("1+(" * 124 + "1" + ")" * 124, "1+(" * 125 + "1" + ")" * 125),
    "conditions": ("a?b:" * 249 + "c", "a?b:" * 250 + "c"),
    "open brackets": ("[" * 249 + "]" * 249, "[" * 10_000),
}


@pytest.mark.parametrize("name", DEEP)
def test_rules_nest_at_most_250_deep(name: str) -> None:
    """One level more than the limit is refused, with any continuation."""
    allowed, refused = DEEP[name]

    parsed(allowed)
    assert refusal(refused) == ("ERROR: <input>:-1:0: expression recursion limit exceeded: 250")


@pytest.mark.parametrize(
    ("start", "link"), [("a", ".b"), ("a", "[0]"), ("a", ".b()"), ("1", "+1"), ("1", "==1")]
)
def test_operations_chain_at_most_250_deep(start: str, link: str) -> None:
    """Chains do not nest in the grammar but count all the same."""
    parsed(start + link * 250)
    assert refusal(start + link * 251) == "ERROR: <input>:-1:0: max recursion depth exceeded"


def test_logic_chains_without_limit() -> None:
    """A conjunction of thousands is a tree of a dozen levels."""
    expr = parsed(" && ".join(["a"] * 4096))
    levels = 0
    while isinstance(expr, ast.Call):
        expr = expr.args[0]
        levels += 1

    assert levels == 12


def test_too_long_an_expression_is_not_read() -> None:
    """More than a hundred thousand characters are refused unread."""
    assert refusal("(" * 100_001) == (
        "ERROR: <input>:-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    )


def test_ids_are_unique() -> None:
    """Macros that copy their target give the copies ids of their own."""
    waiting: list[ast.Expr] = [parsed("a.b[?0].optMap(x, [x, {'k': x}].map(y, y.z))")]
    seen: set[int] = set()
    while waiting:
        expr = waiting.pop()
        assert expr.id not in seen
        seen.add(expr.id)
        waiting += _children(expr)


def _children(expr: ast.Expr) -> list[ast.Expr]:
    match expr:
        case ast.Select():
            return [expr.operand]
        case ast.Call():
            return [*expr.args, *([expr.target] if expr.target else [])]
        case ast.ListLiteral():
            return list(expr.elements)
        case ast.MapLiteral():
            return [part for entry in expr.entries for part in (entry.key, entry.value)]
        case ast.Comprehension():
            return [
                expr.iter_range,
                expr.accu_init,
                expr.loop_condition,
                expr.loop_step,
                expr.result,
            ]
        case _:
            return []
