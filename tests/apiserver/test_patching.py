"""Patches as functions."""

from __future__ import annotations

import contextlib
import copy
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.generate_objects import KINDS, Maker, kind_of
from tests.apiserver.generate_patches import random_case
from tests.apiserver.go_oracle import ask
from tests.apiserver.replay import embedded_server

from dryrack.apiserver.decode import bodies
from dryrack.apiserver.ownership.patching import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    PatchProblem,
    PatchResult,
    apply_patch,
    json_patch,
    merge_patch,
    strategic,
)
from dryrack.apiserver.ownership.patching.problems import PatchError
from dryrack.kinds.schemas import schema_of
from dryrack.kinds.schemas.strict_decode import conform

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from("abc")
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c", "~", "/"]), inner, max_size=3)
    ),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
ORACLE_CASES = 2_000
APPLY = "application/apply-patch+yaml"


def by_json(live: dict[str, Any], *operations: Any) -> Any:
    made = apply_patch(live, json.dumps(operations).encode(), content_type=JSON_PATCH, schema=None)
    return made.object if isinstance(made, PatchResult) else made


def by_strategy(live: dict[str, Any], patch: Any) -> Any:
    group, _, version = live["apiVersion"].rpartition("/")
    schema = schema_of(group, version, live["kind"])
    content = json.dumps(patch).encode()
    made = apply_patch(live, content, content_type=STRATEGIC_MERGE_PATCH, schema=schema)
    return made.object if isinstance(made, PatchResult) else made


def pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


# JSON patch


def test_operations_of_a_json_patch_are_done_in_order() -> None:
    """Each sees what the one before it left."""
    made = by_json(
        {"a": {"x": [1, 2]}},
        {"op": "add", "path": "/a/x/1", "value": 9},
        {"op": "add", "path": "/a/x/-", "value": 8},
        {"op": "copy", "from": "/a/x", "path": "/b"},
        {"op": "move", "from": "/a", "path": "/c~1d~0"},
        {"op": "test", "path": "/c~1d~0/x/0", "value": 1},
        {"op": "remove", "path": "/b/-1"},
    )

    assert made == {"b": [1, 9, 2], "c/d~": {"x": [1, 9, 2, 8]}}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/none"},
        {"op": "add", "path": "/none/x", "value": 1},
        {"op": "add", "path": "/list/9", "value": 1},
        {"op": "replace", "path": "/list/x", "value": 1},
        {"op": "test", "path": "/list/0", "value": 1.0},
        {"op": "test", "path": "/list/0", "value": True},
        {"op": "sing", "path": "/list"},
        {"op": "add", "value": 1},
        {"op": "add", "path": "", "value": {}},
        {"op": "replace", "path": "", "value": 1},
    ],
)
def test_a_json_patch_that_does_not_fit_is_refused_without_a_reason(operation: Any) -> None:
    """The server gives no reason."""
    made = by_json({"list": [1]}, operation)

    assert isinstance(made, PatchProblem)
    assert (made.code, made.reason, made.details) == (422, "Invalid", {})


@given(OBJECTS)
def test_a_json_patch_does_not_change_what_it_is_given(live: dict[str, Any]) -> None:
    """The live object may be shared by other readers, so it is not changed."""
    before = copy.deepcopy(live)
    by_json(live, {"op": "add", "path": "/z", "value": 1}, {"op": "remove", "path": "/z"})

    assert live == before


@given(OBJECTS, VALUES)
def test_add_then_test_then_remove_is_nothing(live: dict[str, Any], value: Any) -> None:
    """An added value is present, passes a test, and is removed completely."""
    made = by_json(
        live,
        {"op": "add", "path": "/z", "value": value},
        {"op": "test", "path": "/z", "value": value},
        {"op": "remove", "path": "/z"},
    )

    assert made == live


def test_too_many_operations_are_refused() -> None:
    """A patch has at most ten thousand."""
    made = by_json({}, *([{"op": "test", "path": "/a"}] * 10_001))

    assert isinstance(made, PatchProblem)
    assert made.code == 413


def test_copies_of_copies_have_an_end() -> None:
    """Forty doublings of a text would fill any memory."""
    copies = [{"op": "copy", "from": "", "path": "/a/-"}] * 3
    grown = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 40
    made = by_json({"a": ["x" * 1000]}, *copies[:0], *grown)

    assert isinstance(made, PatchProblem)


@pytest.mark.parametrize("media_type", [JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY])
def test_no_depth_of_a_patch_takes_the_server_down(media_type: str) -> None:
    """It is refused, or reported as of the wrong type."""
    server = embedded_server()
    server.make_namespace("n")
    path = "/api/v1/namespaces/n/configmaps"
    made = b'{"metadata": {"name": "a"}, "data": {"x": "1"}}'
    server.send("POST", path, headers={"Content-Type": "application/json"}, content=made)
    for depth in (10, 190, 250, 500, 990, 20_000):
        value = '{"a":' * depth + "1" + "}" * depth
        patch = f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{value}}}'
        if media_type == JSON_PATCH:
            patch = f'[{{"op":"add","path":"/data/y","value":{value}}}]'
        headers = {"Content-Type": media_type}
        status, _, body = server.send(
            "PATCH", f"{path}/a?fieldManager=m", headers=headers, content=patch.encode()
        )

        assert json.loads(body)["kind"] == "Status"
        assert status in (400, 422, 500)
    server.close()


def test_a_json_patch_cannot_nest_an_object_without_end() -> None:
    """Copies into what was copied are deeper than any body; the result counts."""
    inward = [
        {"op": "copy", "from": "/metadata/labels", "path": "/metadata/labels/" + "a/" * level + "a"}
        for level in (0, 1, 3, 7, 15, 31, 63, 127)
    ]
    made = by_json({"metadata": {"labels": {}}}, *inward)

    assert bodies.is_too_deep(made)


# JSON merge patch


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_twice_is_once(live: dict[str, Any], patch: dict[str, Any]) -> None:
    """A client that is not sure whether it got through may send it again."""
    once = merge_patch.merge(live, patch)
    twice = merge_patch.merge(once, patch)

    # Nulls in a list that takes the place of a map stay until the next patch of it.
    assert merge_patch.without_nulls(twice) == merge_patch.without_nulls(once)


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_leaves_alone_what_it_does_not_name(
    live: dict[str, Any], patch: dict[str, Any]
) -> None:
    """And what it names as null is gone."""
    made = merge_patch.merge(live, patch)

    for name in live.keys() - patch.keys():
        assert made[name] == live[name]
    for name, value in patch.items():
        assert (name in made) == (value is not None)


@given(OBJECTS)
def test_an_empty_merge_patch_changes_nothing(live: dict[str, Any]) -> None:
    """Not even nulls that are there."""
    assert merge_patch.merge(live, {}) == live


@pytest.mark.parametrize(
    ("content_type", "text", "message"),
    [
        (
            MERGE_PATCH,
            b"[1]",
            (
                "error decoding patch: json: cannot unmarshal array into Go value of type"
                " map[string]interface {}"
            ),
        ),
        (MERGE_PATCH, b"null", "Invalid JSON Patch"),
        (
            JSON_PATCH,
            b"{}",
            (
                "error decoding patch: json: cannot unmarshal object into Go value of type"
                " []handlers.jsonPatchOp"
            ),
        ),
        (
            STRATEGIC_MERGE_PATCH,
            b"{",
            "invalid JSON at line 1 column 2: Expecting property name enclosed in double quotes",
        ),
    ],
)
def test_what_is_no_patch_is_a_bad_request(content_type: str, text: bytes, message: str) -> None:
    """In the words of the decoder."""
    made = apply_patch({}, text, content_type=content_type, schema=None)

    assert made == PatchProblem(400, "BadRequest", message)


def test_fields_that_are_there_twice_are_named_in_order() -> None:
    """Each repetition once, with its path."""
    text = b'{"a": 1, "b": [{"c": 1, "c": 2}], "a": {"d": 1, "d": 1}}'

    assert bodies.repeated_fields(text, json.loads(text)) == (
        'duplicate field "b[0].c"',
        'duplicate field "a"',
        'duplicate field "a.d"',
    )


# Strategic merge patch


def test_items_are_found_by_their_merge_key() -> None:
    """The others stay, in their order."""
    live = pod(containers=[{"name": "a", "image": "1"}, {"name": "b", "image": "1"}])
    made = by_strategy(live, {"spec": {"containers": [{"name": "b", "image": "2"}]}})

    assert made["spec"]["containers"] == [
        {"name": "a", "image": "1"},
        {"name": "b", "image": "2"},
    ]


def test_an_item_that_is_deleted_goes() -> None:
    """By its merge key alone."""
    live = pod(containers=[{"name": "a"}, {"name": "b"}])
    made = by_strategy(live, {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}})

    assert made["spec"]["containers"] == [{"name": "b"}]


def test_items_come_in_the_order_that_is_asked_for() -> None:
    """Items that the order does not name keep their neighbours."""
    live = pod(containers=[{"name": "a"}, {"name": "b"}, {"name": "c"}])
    order = [{"name": "c"}, {"name": "a"}]
    made = by_strategy(live, {"spec": {"$setElementOrder/containers": order}})

    assert [item["name"] for item in made["spec"]["containers"]] == ["b", "c", "a"]


def test_tolerations_are_replaced_whole() -> None:
    """A list without a merge key is one value."""
    live = pod(tolerations=[{"key": "a"}])
    made = by_strategy(live, {"spec": {"tolerations": [{"key": "b"}]}})

    assert made["spec"]["tolerations"] == [{"key": "b"}]


def test_scalars_are_taken_from_a_list_that_is_merged() -> None:
    """Finalizers are united, and deleted by a list of their own."""
    live = {**pod(), "metadata": {"finalizers": ["a", "b"]}}
    patch = {"metadata": {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"]}}

    assert sorted(by_strategy(live, patch)["metadata"]["finalizers"]) == ["b", "c"]


@pytest.mark.parametrize("seed", range(60))
def test_a_strategic_merge_changes_neither_the_object_nor_the_patch(seed: int) -> None:
    """Both may be used again."""
    kind = kind_of(*KINDS[seed % len(KINDS)])
    maker = Maker(kind, Random(seed))
    live = conform(kind.schema, maker.object()).object
    patch = maker.patch(live)
    before = json.dumps([live, patch])
    with contextlib.suppress(PatchError):
        strategic.merge(live, patch, kind.schema)

    assert json.dumps([live, patch]) == before


@pytest.mark.real
def test_strategic_merges_are_those_of_kubernetes() -> None:
    """Go and we return the same object or a refusal for random patches with directives."""
    cases = []
    for seed in range(ORACLE_CASES):
        kind = kind_of(*KINDS[seed % len(KINDS)])
        maker = Maker(kind, Random(seed))
        live = conform(kind.schema, maker.object()).object
        cases.append({"live": live, "patch": maker.patch(live)})

    for seed, (case, answer) in enumerate(zip(cases, ask("strategic", cases), strict=True)):
        schema = kind_of(*KINDS[seed % len(KINDS)]).schema
        try:
            made = strategic.merge(case["live"], case["patch"], schema)
        except PatchError:
            made = None

        assert made == (None if "error" in answer else answer["object"]), f"seed {seed}"


@pytest.mark.real
def test_json_patches_and_merge_patches_are_those_of_the_server() -> None:
    """
    Go and we return the same object or a refusal; the server gives no reason.

    Its library panics when it tests a list with a null in it; there is nothing to compare then.
    """
    cases = [random_case(seed) for seed in range(ORACLE_CASES)]

    for seed, (asked, answer) in enumerate(zip(cases, ask("patches", cases), strict=True)):
        if answer.get("error", "").startswith("panic"):
            continue
        try:
            made = _patched(asked)
        except PatchError:
            made = None

        object_text = json.dumps(answer.get("object"), sort_keys=True)
        assert made == (None if "error" in answer else object_text), f"seed {seed}"


def _patched(asked: dict[str, Any]) -> str:
    live = asked["live"]
    patch = asked["patch"]
    made = merge_patch.merge(live, patch) if asked["merge"] else json_patch.apply(live, patch)
    return json.dumps(made, sort_keys=True)
