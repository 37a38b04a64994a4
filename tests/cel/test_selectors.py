"""A verdict that is remembered is the verdict that an evaluation on the device gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryrack import cel
from dryrack.cel.device_reads import Read, reads_of
from dryrack.cel.selectors import SelectorFailure, SelectorTable
from dryrack.kinds.quantity import Quantity
from dryrack.kinds.resource import DeviceAttribute, DeviceCapacity

ENVIRONMENTS = [
    cel.Environment(consumable_capacity=True, list_type_attributes=lists, new_expressions=False)
    for lists in (False, True)
]
_DOMAIN = 'device.attributes["gpu.example.com"]'
_OTHER = 'device.attributes["other.example.com"]'
_MEMORY = 'device.capacity["gpu.example.com"].memory'
_LEAVES = (
    "true", "false", 'device.driver == "gpu.example.com"', f"{_DOMAIN}.flag", f"{_DOMAIN}.missing",
    f'{_DOMAIN}.model == "A100"', f'{_DOMAIN}.model != "A100"', f"{_DOMAIN}.count == 1",
    f"{_DOMAIN}.flag == 1", f"{_DOMAIN}.count == true", f"{_DOMAIN}.count > 0",
    f'{_DOMAIN}.model > "A"', f"{_DOMAIN}.model > 1", f'{_DOMAIN}.model in ["A100", "B200"]',
    f"{_DOMAIN}.count in [1, 2]", f'{_DOMAIN}.version in ["A100"]', f'"model" in {_DOMAIN}',
    f"has({_DOMAIN}.model)", f"has({_OTHER}.model)", "has(device.attributes.nothing)",
    f'{_DOMAIN}.version == "1.2.3"', f'{_DOMAIN}.version == semver("1.2.3")',
    f'{_DOMAIN}.version.isGreaterThan(semver("1.0.0"))', f'{_DOMAIN}.model.matches("^A")',
    f'{_DOMAIN}.count.matches("^A")', f'{_DOMAIN}.version.compareTo(semver("1.0.0")) >= 0',
    f'{_MEMORY}.compareTo(quantity("40Gi")) >= 0', f'{_MEMORY}.isLessThan(quantity("1"))',
    f"{_MEMORY} == {_MEMORY}.add(0)", f"cel.bind(a, {_DOMAIN}, a.flag && a.count == 1)",
    "cel.bind(a, device.attributes, has(a.nothing.model))",
    f'cel.bind(o, {_DOMAIN}.?model, o.orValue("") == "A100")',
    f'{_DOMAIN}.?missing.orValue("x") == "x"', f"{_DOMAIN}.exists(k, k == 'model')",
    f"[1, 2].all(x, x > {_DOMAIN}.count)", "[1, 2].exists(x, 1 / (x - 1) == 1)",
    "[dyn(1), dyn(true)].exists(x, x == 1)", "[1, 2, 3].map(x, x * 2).exists(x, x == 4)",
    f"{_DOMAIN}.count + 9223372036854775807 > 0", f"{_DOMAIN}.model.size() == 4",
    f"!{_DOMAIN}.flag", f"({_DOMAIN}.flag ? {_DOMAIN}.count : 2) == 1", "dyn(1) && true",
)  # fmt: skip

_EXPRESSIONS = st.recursive(
    st.sampled_from(_LEAVES),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(("&&", "||", "==", "!=")), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        ),
        inner.map(lambda operand: f"!({operand})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
        inner.map(lambda operand: f"[1, 2].all(i, {operand} || i == 2)"),
    ),
    max_leaves=6,
)

_VALUES = st.one_of(
    st.none(),
    st.sampled_from(
        (
            DeviceAttribute(string_value="A100"),
            DeviceAttribute(string_value="B"),
            DeviceAttribute(int_value=1),
            DeviceAttribute(int_value=0),
            DeviceAttribute(bool_value=True),
            DeviceAttribute(bool_value=False),
            DeviceAttribute(version_value="1.2.3"),
            DeviceAttribute(version_value="1"),
            DeviceAttribute(string_values=("A100", "B")),
            DeviceAttribute(version_values=("1.2.3", "1")),
        )
    ),
)


@st.composite
def _devices(draw: st.DrawFn) -> cel.Device:
    own = draw(st.sampled_from(("", "gpu.example.com/")))
    names = ["model", f"{own}count", "flag", f"{own}version", f"{own}model"]
    names += ["other.example.com/model", "nothing"]
    drawn = {name: draw(_VALUES) for name in names}
    memory = draw(st.sampled_from((None, "40Gi", "80Gi", "1")))
    return cel.Device(
        "gpu.example.com",
        {name: value for name, value in drawn.items() if value is not None},
        {} if memory is None else {"memory": DeviceCapacity(value=Quantity.parse(memory))},
        None,
    )


def _evaluate(program: cel.Program, device: cel.Device) -> bool | str:
    verdict, _cost = program.matches_with_cost(device)
    return verdict.message if isinstance(verdict, cel.EvaluationError) else verdict


@settings(max_examples=400, deadline=None)
@given(_EXPRESSIONS, st.lists(_devices(), min_size=2, max_size=8), st.sampled_from(ENVIRONMENTS))
def test_a_table_answers_as_an_evaluation_on_each_device(
    text: str, devices: list[cel.Device], env: cel.Environment
) -> None:
    """The verdict or error is that of the device itself, after any other devices."""
    program = cel.compile_expression(text, env)
    if not isinstance(program, cel.Program):
        return
    table = SelectorTable(lambda expression: cel.compile_expression(expression, env))
    for device in devices:
        verdict = table.judge((text,), device)
        answer = verdict.message if isinstance(verdict, SelectorFailure) else verdict
        assert answer == _evaluate(program, device)


@pytest.mark.parametrize(
    "expression",
    [
        "quantity('99999999999999999999').add(quantity('1')).compareTo(quantity('1e20')) == 0",
        "[1, 2].all(x, quantity('1e30').sub(quantity('1')).isLessThan(quantity('1e30')))",
        f"{_MEMORY}.isLessThan(quantity('99999999999999999999')) && !{_MEMORY}.isInteger()",
    ],
)
def test_a_quantity_stays_what_it_is(expression: str) -> None:
    """An evaluation that changes a large quantity does not change it for the next evaluation."""
    memory = {"memory": DeviceCapacity(value=Quantity.parse("40Gi"))}
    device = cel.Device("gpu.example.com", {}, memory, None)
    program = cel.compile_expression(expression, ENVIRONMENTS[0])

    assert isinstance(program, cel.Program)
    assert [program.matches(device) for _ in range(4)] == [True] * 4


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("true", []),
        ("device.driver == 'd' && device.allowMultipleAllocations", []),
        (f"{_DOMAIN}.model == 'A100' && has({_DOMAIN}.flag)", ["flag", "model"]),
        (f"'count' in {_DOMAIN} && {_DOMAIN}['model'] == 'B'", ["count", "model"]),
        (f"{_DOMAIN}.?numa.orValue(0) == 0 && {_DOMAIN}[?'model'].hasValue()", ["model", "numa"]),
        (f"cel.bind(a, {_DOMAIN}, a.flag && a.count == 1)", ["count", "flag"]),
        (f"cel.bind(a, {_DOMAIN}, [1].all(i, i < a.count))", ["count"]),
        (f"cel.bind(a, {_DOMAIN}, [1].all(a, a < 2) && a.flag)", ["flag"]),
        (f"cel.bind(a, {_DOMAIN}.model, a == 'A100')", ["model"]),
        (f"cel.bind(a, {_DOMAIN}, a.all(n, n == 'model'))", None),
        (f"cel.bind(device, {_DOMAIN}, device.driver == 'x')", None),
        (f"{_DOMAIN}.exists(n, n == 'model')", None),
        ("'gpu.example.com' in device.attributes", None),
        ("cel.bind(d, device, d.driver == 'x')", None),
    ],
)
def test_names_that_a_selector_reads(text: str, names: list[str] | None) -> None:
    """The names are known if the selector reads by name alone."""
    tree = cel.parse(text)

    assert not isinstance(tree, cel.Issues)
    reads = reads_of(tree)
    assert (None if reads is None else sorted(read.name for read in reads)) == names


def test_a_read_has_its_kind_and_domain() -> None:
    """An attribute and a capacity of one name are two reads, and so are two domains."""
    tree = cel.parse(f"{_MEMORY}.isInteger() && {_OTHER}.memory == {_DOMAIN}.memory")

    assert not isinstance(tree, cel.Issues)
    assert set(reads_of(tree) or ()) == {
        Read("capacity", "gpu.example.com", "memory"),
        Read("attributes", "gpu.example.com", "memory"),
        Read("attributes", "other.example.com", "memory"),
    }
