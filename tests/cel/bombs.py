"""
Selectors that are meant to hurt, and what Kubernetes makes of them.

    python -m tests.cel.bombs

asks it and writes `bombs.json`. The sizes are such that it answers at all: for some of these
its time grows with the square of the cost. Those on which it does not end, or takes more memory
than a machine has, are `ENDLESS`.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bench.expressions import DEVICE
from tests.cel.compare import their_verdict
from tests.oracle.oracles import cel_oracle

if TYPE_CHECKING:
    from tests.cel.compare import Verdict

RECORDED = Path(__file__).parent / "bombs.json"
# Of a longer text the beginning is kept, and a digest of the whole.
TEXT_SIZE_MAX = 300

_LONG = "a" * 200
_SQUARE = "lists.range({n}).all(w, lists.range({n}).all(x, {body}))"


def _nested(opening: str, core: str, closing: str, *, times: int) -> str:
    return opening * times + core + closing * times


def _bound(start: str, growth: str, result: str, *, times: int) -> str:
    """Each variable is made of the one before it, `_` in `growth`; the last is in `result`."""
    bindings = "".join(
        f"cel.bind(v{number + 1}, {growth.replace('_', f'v{number}')}, " for number in range(times)
    )
    last = result.replace("_", f"v{times}")
    return f"cel.bind(v0, {start}, {bindings}{last}{')' * (times + 1)}"


BODIES = {
    "sum": "x + w >= 0",
    "remainder": "x % 7 >= 0 && x / 7 >= 0",
    "either": "x < 0 || x >= 0",
    "choice": "x > 5 ? x > 4 : x < 6",
    "sign": "-x <= 0 && !(x < 0)",
    "text": "string(x) + string(w) != ''",
    "texts": "'ABC'.lowerAscii().substring(1, 2) == 'ABC'.charAt(1).lowerAscii()",
    "bytes": "size(bytes(string(x))) > 0",
    "number": "int(string(x)) == x && uint(x) >= 0u && double(x) / 3.0 >= 0.0",
    "format": "'%d %s %x'.format([x, 'a', x]) != '' && '%s'.format([[x, x]]) != ''",
    "split": "'a,b,c,d'.split(',').join('-').size() == 7",
    "list": "[x, x].size() == 2 && ([x] + [x]).size() == 2",
    "map": "{x: x}.size() == 1 && {'a': 1}['a'] == 1",
    "list index": "[1, 2, 3][x % 3] > 0",
    "dyn": "dyn(x) >= 0 && type(x) == int",
    "optional": "optional.of(x).hasValue() && optional.none().orValue(true)",
    "optional map": "optional.of(x).optMap(y, y + 1).orValue(0) > 0",
    "binding": "cel.bind(y, x + 1, cel.bind(z, y + x, z > w || y > x))",
    "quantity": "quantity(string(x) + 'Gi').compareTo(quantity('1Ki')) >= 0 || true",
    "quantities": "quantity('1').add(quantity('5E')).isGreaterThan(quantity('1'))",
    "semver": "semver(string(x) + '.0.0').major() == x && isSemver(string(x) + '.0.0-rc.1+b')",
    "networks": "ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.0.0.1')",
    "url": "url('https://example.com:80/a?b=c').getHost() != '' && isURL(string(x)) == false",
    "named format": "!format.dns1123Label().validate('abc').hasValue()",
    "times": "timestamp(1000 + x).getFullYear() > 0 && duration(string(x) + 's') >= duration('0s')",
    "pattern": f"'{_LONG}'.matches('(a*)*b') || '{_LONG}'.find('(a|aa)+b') == ''",
    "made pattern": "'aaaa'.matches('(a*)*b' + string(x)) || true",
    "all matches": f"'{_LONG}'.findAll('a').size() > 0",
    "device": "device.attributes['gpu.example.com'].model == 'h100' || device.driver == 'x'",
    "presence": "has(device.attributes['gpu.example.com'].model)",
    "optional path": "device.attributes['gpu.example.com'].?model.orValue('') == 'h100'",
    "absent path": "device.attributes[?'a'].?b.?c.orValue(w) == w",
    "nothing there": "device.attributes['a'].b == 1 || true",
    "division by zero": "1 / (x - x) == 1",
    "distinct": "[x, w, x].distinct().size() <= 2 && [1, 2, 3].reverse().slice(1, 3).size() == 2",
    "extremes": "lists.range(10).max() == 9 && lists.range(10).isSorted() && [w].indexOf(w) == 0",
    "sets": "sets.contains([x, 1], [x]) && sets.intersects([x], [x, w]) && x in [x, w]",
}
# Nothing in these is the same in two rounds.
_NEW = "(x * 600 + w)"
NEW_BODIES = {
    "text": f"string({_NEW}) + string({_NEW}) != ''",
    "failures in a list": f"[1, {_NEW}].map(y, 1 / (y - 1)).size() == 2 || true",
}
# A million takes the better part of a second each.
LIMITED = ("division by zero", "all matches", "map", "distinct")
LOOPS = {
    **{f"loop: {name}": _SQUARE.format(n=25, body=body) for name, body in BODIES.items()},
    **{f"to the limit: {name}": _SQUARE.format(n=600, body=BODIES[name]) for name in LIMITED},
    **{
        f"to the limit, all new: {name}": _SQUARE.format(n=600, body=body)
        for name, body in NEW_BODIES.items()
    },
    "six loops": _nested("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(x, ", "x >= 0", ")", times=6),
    "exists one": "lists.range(200).exists_one(x, lists.range(200).exists_one(y, x == y))",
    "two variables": "lists.range(500).all(i, v, lists.range(500).all(j, w, i + j >= v))",
    "filters": "lists.range(50).map(x, lists.range(50).filter(y, y % 2 == 0)).size() > 0",
    "lists": "lists.range(60).transformList(i, x, lists.range(60).map(y, i + y)) != []",
    "maps": "lists.range(60).transformMap(i, x, lists.range(60).transformMap(j, y, i + j)) != {}",
    "entries": "lists.range(30).all(i, [1, 2].transformMapEntry(j, y, {string(y): j}) != {})",
    "a long range": "lists.range(20000).all(x, true)",
    "too long a range": "lists.range(1000000).all(x, true)",
    "a long text": "lists.range(5000).map(x, 'a' + string(x)).join(',').size() > 0",
    "all of a long text": "lists.range(3000).map(x, 'a').join('').findAll('a').size() > 0",
    "a long sum": "lists.range(400000).sum() >= 0",
}

GROWTH = {
    "texts that double": _bound("'a'", "_ + _", "_.size() > 0", times=30),
    "bytes that double": _bound("b'a'", "_ + _", "_.size() > 0", times=30),
    "texts that double, unchecked": _bound("dyn('a')", "_ + _", "_.size() > 0", times=20),
    "lists that double": _bound("[0]", "_ + _", "_.size() > 0", times=18),
    "lists in lists": _bound("[1]", "[_, _, _, _]", "_ == _", times=8),
    "lists in lists, unchecked": _bound("dyn([1])", "dyn([_, _])", "_ == _", times=12),
    "found in lists in lists": _bound("dyn([1])", "dyn([_, _])", "_ in [_]", times=12),
    "distinct lists in lists": _bound(
        "dyn([1])", "dyn([_, _])", "[_, _].distinct() != []", times=12
    ),
    "flat lists in lists": _bound("dyn([1])", "dyn([_, _])", "_.flatten(12).size() > 0", times=12),
    "printed lists in lists": _bound("dyn([1])", "dyn([_, _])", "'%s'.format([_]) != ''", times=12),
    "maps in maps": _bound("dyn({'a': 1})", "dyn({'a': _, 'b': _})", "_ == _", times=12),
    "optionals in lists": _bound(
        "dyn([1])", "dyn([optional.of(_), optional.of(_)])", "_ == _", times=12
    ),
    "a text in itself": _bound(f"'{_LONG}'", f"_.replace('a', '{_LONG}')", "_.size() > 0", times=2),
    "too long a text in itself": _bound(
        f"'{_LONG}'", f"_.replace('a', '{_LONG}')", "_ != ''", times=3
    ),
    "a text in pieces": _bound(f"'{_LONG}'", "_.split('').join(_)", "_.size() > 0", times=2),
    "pieces joined": _bound(
        "['aaaa', 'b']", "[_.join('ccccccc'), _.join(_[0])]", "_ != []", times=9
    ),
    "a list with itself": "cel.bind(l, lists.range(1000), lists.range(30).all(x, l == l))",
    "sorted": "lists.range(650).sortBy(x, -x).size() > 0 && lists.range(650).sort().size() > 0",
    "distinct": "lists.range(600).distinct().size() > 0",
    "too many to be distinct": "lists.range(1000).distinct().size() > 0",
    "distinct lists": "lists.range(100).map(x, [x]).distinct().size() > 0",
    "distinct texts": "lists.range(300).map(x, string(x)).distinct().size() > 0",
    "sets": "sets.contains(lists.range(900), lists.range(900))",
    "too large sets": "sets.contains(lists.range(1200), lists.range(1200))",
    "sets apart": "sets.intersects(lists.range(900), lists.range(900).map(x, x + 1000))",
    "equivalent sets": "sets.equivalent(lists.range(600), lists.range(600))",
    "sets of lists": "cel.bind(a, lists.range(100).map(x, [x]), sets.equivalent(a, a))",
    "sets of texts": "cel.bind(a, lists.range(300).map(x, 'a' + string(x)), sets.equivalent(a, a))",
    "found in a list": "cel.bind(l, lists.range(200), lists.range(200).all(x, x in l))",
    "searched": (
        "cel.bind(s, lists.range(300).map(x, 'a').join(''), "
        "lists.range(300).all(x, s.indexOf(s + 'b') < 0))"
    ),
}

PATTERNS = {
    name: f'"aaaaaaaaaaaaaaaaaaaaaaaaaaaaab".matches(r"{pattern}")'
    for name, pattern in {
        "a pattern that backtracks": "(a*)*(a*)*c",
        "repetitions": "(a{1,100}){1,10}",
        "the most repetitions": "a{1000}",
        "one repetition too many": "a{1001}",
        "repetitions of repetitions": "((((a{10}){10}){10}))",
        "too many of them": "((((a{100}){100}){100}))",
        "many alternatives": "|".join(f"ab{number}" for number in range(1500)),
        "many sets": r"[[:alpha:]]\pL" * 150,
        "deep groups": _nested("(", "a", ")", times=999),
        "deep repetitions": _nested("(a*", "", ")*", times=333),
        "deep choices": _nested("(b|", "a", ")", times=500),
        "deep without capturing": _nested("(?:cd|", "a", ")", times=900),
    }.items()
}

LENGTH = {
    "many terms": " || ".join(['device.driver == "x"'] * 420),
    "many attributes": " || ".join(["device.attributes['a'].b == 'c'"] * 280),
    "many quantities": " && ".join(["quantity('1') == quantity('1')"] * 300),
    "many patterns": " || ".join(f"device.driver.matches('a{number}')" for number in range(330)),
    "many macros": " && ".join(["[1].all(x, true)"] * 450),
    "many presences": " && ".join(["has(device.attributes.a)"] * 350),
    "many bad macros": " && ".join(["[1].all(1, true)"] * 500),
    "many names": "||".join(["a"] * 3400),
    "many numbers": f"[{','.join(['1'] * 5000)}].size() > 0",
    "many texts": "[" + ",".join(["'a'"] * 2500) + "].size() > 0",
    "many kinds": "[" + ",".join(["1", "'a'", "true", "1.0"] * 600) + "].size() > 0",
    "many entries": "{" + ",".join(f"'{number}':1" for number in range(1000)) + "}.size() > 0",
    "many to choose from": "1 in [" + ",".join(map(str, range(2000))) + "]",
    "not, not": "!" * 10_000 + "true",
    "minus, minus": "-" * 10_000 + "1 == 1",
    "a long text": f"'{'a' * 10_200}' == ''",
    "escapes": "'" + "\\u00e9" * 1700 + "' == ''",
    "a large number": f"{'9' * 10_000} > 0",
    "a large hexadecimal number": f"0x{'f' * 10_000} > 0",
    "a large unsigned number": f"{'9' * 10_000}u > 0u",
    "a large double": f"{'9' * 10_000}.0 > 0.0",
    "a large exponent": f"1e{'9' * 9000} > 0.0",
}

DEPTH = {
    "selections": "device.attributes" + ".a" * 249,
    "too many selections": "device" + ".a" * 5000,
    "optional selections": "device.attributes" + ".?a" * 240 + ".hasValue()",
    "too many optional selections": "device.attributes" + ".?a" * 2500,
    "optional indices": "device.attributes" + "[?'a']" * 120 + ".hasValue()",
    "optional maps": "optional.of(1)" + ".optMap(x, x + 1)" * 6 + ".hasValue()",
    "alternatives": "optional.none()" + ".or(optional.none())" * 240 + ".hasValue()",
    "calls": "'a'" + ".trim()" * 240 + " == 'a'",
    "too many calls": "'a'" + ".trim()" * 1400 + " == 'a'",
    "too many indices": "device.attributes" + "['a']" * 2000,
    "conditions": "device.driver == 'x' ? true : " * 240 + "false",
    "too many conditions": _nested("true ? ", "true", " : false", times=1000),
    "sums": "+".join(["1"] * 250) + " > 0",
    "too many sums": "+".join(["1"] * 5000),
    "comparisons": "==".join(["true"] * 240),
    "loops": _nested("[1].all(x, ", "true", ")", times=240),
    "bindings": _nested("cel.bind(a, 1, ", "a == 1", ")", times=240),
    "loops with two variables": _nested("{'a': 1}.exists(k, v, ", "true", ")", times=200),
    "calls in calls": _nested("string(", "'a'", ")", times=245) + " == 'a'",
    "lists": _nested("[", "1", "]", times=100) + " == " + _nested("[", "2", "]", times=100),
    "flat lists": _nested("[", "1", "]", times=100) + ".flatten(1000000).size() > 0",
}

_INNER = "dyn([[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[_]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]])"
DEEPER = {
    question: _bound("dyn([1])", _INNER, question, times=60)
    for question in (
        "_ == _",
        "_ == 1",
        "_ in [_]",
        "[_, _].distinct().size() > 0",
        "sets.contains(_, _)",
        "_.flatten(100000).size() > 0",
        "'%s'.format([_]) != ''",
        "_.indexOf(_) >= 0",
        "_.sum() > 0",
        "_.map(x, x) == _",
        "_.exists(x, x[0][0] == _)",
    )
} | {
    f"{growth} {question}": _bound("dyn([1])", growth, question, times=200)
    for growth in ("dyn({'a': _})", "dyn([optional.of(_)])", "dyn({1: [{2: _}]})")
    for question in ("_ == _", "'%s'.format([_]) != ''", "_ in [_]")
}

BROKEN = {
    **{
        f"only {sign}": sign * 10_240
        for sign in (
            "(",
            "[",
            "{",
            ")",
            "!",
            "-",
            ".",
            "?",
            ",",
            ":",
            "'",
            "`",
            "#",
            "&",
            "=",
            "é",
            "😀",
        )
    },
    "closed too late": "(" * 5120 + ")" * 5120,
    "numbers and dots": "1." * 5000,
    "unclosed text": "'" + "a" * 10_200,
    "unclosed long text": "'''" + "a" * 10_200,
    "backslashes": "'" + "\\" * 10_237 + "'",
    "names beside each other": "a b " * 2500,
    "many errors": "(a + ) || " * 1000,
    "open at the end": " || ".join(['device.driver == "x"'] * 420) + " || (",
    "deep mistakes": _nested("f(", "1 2", ")", times=245),
    "deep minus": "-1[" * 240 + ")",
    "a chain without end": "a" + ".b" * 4800 + ".)",
    "lists with gaps": "[" + "1 2, " * 2000 + "]",
    "maps with gaps": "{" + "1 2: 3, " * 1200 + "}",
    "messages in messages": "a.b{c: " * 1400 + "c",
    "macros with gaps": "has(a[) && " * 900,
    "conditions without end": "a ? b ? c " * 1000,
    "signs between": "a # b $ c @ " * 800,
    "one comma too many": "[" + ",".join(["1"] * 4900) + ",,]",
}

BOMBS: dict[str, str] = {
    f"{kind}: {name}": expression
    for kind, expressions in {
        "loops": LOOPS,
        "growth": GROWTH,
        "patterns": PATTERNS,
        "length": LENGTH,
        "depth": DEPTH,
        "deeper": DEEPER,
        "broken": BROKEN,
    }.items()
    for name, expression in expressions.items()
}

# With what dryrack says instead.
ENDLESS: dict[str, tuple[str, bool | str]] = {
    "lists in lists": (_bound("dyn([1])", "dyn([_, _])", "_ == _", times=40), True),
    "found in lists": (_bound("dyn([1])", "dyn([_, _])", "_ in [_]", times=40), True),
    "maps in maps": (_bound("dyn({'a': 1})", "dyn({'a': _, 'b': _})", "_ == _", times=40), True),
    "flat lists in lists": (
        _bound("dyn([1])", "dyn([_, _])", "_.flatten(40).size() > 0", times=40),
        "flatten: the result has more than 1048576 elements or characters",
    ),
    "printed lists in lists": (
        _bound("dyn([1])", "dyn([_, _])", "'%s'.format([_]) != ''", times=40),
        "error during formatting: format: the result has more than 16777216 elements or characters",
    ),
    "lists that double": (
        _bound("[0]", "_ + _", "_.size() > 0", times=60),
        "_+_: the result has more than 1048576 elements or characters",
    ),
    "texts that double": (
        _bound("dyn('a')", "_ + _", "_.size() > 0", times=60),
        "_+_: the result has more than 16777216 elements or characters",
    ),
    "a text in itself": (
        _bound("'aaaaaaaaaaaaaaaa'", "_.replace('', _)", "_.size() > 0", times=4),
        "replace: the result has more than 16777216 elements or characters",
    ),
    "a zero with an enormous exponent": (
        "quantity('1').add(quantity('0e-2147483648')).isGreaterThan(quantity('0e2147483647'))",
        True,
    ),
    "a precision without end": (
        "'%.999999999f'.format([1.0]) == '' || '%.9999999999999e'.format([1.0]) == ''",
        "error during formatting: format: the result has more than 16777216 elements or characters",
    ),
    "a precision that no integer holds": (
        (
            "('%.' + lists.range(5000).map(x, '9').join('') + 'f').format([1.0]) != ''"
            " || timestamp(0).getHours(lists.range(5000).map(x, '9').join('') + ':00') == 1"
            " || int(lists.range(5000).map(x, '9').join('')) == 1 || isQuantity('1')"
        ),
        True,
    ),
    "digits without end": (
        "isQuantity('1e999999999') || isQuantity(lists.range(100000).map(x, '0').join('') + '!')",
        False,
    ),
    "optional maps": (
        "optional.of(1)" + ".optMap(x, x + 1)" * 200 + ".hasValue()",
        "compilation failed: ERROR: <input>:-1:0: expression expands to more than 20000 nodes",
    ),
}


def shown(verdict: Verdict) -> dict[str, Any]:
    """A verdict as it is recorded."""
    if verdict.compile_error:
        return {"compileError": _kept(verdict.compile_error)}
    costs = {"cost": verdict.cost, "actualCost": verdict.actual_cost}
    if verdict.match_error:
        return {"matchError": _kept(verdict.match_error), **costs}
    return {"match": verdict.match, **costs}


def _kept(text: str) -> str:
    if len(text) <= TEXT_SIZE_MAX:
        return text
    return f"{text[:TEXT_SIZE_MAX]} … sha256:{sha256(text.encode()).hexdigest()}"


def main() -> None:
    cases = [{**DEVICE, "name": name, "expression": text} for name, text in BOMBS.items()]
    with cel_oracle() as oracle:
        answers = {case["name"]: answer for case, answer in oracle.ask(cases)}
    panics = [name for name, answer in answers.items() if answer.panic]
    assert not panics, panics
    rows = {name: shown(their_verdict(answer)) for name, answer in answers.items()}
    RECORDED.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
