"""Differences between expressions of 1.36 and 1.37, and derived attributes."""

from __future__ import annotations

import pytest

from dryrack import cel
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.releases import Release
from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity

DOMAIN = "d.example.com"
ATTRIBUTES = f'device.attributes["{DOMAIN}"]'
DEVICE = cel.Device(
    DOMAIN,
    {
        name: decode(value, DeviceAttribute)
        for name, value in {
            "model": {"string": "a" * 30},
            "ids": {"ints": list(range(60))},
            "names": {"strings": ["x" * 25, "y" * 25]},
            "firmware": {"version": "1.2.3"},
            "numa": {"int": 4},
            "nvlink-4": {"bool": True},
        }.items()
    },
    {"large": decode({"value": "9223372036854775807"}, DeviceCapacity)},
)


def environment(
    release: Release = Release.V1_37, *, new: bool = False, lists: bool = False
) -> cel.Environment:
    return cel.Environment(
        consumable_capacity=True, list_type_attributes=lists, new_expressions=new, release=release
    )


# Lists are values up to 1.36 only with their gate.
BEFORE = environment(Release.V1_36, lists=True)


def program(text: str, env: cel.Environment) -> cel.Program:
    compiled = cel.compile_expression(text, env)
    assert isinstance(compiled, cel.Program), compiled
    return compiled


def answer(text: str, env: cel.Environment) -> tuple[bool | str, int]:
    """Return the verdict or the error of an evaluation, and its cost."""
    result, cost = program(text, env).matches_with_cost(DEVICE)
    return (result.message if isinstance(result, cel.EvaluationError) else result), cost


def refusal(text: str, env: cel.Environment) -> str:
    compiled = cel.compile_expression(text, env)
    assert isinstance(compiled, cel.CompileError)
    return compiled.message


def test_stored_selectors_go_through_lists_since_1_37() -> None:
    """Attributes are `dyn` in stored selectors, and `any` in new ones unless the gate is on."""
    loop = f"{ATTRIBUTES}.ids.exists(x, x == 59)"

    assert answer(loop, environment())[0] is True
    assert "'any' cannot be range" in refusal(loop, environment(new=True))
    assert "'any' cannot be range" in refusal(loop, environment(Release.V1_36))
    assert answer(loop, environment(new=True, lists=True))[0] is True


def test_lists_are_values_since_1_37() -> None:
    """Up to 1.36 a list attribute makes every expression fail while its gate is off."""
    for new in (False, True):
        assert answer("true", environment(new=new))[0] is True
        text = "attribute ids: unsupported attribute value"
        assert answer("true", environment(Release.V1_36, new=new)) == (text, 0)


def test_results_have_the_type_of_attributes() -> None:
    """A selector of 1.37 is a bool or what an attribute is, and a list is no bool at run time."""
    message = "CEL result of type list could not be converted to bool: "
    message += "type conversion error from list to 'bool'"

    assert answer(f"{ATTRIBUTES}.ids", environment())[0] == message
    assert answer(f'{ATTRIBUTES}["nvlink-4"]', environment(new=True))[0] is True
    text = "must evaluate to bool or the unknown type, not google.protobuf.Any"
    assert refusal("google.protobuf.Any{}", environment()) == text
    assert "not dyn" in refusal("dyn(true)", environment(new=True))


@pytest.mark.parametrize(
    ("text", "verdict", "cost"),
    [
        # Traversal of 60 ints, of 2 strings of 25 bytes, of one string of 30, and of one value.
        (f"{ATTRIBUTES}.ids.includes(59)", True, 4 + 60),
        (f'{ATTRIBUTES}.names.includes("z")', False, 4 + 2 + 2),
        (f'{ATTRIBUTES}.model.includes("a")', False, 4 + 3),
        (f"{ATTRIBUTES}.numa.includes(4)", True, 4 + 1),
        (f'{ATTRIBUTES}.firmware.includes(semver("1.2.3"))', True, 4 + 1 + 1),
    ],
)
def test_includes_costs_what_it_goes_through_since_1_37(
    text: str, verdict: bool, cost: int
) -> None:
    """A list may have any length; the estimate is the size that the attribute can have."""
    assert answer(text, environment()) == (verdict, cost)
    assert program(text, environment()).max_cost >= 64


def test_includes_is_limited_up_to_1_36() -> None:
    """There it accepts 48 values and costs one unit."""
    text = f"{ATTRIBUTES}.ids.includes(59)"
    message, cost = answer(text, BEFORE)

    assert message == "'includes' function cannot be applied to lists longer than 48 values"
    assert cost == 5
    assert program(f'{ATTRIBUTES}.includes("x")', BEFORE).max_cost == 3 + 48
    undeclared = refusal(text, environment(new=True))
    assert "undeclared reference to 'includes'" in undeclared


@pytest.mark.parametrize(
    ("text", "estimate"),
    [
        ("[1, 2, 3].includes(2)", 10 + 3),
        ('"abcd".includes("a")', 4),
        ("5.includes(5)", 1),
        ("{1: 2}.includes(1)", 30 + 1),
        # Keys are texts, and each is priced as the value.
        (f'{ATTRIBUTES}.includes("x")', 3 + 32 * (1 + 7)),
        ('device.attributes.includes("x")', 2 + 32 * (1 + 4)),
        (f'device.capacity["{DOMAIN}"].includes("x")', 3 + 32),
    ],
)
def test_includes_is_estimated_by_the_size_of_its_target(text: str, estimate: int) -> None:
    """The elements of a list, the keys of a map, the characters of a text, one for a number."""
    assert program(text, environment()).max_cost == estimate


def test_names_in_backquotes_are_fields_since_1_37() -> None:
    """A field whose name is no identifier needs no index; that of optional fields neither."""
    text = f"{ATTRIBUTES}.`nvlink-4`"
    optional = f"{ATTRIBUTES}.?`not-there`.orValue(false)"

    for new in (False, True):
        assert answer(text, environment(new=new))[0] is True
        assert answer(optional, environment(new=new))[0] is False
    assert answer(f"has({text})", environment())[0] is True
    assert "unsupported syntax: '`'" in refusal(text, environment(Release.V1_36))


@pytest.mark.parametrize(
    ("size", "result"),
    [
        ("-1", "lists.range: size must be non-negative, got -1"),
        ("1000001", "lists.range: size 1000001 exceeds maximum allowed (1000000)"),
        ("1000000", cel.CANCELLED),
        ("3", False),
    ],
)
def test_ranges_have_limits_since_1_37(size: str, result: bool | str) -> None:
    """Up to 1.36 a negative range is empty, and a long one ends at the cost limit."""
    text = f"lists.range({size}).size() == 0"

    assert answer(text, environment())[0] == result
    assert answer("lists.range(-1).size() == 0", BEFORE)[0] is True
    before = answer("lists.range(1000001).size() == 0", BEFORE)
    assert before[0] == cel.CANCELLED


def test_matches_as_a_function_costs_as_much_as_a_method_since_1_37() -> None:
    """Estimate and actual cost; up to 1.36 the function costs one unit."""
    function = f"matches(string({ATTRIBUTES}.model), 'a{{1,40}}b?')"
    method = f"string({ATTRIBUTES}.model).matches('a{{1,40}}b?')"
    flat = program(function, environment(Release.V1_36, new=True))

    assert answer(function, environment()) == answer(method, environment())
    estimates = [program(text, environment()).max_cost for text in (function, method)]
    assert estimates[0] == estimates[1] > flat.max_cost


@pytest.mark.parametrize("function", ["startsWith", "endsWith"])
def test_affixes_cost_the_length_of_the_argument_since_1_37(function: str) -> None:
    """A short text at the end of a long one costs little."""
    text = f"'{'a' * 30}'.{function}('{'a' * 11}')"

    assert answer(text, environment()) == (True, 2)
    assert answer(text, BEFORE) == (True, 3)


def test_a_duration_of_a_number_does_not_compile_since_1_37() -> None:
    """It is no overload any more; up to 1.36 the literal is refused."""
    text = "duration(1) == duration('1s')"
    message = "found no matching overload for 'duration' applied to '(int)'"

    assert message in refusal(text, environment())
    assert "invalid duration argument" in refusal(text, environment(Release.V1_36))
    late = f"duration({ATTRIBUTES}.numa) == duration('1s')"
    assert answer(late, environment())[0] == "no such overload: duration(int)"


def test_a_literal_names_a_type_and_no_variable_since_1_37() -> None:
    """`list` is a type of its own there, although Kubernetes cannot make a list by its name."""
    assert answer("list{} == []", environment()) == ("unknown type 'list'", 40)
    assert "'list' is not a message type" in refusal("list{} == []", environment(Release.V1_36))
    text = "[1].exists(duration, type(duration{}) == type(duration('1s')))"
    assert answer(text, environment())[0] == "unknown type 'duration'"


def test_arithmetic_leaves_quantities_alone_since_1_37() -> None:
    """Up to 1.36 an addition to a large quantity changes it."""
    memory = f'device.capacity["{DOMAIN}"].large'
    text = f"{memory}.add(quantity('1')).compareTo({memory}) == 0"

    assert answer(text, environment())[0] is False
    assert answer(text, BEFORE)[0] is True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{ATTRIBUTES}.numa / 2", {"int": 2}),
        (f"{ATTRIBUTES}.numa > 2", {"bool": True}),
        ("device.driver", {"string": DOMAIN}),
        ('semver("v1.2", true)', {"version": "1.2.0"}),
        (f"{ATTRIBUTES}.names", {"strings": ["x" * 25, "y" * 25]}),
        ('[semver("1.0.0")]', {"versions": ["1.0.0"]}),
        ("[true, false]", {"bools": [True, False]}),
        ("dyn(optional.of(3))", {"int": 3}),
    ],
)
def test_a_derived_attribute_is_what_its_expression_computes(text: str, expected: object) -> None:
    """A scalar or a list of one type; stored expressions make lists whatever the gate says."""
    derived = cel.compile_derived(text, environment())
    assert isinstance(derived, cel.Program), derived
    value, _cost = cel.derive(derived, DEVICE)

    assert isinstance(value, DeviceAttribute), value
    assert to_builtins(value) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dyn(1.5)", "unsupported CEL return type: float64"),
        ("dyn(null)", "unsupported CEL return type: structpb.NullValue"),
        ("[dyn(b'a')]", "unsupported list element type: []uint8"),
        ("[dyn(true), dyn(1)]", "expected list element at index 1 to be bool, got int64"),
        ("[dyn('a'), dyn(1u)]", "expected list element at index 1 to be string, got uint64"),
        (f"{ATTRIBUTES}.none", "no such key: none"),
    ],
)
def test_a_derived_attribute_of_another_type_is_an_error(text: str, message: str) -> None:
    """The type is named as Go names it."""
    derived = cel.compile_derived(text, environment())
    assert isinstance(derived, cel.Program), derived
    value, _cost = cel.derive(derived, DEVICE)

    assert isinstance(value, cel.EvaluationError)
    assert value.message == message


@pytest.mark.parametrize(
    ("text", "env", "lists", "found"),
    [
        ("1.5", environment(), True, "double"),
        ("[1]", environment(new=True), False, "list(int)"),
        ("[[1]]", environment(new=True, lists=True), True, "list(list(int))"),
        ("device.capacity", environment(new=True), False, ""),
    ],
)
def test_the_type_of_a_derived_attribute_is_checked(
    text: str, env: cel.Environment, lists: bool, found: str
) -> None:
    """Lists need their gate in new expressions."""
    refused = cel.compile_derived(text, env)
    allowed = "(string, integer, boolean, semver)"
    allowed += " or a list of these scalars" if lists else ""

    assert isinstance(refused, cel.CompileError)
    assert refused.message.startswith(f"must evaluate to a primitive scalar {allowed}, not {found}")
