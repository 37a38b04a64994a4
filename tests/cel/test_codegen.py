"""The fast tier never says anything but what the exact tier says."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dryrack import cel
from dryrack.cel.checking.checker import Checked
from dryrack.cel.checking.frontend import compile_text
from dryrack.cel.evaluation.codegen import generate
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
        )
    ),
)


@st.composite
def _devices(draw: st.DrawFn) -> cel.Device:
    names = ("model", "count", "flag", "version", "other.example.com/model")
    drawn = {name: draw(_VALUES) for name in names}
    memory = draw(st.sampled_from((None, "40Gi", "80Gi", "1")))
    return cel.Device(
        "gpu.example.com",
        {name: value for name, value in drawn.items() if value is not None},
        {} if memory is None else {"memory": DeviceCapacity(value=Quantity.parse(memory))},
        None,
    )


def _used(program: cel.Program, device: cel.Device) -> bool | str:
    try:
        return program.matches(device)
    except cel.EvaluationError as error:
        return error.message


def _assert_tiers_agree(program: cel.Program, device: cel.Device) -> None:
    verdict, _cost = program.matches_with_cost(device)
    exact = verdict.message if isinstance(verdict, cel.EvaluationError) else verdict

    # The first time by the exact tier, the second by generated code if there is any.
    assert [_used(program, device) for _ in range(2)] == [exact, exact]


@settings(max_examples=400, deadline=None)
@given(_EXPRESSIONS, _devices(), st.sampled_from(ENVIRONMENTS))
def test_every_tier_gives_the_same_answer(
    text: str, device: cel.Device, env: cel.Environment
) -> None:
    """The tier that is used and the exact tier agree on the verdict and on the error."""
    program = cel.compile_expression(text, env)

    if isinstance(program, cel.Program):
        _assert_tiers_agree(program, device)


@pytest.mark.parametrize(
    "expression",
    [
        "quantity('99999999999999999999').add(quantity('1')).compareTo(quantity('1e20')) == 0",
        "[1, 2].all(x, quantity('1e30').sub(quantity('1')).isLessThan(quantity('1e30')))",
        f"{_MEMORY}.isLessThan(quantity('99999999999999999999')) && !{_MEMORY}.isInteger()",
    ],
)
def test_a_quantity_stays_what_it_is(expression: str) -> None:
    """To add to a large one, or to compare with it, changes it; who asks again must not see it."""
    memory = {"memory": DeviceCapacity(value=Quantity.parse("40Gi"))}
    device = cel.Device("gpu.example.com", {}, memory, None)
    program = cel.compile_expression(expression, ENVIRONMENTS[0])

    assert isinstance(program, cel.Program)
    assert [program.matches(device) for _ in range(4)] == [True] * 4


def test_ordinary_selectors_have_generated_code() -> None:
    """What people write does not go through the exact tier."""
    text = f'device.driver == "gpu.example.com" && {_DOMAIN}.model == "A100"'
    checked = compile_text(text, ENVIRONMENTS[0])

    assert isinstance(checked, Checked)
    assert generate(checked, ENVIRONMENTS[0], lambda _view: False) is not None
