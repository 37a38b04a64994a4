"""The estimated costs are those of Kubernetes 1.37, expression by expression."""

from __future__ import annotations

import pytest

from dryrack.cel.checking.checker import Checked, Reference, check
from dryrack.cel.checking.environment import Environment
from dryrack.cel.estimation import CostEstimate, estimate
from dryrack.cel.estimation.arithmetic import UINT64_MAX
from dryrack.cel.parsing.ast import Call, Expr, Ident, ListLiteral, Literal
from dryrack.cel.parsing.parser import parse

ENV = Environment(consumable_capacity=True, list_type_attributes=False, new_expressions=False)
LONG = "x" * 100


def highest(expression: str) -> int:
    parsed = parse(expression)
    assert isinstance(parsed, Expr), parsed
    checked = check(parsed, ENV)
    assert isinstance(checked, Checked), checked
    return estimate(checked, ENV).max


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ('device.driver == "x"', 3),
        ("device.allowMultipleAllocations", 2),
        (f'device.driver == "{LONG}"', 9),
        (f'device.attributes["d"].model == "{LONG}"', 11),
        ('device.attributes.all(d, d.startsWith("x"))', 163),
        ('device.attributes["d"].exists(k, k.matches("^a.*"))', 292),
        ('has(device.attributes["d"].model)', 3),
        ('device.attributes["d"].?model.orValue("x") == "x"', 6),
        ('device.capacity["d"].memory.isGreaterThan(quantity("1Gi"))', 6),
        ('device.attributes["d"].includes("x")', 259),
        ('{"device": {"driver": "x"}}.device.driver == "x"', 63),
    ],
)
def test_what_is_read_from_the_device_has_a_known_size(expression: str, cost: int) -> None:
    """No domain, name, driver or value is longer than the API allows."""
    assert highest(expression) == cost


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        (f'cel.bind(a, device.attributes["d"], a.all(k, k == "{LONG}" && a[k] == "x"))', 399),
        (f'cel.bind(a, device.attributes["d"], a.all(k, a[k] == "x" && k == "{LONG}"))', 495),
        (f'cel.bind(a, device.attributes["d"], a.all(k, v, k == "{LONG}"))', 367),
    ],
)
def test_a_key_counts_as_a_value_once_its_map_was_indexed(expression: str, cost: int) -> None:
    """The reference's paths share storage; the order of the operands shows in the estimate."""
    assert highest(expression) == cost


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ('"abc".contains("b")', 1),
        ('"abc".matches("b+")', 1),
        ('matches("abc", "b+")', 1),
        ('"a" in ["a", "b"]', 12),
        ('("a" + string(1)).startsWith("b")', 1844674407370955266),
        ("true ? [1, 2].all(x, x > 0) : false", 21),
        ("(true ? [1, 2] : [3]).all(x, x > 0)", 21),
        ("([1] + [2, 3]).all(x, x > 0)", 37),
        ("[1, 2, 3].map(x, [x, x]).all(l, l.all(y, y > 0))", 139),
        ('{"a": "bb"}.all(k, v, k < v)', 37),
        ('{"a": "bb"}.transformMap(k, v, v + k) == {"a": "bba"}', 98),
        ('dyn(["abc"])[0] == "abc"', 13),
        ("optional.of(1).orValue(2) == 1", 3),
        ('"%s".format([device.driver]) == "x"', 14),
    ],
)
def test_the_language_itself(expression: str, cost: int) -> None:
    """Operators, macros and conversions, with the sizes of what they make."""
    assert highest(expression) == cost


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ('["a", "b"].join(",") == "a,b"', 1844674407370955275),
        ('"a,b".split(",", 2).size() == 2', 3),
        ('"a,b".split(",").map(x, x.size()).sum() == 2', 58),
        ('string(1).lowerAscii() == "x"', 1844674407370955266),
        ('string(1).replace("a", "bb").trim() == "x"', 5534023222112865794),
        ('"aab".replace("", "bb").trim() == "x"', 4),
        ('"aab".replace("aa", "b").trim() == "x"', 3),
        ("[1, 2].slice(1, 2).size() == 1", 24),
        ("lists.range(5).size() == 5", 18),
        ("[[1], [2]].flatten(3).size() == 2", 49),
        ('["b"].sort() == ["b"]', 35),
        ("[2, 1].sortBy(x, -x) == [2, 1]", 91),
        ("[1, 1].distinct() == [1]", 40),
        ("[1, 2].reverse() == [2, 1]", 34),
        ("sets.contains([1, 2], [1])", 23),
        ("sets.equivalent([1, 2], [1])", 25),
    ],
)
def test_the_extension_libraries(expression: str, cost: int) -> None:
    """Strings, lists and sets."""
    assert highest(expression) == cost


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ('device.capacity["d"].memory == quantity("1Gi")', 6),
        ('semver("1.0.0") == semver("1.0.0")', 3),
        ('url("http://a") == url("http://a")', 3),
        ("format.uuid() == format.uuid()", 9),
        ('ip("::1") == ip("::1")', 3),
        ('cidr("10.0.0.0/8").containsIP("10.0.0.1")', 6),
        ('cidr("10.0.0.0/8").containsCIDR("10.0.0.0/9")', 9),
        ('cidr("10.0.0.0/8").ip() == ip("10.0.0.0")', 4),
        ('ip.isCanonical("::1")', 1),
        ('format.uuid().validate("x").hasValue()', 34),
        ('dyn(1).path("x").check("get").allowed()', 350003),
        ('dyn(1).fieldSelector("a=b") == dyn(1)', 114),
        ("[[1, 2], [3]].map(l, l.size()).max() == 2", 72),
    ],
)
def test_the_libraries_of_kubernetes(expression: str, cost: int) -> None:
    """Quantities, versions, addresses, formats, and the authorizer, which selectors cannot use."""
    assert highest(expression) == cost


@pytest.mark.parametrize(
    ("expression", "cost"),
    [
        ("[1, 2].slice(2, 1).size() == 1", UINT64_MAX),
        ('lists.range(size("abc")).map(i, i).size() == 5', UINT64_MAX),
        ("bytes(string(1)).size() == 1", 1844674407370955267),
        ('string(bytes(string(1))) == "x"', 3689348814741910530),
        ('strings.quote(string(1)).trim() == "x"', 1844674407370955265),
    ],
)
def test_the_unbounded_sticks_at_the_top_or_wraps_as_upstream(expression: str, cost: int) -> None:
    """Costs never overflow; the few sizes that do upstream do so here."""
    assert highest(expression) == cost


def test_a_min_is_the_way_that_does_least() -> None:
    """The right side of `&&` and the dearer branch of a conditional may not be evaluated."""
    parsed = parse('device.driver == "a" && (true ? [1] : []).size() == 1')
    assert isinstance(parsed, Expr)
    checked = check(parsed, ENV)
    assert isinstance(checked, Checked)

    assert estimate(checked, ENV) == CostEstimate(3, 15)


def nested_list(depth: int) -> Expr:
    inner: Expr = Ident(1, 0, "device")
    for level in range(depth):
        inner = ListLiteral(level + 2, 0, (inner,))
    return inner


def test_depth_is_no_limit() -> None:
    """A tree far deeper than Python's stack is estimated, each list at its price."""
    depth = 50_000

    assert estimate(Checked(nested_list(depth), {}, {}), ENV).max == 10 * depth + 1


def test_width_is_no_limit() -> None:
    """So is a sum of thousands of terms, which leans to the left."""
    count = 20_000
    total: Expr = Literal(0, 0, 1)
    references = {}
    for term in range(1, count):
        total = Call(2 * term, 0, "_+_", (total, Literal(2 * term + 1, 0, 1)))
        references[2 * term] = Reference(overload_ids=("add_int64",))

    assert estimate(Checked(total, {}, references), ENV).max == count - 1
