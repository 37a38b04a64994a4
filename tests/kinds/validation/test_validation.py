"""Messages, fixes and order of problems, and values that are not checked."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.validation import documents

from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode, to_builtins
from dryrack.kinds.releases import FeatureSet, Release
from dryrack.kinds.resource import ResourceClaim, ResourceSlice
from dryrack.kinds.text.quoting import quoted
from dryrack.kinds.validation import FieldProblem, Reason
from dryrack.kinds.validation.device_rules import DeviceRules, validate
from dryrack.kinds.validation.gates import Dropped, drop_disabled
from dryrack.kinds.validation.parts import TOO_COMPLEX, ExpressionProblem
from dryrack.kinds.validation.pods import pod_claims
from dryrack.kinds.validation.problems import Token, invalid, shown_value
from dryrack.kinds.validation.slices import slice_warnings


def slice_with(**device: Any) -> ResourceSlice:
    document = {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.example.com",
            "pool": {"name": "p", "resourceSliceCount": 1},
            "allNodes": True,
            "devices": [{"name": "d", **device}],
        },
    }
    return decode(document, ResourceSlice)


def claim_with(expression: str) -> ResourceClaim:
    selectors = [{"cel": {"expression": expression}}]
    request = {"name": "r", "exactly": {"deviceClassName": "c", "selectors": selectors}}
    return decode(
        {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}, ResourceClaim
    )


class Compiler:
    """Answers always the same, and remembers what it was asked."""

    def __init__(self, problem: ExpressionProblem | None) -> None:
        self.problem = problem
        self.asked: list[tuple[str, bool]] = []

    def check(self, expression: str, *, stored: bool) -> ExpressionProblem | None:
        self.asked.append((expression, stored))
        return self.problem

    def check_derived(self, expression: str) -> tuple[ExpressionProblem | None, int]:
        return self.problem, 0


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a", '"a"'),
        ('a"\\\n\t\x00\x7f', r'"a\"\\\n\t\x00\x7f"'),
        ("é\u2028\u00a0\U000e0001", '"é\\u2028\\u00a0\\U000e0001"'),
        (Token("<a>"), r'"\u003ca\u003e"'),
        (True, "true"),
        (-3, "-3"),
        (None, "null"),
        (("a", "b"), '["a","b"]'),
    ],
)
def test_values_are_shown_as_go_shows_them(value: object, shown: str) -> None:
    """Quotes and escapes of a message are Go's, not Python's."""
    assert shown_value(value) == shown


def test_a_problem_reads_like_the_servers_line() -> None:
    """The text of a problem is the line that kubectl prints."""
    problem = invalid("spec.pool.generation", -1, "must be greater than or equal to zero")

    assert str(problem) == (
        "spec.pool.generation: Invalid value: -1: must be greater than or equal to zero"
    )


@pytest.mark.parametrize(
    ("device", "fix"),
    [
        ({"attributes": {"compute-capability": {"int": 9}}}, "use 'compute_capability'"),
        ({"attributes": {"9lives": {"int": 9}}}, "use '_9lives'"),
        ({"name": "GPU_0"}, "use 'gpu-0'"),
        ({"name": "gpu.0"}, "use 'gpu-0'"),
        ({"taints": [{"key": "a", "effect": "noexecute"}]}, "write 'NoExecute'"),
    ],
)
def test_a_fix_is_named_where_one_is_known(device: dict[str, Any], fix: str) -> None:
    """A problem has a fix where one is known."""
    (problem,) = validate(slice_with(**device))

    assert problem.fix == fix


def test_a_slash_in_a_driver_name_becomes_a_dot() -> None:
    """The name that a seed of this project uses is mended as that project means it."""
    document = documents.stored(documents.SLICES[0])
    document["spec"]["driver"] = "karpenter.sh/dra-kwok-driver"
    (problem,) = validate(decode(document, ResourceSlice))

    assert problem.fix == "use 'karpenter.sh.dra-kwok-driver'"


def test_an_expression_is_left_to_its_checker() -> None:
    """The message of the compiler is the detail of an invalid value."""
    compiler = Compiler(ExpressionProblem("compilation failed: why"))
    problems = validate(claim_with("no"), checker=compiler)

    field = "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert problems == (FieldProblem(Reason.INVALID, field, "no", "compilation failed: why"),)
    assert compiler.asked == [("no", False)]


def test_an_expression_can_be_too_complex() -> None:
    """Cost is forbidden, not invalid, as in the server."""
    (problem,) = validate(claim_with("x"), checker=Compiler(TOO_COMPLEX))

    assert problem.reason is Reason.FORBIDDEN
    assert problem.message == "Forbidden: too complex, exceeds cost limit"


def test_a_long_expression_is_not_even_compiled() -> None:
    """More than 10 KiB never reach the compiler."""
    compiler = Compiler(None)
    (problem,) = validate(claim_with("x" * (10 * 1024 + 1)), checker=compiler)

    assert problem.reason is Reason.TOO_LONG
    assert compiler.asked == []


@pytest.mark.parametrize(
    ("release", "asked"), [(Release.V1_36, [("true", True)]), (Release.V1_37, [])]
)
def test_selectors_that_a_class_had_before_are_stored_ones(
    release: Release, asked: list[tuple[str, bool]]
) -> None:
    """Only 1.36 checks selectors that stay exactly as they were, and as stored ones."""
    meta = {"name": "c", "resourceVersion": "1"}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": meta}
    selectors = [{"cel": {"expression": "true"}}]
    old = {**head, "spec": {"selectors": selectors}}
    more = {**head, "spec": {"selectors": selectors * 2}}
    compiler = Compiler(None)
    rules = DeviceRules("DeviceClass", compiler, features=FeatureSet(release))
    assert rules.change_problems(old, old, "") == ()
    assert compiler.asked == asked
    assert rules.change_problems(more, old, "") == ()
    assert compiler.asked == [*asked, ("true", False), ("true", False)]


def test_without_a_checker_expressions_pass() -> None:
    """Nothing here pretends to know CEL."""
    assert validate(claim_with("true +")) == ()


def test_admin_access_is_not_judged_in_an_unknown_namespace() -> None:
    """Admin access is checked only if the labels of the namespace are known."""
    document = documents.stored(documents.CLAIMS[0])
    document["spec"]["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    claim = decode(document, ResourceClaim)

    assert validate(claim) == ()
    assert [p.reason for p in validate(claim, namespace_labels={})] == [Reason.FORBIDDEN]


def test_the_answer_does_not_depend_on_the_order_of_keys() -> None:
    """Maps are checked in the order of their keys."""
    attributes: dict[str, Any] = {"b-": {}, "a-": {}, "c-": {}}
    backwards = dict(reversed(attributes.items()))

    assert validate(slice_with(attributes=attributes)) == validate(slice_with(attributes=backwards))


def test_capitals_in_a_driver_name_are_warned_of() -> None:
    """The server accepts capitals with a warning."""
    (warning,) = slice_warnings("GPU.example.com")
    assert warning.startswith("spec.driver: driver names should be lowercase")
    assert warning.endswith('"GPU.example.com" contains uppercase characters')
    assert list(slice_warnings("gpu.example.com")) == []


def test_fields_of_disabled_gates_are_dropped() -> None:
    """Lists in attributes and mappings of node resources are dropped; their paths are returned."""
    given = to_builtins(
        slice_with(
            attributes={"a": {"int": 1, "ints": [1]}, "b": {"strings": []}},
            nodeAllocatableResourceMappings={"cpu": {"capacityKey": "x"}},
        )
    )
    dropped = drop_disabled(given)

    assert dropped.fields == (
        "spec.devices[0].nodeAllocatableResourceMappings",
        "spec.devices[0].attributes[a].ints",
        "spec.devices[0].attributes[b].strings",
    )
    assert dropped.document == to_builtins(slice_with(attributes={"a": {"int": 1}, "b": {}}))


def test_a_feature_that_the_stored_object_uses_is_kept() -> None:
    """A disabled feature that the stored object uses is kept in the whole object."""
    old = to_builtins(slice_with(attributes={"a": {"ints": [1]}}))
    new = to_builtins(slice_with(attributes={"b": {"bools": [True]}}))

    assert drop_disabled(new, old) == Dropped(new, ())


def test_a_static_pod_has_no_claims() -> None:
    """The mirror of a static pod is refused for each claim it names."""
    document = documents.PODS[0]
    mirror = {"metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}}
    problems = list(pod_claims(decode({**document, **mirror}, Pod)))

    assert [problem.reason for problem in problems] == [Reason.FORBIDDEN] * 2


def test_quotes_can_be_told_from_letters() -> None:
    """A quoted text has exactly two quotes that are not escaped."""
    assert quoted('"') == r'"\""'


def test_a_time_that_is_none_is_the_whole_answer() -> None:
    """The server refuses to read such an object, so nothing else can be said of it."""
    document = documents.stored(documents.SLICES[0])
    document["metadata"]["creationTimestamp"] = "yesterday"
    document["spec"]["driver"] = "also wrong/"
    (problem,) = validate(decode(document, ResourceSlice))

    assert (problem.reason, problem.field) == (
        Reason.TYPE_INVALID,
        "metadata.creationTimestamp",
    )
