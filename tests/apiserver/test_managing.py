"""Owners of fields, and server-side apply."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.generate_objects import KINDS, Maker, kind_of
from tests.apiserver.go_oracle import ASKED, ask
from tests.apiserver.one_version import OneVersion
from tests.apiserver.owner_series import NOW, comparable, followed, read, series

from dryrack.apiserver.ownership.server_side_apply import (
    ApplyConflicts,
    ApplyProblem,
    Tracked,
    apply_configuration,
    fieldsets,
    keep_times,
    managed_after_update,
    manager_name,
)
from dryrack.apiserver.ownership.server_side_apply.atoms import atom_of
from dryrack.apiserver.ownership.server_side_apply.comparing import compare, differing_parts
from dryrack.apiserver.ownership.server_side_apply.entries import (
    UPDATE,
    Author,
    Owned,
    cap_updaters,
    decode,
    encode,
)
from dryrack.apiserver.ownership.server_side_apply.typed import TypeViolationError
from dryrack.kinds.schemas import custom, schema_of
from dryrack.kinds.schemas.shape import fill_unset_to_atoms

LATER = "2026-01-01T00:00:09Z"
ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"s"', "v:1"])
PATHS = st.lists(st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple), max_size=8)
SETS = PATHS.map(fieldsets.of_paths)
ORACLE_SERIES = 900


def tracked(kind: str = "ConfigMap", *, group: str = "", subresource: str = "") -> Tracked:
    api_version = f"{group}/v1" if group else "v1"
    versions = OneVersion(api_version, schema_of(group, "v1", kind, ASKED))
    reset = (("spec",),) if subresource else (("status",),)
    return Tracked(api_version, kind, versions, subresource, reset)


def config_map(**data: str) -> dict[str, Any]:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    return {**made, "data": data} if data else made


def apply(live: Any, wanted: Any, manager: str, *, force: bool = False, now: str = NOW) -> Any:
    made = apply_configuration(
        live, wanted, manager=manager, force=force, now=now, tracked=tracked()
    )
    if isinstance(made, dict):
        made["metadata"]["uid"] = "u"
    return made


def update(live: Any, new: Any, manager: str, *, now: str = NOW) -> Any:
    made = managed_after_update(live, new, manager=manager, now=now, tracked=tracked())
    return {**made, "metadata": {**made["metadata"], "uid": "u"}}


def owned_by(value: Any, manager: str) -> list[str]:
    entries = value["metadata"].get("managedFields", [])
    mine = [entry["fieldsV1"] for entry in entries if entry["manager"] == manager]
    return [fieldsets.path_text(path) for fields in mine for path in fieldsets.paths(fields)]


# Sets of fields


@given(SETS, SETS)
def test_the_union_has_what_either_has(left: Any, right: Any) -> None:
    """And nothing else; it does not matter which comes first."""
    both = set(fieldsets.paths(left)) | set(fieldsets.paths(right))

    assert set(fieldsets.paths(fieldsets.union(left, right))) == both
    assert fieldsets.union(left, right) == fieldsets.union(right, left)


@given(SETS, SETS)
def test_difference_and_intersection_are_those_of_sets(left: Any, right: Any) -> None:
    """Members are compared one by one, without those above or below them."""
    mine = set(fieldsets.paths(left))
    yours = set(fieldsets.paths(right))

    assert set(fieldsets.paths(fieldsets.difference(left, right))) == mine - yours
    assert set(fieldsets.paths(fieldsets.intersection(left, right))) == mine & yours


@given(SETS, SETS)
def test_without_takes_what_is_below_too(left: Any, right: Any) -> None:
    """A removed set also removes the fields below its members."""
    yours = set(fieldsets.paths(right))
    kept = {
        path
        for path in fieldsets.paths(left)
        if not any(path[:length] in yours for length in range(1, len(path) + 1))
    }

    assert set(fieldsets.paths(fieldsets.without(left, right))) == kept


@given(SETS)
def test_a_set_is_read_as_it_was_written(fields: Any) -> None:
    """In the order of the server, and without a change."""
    written = json.loads(json.dumps(fieldsets.in_order(fields)))

    assert fieldsets.decode(written) == fields


def test_paths_are_shown_as_people_read_them() -> None:
    """Fields by name, items by their keys or values."""
    path = ("f:spec", "f:ports", 'k:{"containerPort":80,"protocol":"TCP"}', 'v:"a"', "i:3")

    assert fieldsets.path_text(path) == '.spec.ports[containerPort=80,protocol="TCP"][="a"][3]'


# Updates


def test_a_create_owns_what_it_says() -> None:
    """Neither names nor what the server adds."""
    made = update(None, config_map(x="1"), "alice")

    assert made["metadata"]["managedFields"] == [
        {
            "manager": "alice",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:x": {}}},
        }
    ]


def test_pods_of_a_template_own_the_same_and_others_their_own() -> None:
    """Pods of one template share the computed fields; other pods do not."""

    def created(name: str, image: str = "i", **labels: str) -> Any:
        spec = {"containers": [{"name": "c", "image": image}]}
        metadata = {"name": name, "uid": name, "labels": {"app": "x", **labels}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return managed_after_update(None, pod, manager="m", now=NOW, tracked=tracked("Pod"))

    first = created("a")
    again = created("b")
    labelled = created("c", only="here")
    status = tracked("Pod", subresource="status")
    by_status = managed_after_update(None, first, manager="m", now=NOW, tracked=status)

    assert (first["metadata"]["name"], again["metadata"]["name"]) == ("a", "b")
    assert owned_by(again, "m") == owned_by(first, "m") == owned_by(created("a"), "m")
    assert set(owned_by(labelled, "m")) - set(owned_by(first, "m")) == {".metadata.labels.only"}
    assert not any(path.startswith(".spec") for path in owned_by(by_status, "m"))


def test_an_update_takes_what_it_changes_and_leaves_the_rest() -> None:
    """A removed field has no owner."""
    live = update(None, config_map(x="1", y="1", z="1"), "alice")
    new = {**live, "data": {"x": "2", "y": "1"}}
    made = update(live, new, "bob", now=LATER)

    assert owned_by(made, "alice") == [".data", ".data.y"]
    assert owned_by(made, "bob") == [".data.x"]


def test_an_update_of_nothing_changes_no_owner() -> None:
    """Not even the time."""
    live = update(None, config_map(x="1"), "alice")

    assert update(live, live, "bob", now=LATER) == live


def test_owners_that_are_reset_are_not_tracked_again_by_updates() -> None:
    """An object without owners stays so until the first apply."""
    live = update(None, config_map(x="1"), "alice")
    reset = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    made = update(live, reset, "bob")

    assert "managedFields" not in made["metadata"]
    assert "managedFields" not in update(made, {**made, "data": {}}, "bob")["metadata"]


def test_many_updaters_become_one() -> None:
    """At most ten authors of updates are kept; the oldest become one."""
    managed = {
        Author(f"m{number:02}", UPDATE, "v1"): Owned({f"f:{number}": {}}, "v1", f"{number:02}")
        for number in range(12)
    }
    made = cap_updaters(managed)

    assert len(made) == 10
    assert made[Author("ancient-changes", UPDATE, "v1")].fields == {"f:0": {}, "f:1": {}, "f:2": {}}


def test_the_status_subresource_owns_the_status_alone() -> None:
    """And the main resource all but the status."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}}
    written = {**node, "spec": {"podCIDR": "x"}, "status": {"phase": "Running"}}
    main = managed_after_update(None, written, manager="a", now=NOW, tracked=tracked("Node"))
    by_status = managed_after_update(
        main, written, manager="b", now=NOW, tracked=tracked("Node", subresource="status")
    )

    assert owned_by(main, "a") == [".spec.podCIDR"]
    assert owned_by(by_status, "b") == []


# Apply


def test_an_apply_takes_away_what_it_no_longer_names() -> None:
    """An apply removes a field that it no longer names, unless another manager owns it."""
    live = apply(None, config_map(x="1", y="1"), "alice")
    live = apply(live, config_map(y="1"), "bob")
    made = apply(live, config_map(), "alice")

    assert made["data"] == {"y": "1"}
    assert owned_by(made, "alice") == []


def test_an_apply_that_changes_what_others_own_is_refused() -> None:
    """A conflict has one cause for each field and owner."""
    live = apply(None, config_map(x="1"), "alice")
    live = update(live, {**live, "data": {"x": "1", "y": "1"}}, "bob")
    made = apply(live, config_map(x="2", y="2"), "carol")

    assert made == ApplyConflicts(
        'Apply failed with 2 conflicts: conflicts with "alice":\n- .data.x\n'
        'conflicts with "bob" using v1:\n- .data.y',
        (
            (".data.x", 'conflict with "alice"'),
            (".data.y", 'conflict with "bob" using v1'),
        ),
    )


def test_an_apply_by_force_takes_what_it_changes() -> None:
    """The owner before it owns it no more."""
    live = apply(None, config_map(x="1", y="1"), "alice")
    made = apply(live, config_map(x="2"), "bob", force=True)

    assert made["data"] == {"x": "2", "y": "1"}
    assert owned_by(made, "alice") == [".data.y"]
    assert owned_by(made, "bob") == [".data.x"]


def test_the_first_apply_finds_an_owner_of_what_was_there() -> None:
    """The first apply conflicts with existing fields that had no owner."""
    live = {**config_map(x="1"), "metadata": {"name": "a", "uid": "u"}}
    made = apply(live, config_map(x="2"), "alice")

    assert isinstance(made, ApplyConflicts)
    assert made.causes == ((".data.x", 'conflict with "before-first-apply" using v1'),)


def test_an_apply_of_what_is_no_such_object_is_refused() -> None:
    """In the server's words."""
    made = apply(None, {**config_map(), "date": {}}, "alice")

    assert made == ApplyProblem(
        500,
        "",
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .date: field not"
        " declared in schema",
    )


def test_kubectl_takes_over_what_it_applied_from_the_client() -> None:
    """Fields of kubectl's annotation that still have its values are kubectl's."""
    before = config_map(x="1")
    annotation = "kubectl.kubernetes.io/last-applied-configuration"
    live = copy.deepcopy(before)
    live["metadata"]["annotations"] = {annotation: json.dumps(before)}
    live = update(None, live, "kubectl-client-side-apply")
    made = apply(live, config_map(x="2"), "kubectl")
    refused = apply(live, config_map(x="2"), "other")

    assert made["data"] == {"x": "2"}
    assert json.loads(made["metadata"]["annotations"][annotation])["data"] == {"x": "2"}
    assert isinstance(refused, ApplyConflicts)


def test_an_object_without_a_schema_is_owned_field_by_field() -> None:
    """Its lists are whole."""
    one = Tracked("x.example.com/v1", "X", OneVersion("x.example.com/v1", None))
    wanted = {
        "apiVersion": "x.example.com/v1",
        "kind": "X",
        "metadata": {"name": "a"},
        "spec": {"a": {"b": 1}, "c": [{"name": "d"}]},
    }
    made = apply_configuration(None, wanted, manager="m", force=False, now=NOW, tracked=one)
    assert isinstance(made, dict)

    assert owned_by(made, "m") == [".spec", ".spec.a", ".spec.c", ".spec.a.b"]


def test_lists_of_a_custom_resource_are_merged_by_their_keys() -> None:
    """As its schema says."""
    item = {"type": "object", "properties": {"n": {"type": "string"}, "v": {"type": "integer"}}}
    items = {
        "type": "array",
        "items": item,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["n"],
    }
    spec = {"type": "object", "properties": {"items": items}}
    schema = custom({"type": "object", "properties": {"spec": spec}})
    one = Tracked("x.example.com/v1", "X", OneVersion("x.example.com/v1", schema))
    base = {"apiVersion": "x.example.com/v1", "kind": "X", "metadata": {"name": "a", "uid": "u"}}

    live: Any = None
    for manager, items_wanted in (("a", [{"n": "1", "v": 1}]), ("b", [{"n": "2", "v": 2}])):
        wanted = {**base, "spec": {"items": items_wanted}}
        live = apply_configuration(live, wanted, manager=manager, force=False, now=NOW, tracked=one)

    assert live["spec"]["items"] == [{"n": "1", "v": 1}, {"n": "2", "v": 2}]
    assert owned_by(live, "b") == [
        '.spec.items[n="2"]',
        '.spec.items[n="2"].n',
        '.spec.items[n="2"].v',
    ]


def test_whoever_owned_a_part_owns_the_whole_when_the_schema_says_it_is_one() -> None:
    """A map of a custom resource that was owned field by field becomes one value."""
    base = {"apiVersion": "x.example.com/v1", "kind": "X", "metadata": {"name": "a", "uid": "u"}}
    wanted = {**base, "spec": {"a": {"b": 1}, "c": 1}}
    inner = {"type": "object", "additionalProperties": {"type": "integer"}}
    made: Any = None
    for extension in ({}, {"x-kubernetes-map-type": "atomic"}):
        fields = {"a": {**inner, **extension}, "c": {"type": "integer"}}
        spec = {"type": "object", "properties": fields}
        schema = custom({"type": "object", "properties": {"spec": spec}})
        one = Tracked("x.example.com/v1", "X", OneVersion("x.example.com/v1", schema))
        manager = "second" if extension else "first"
        made = apply_configuration(made, wanted, manager=manager, force=False, now=NOW, tracked=one)

    assert owned_by(made, "first") == [".spec.a", ".spec.c"]


@pytest.mark.parametrize("seed", range(90))
def test_objects_differ_in_their_differing_parts_alone(seed: int) -> None:
    """The differences are the same with and without the equal parts."""
    kind = kind_of(*KINDS[seed % len(KINDS)])
    maker = Maker(kind, Random(seed))
    choice = Random(seed)
    old = read(kind, maker.object())
    other = read(kind, maker.object())
    new = {**other, **{name: old[name] for name in old if choice.random() < 0.5}}
    new["metadata"] = {**old["metadata"], **other["metadata"]}

    def differences(left: Any, right: Any) -> Any:
        given = (fill_unset_to_atoms(kind.schema, each) for each in (left, right))
        try:
            return compare(atom_of(kind.schema), *given)
        except TypeViolationError as error:
            return str(error)

    assert differences(*differing_parts(old, new)) == differences(old, new)
    assert differing_parts(old, copy.deepcopy(old)) == ({}, {})


@pytest.mark.parametrize("seed", range(90))
def test_an_apply_twice_is_once(seed: int) -> None:
    """The second changes neither the object nor its owners nor their times."""
    kind = kind_of(*KINDS[seed % len(KINDS)])
    maker = Maker(kind, Random(seed))
    one = Tracked(kind.api_version, kind.kind, OneVersion(kind.api_version, kind.schema))
    live = managed_after_update(None, read(kind, maker.object()), manager="a", now=NOW, tracked=one)
    wanted = {**maker.object(), "apiVersion": kind.api_version, "kind": kind.kind}
    once = apply_configuration(live, wanted, manager="b", force=True, now=NOW, tracked=one)
    if isinstance(once, ApplyProblem):
        return
    assert isinstance(once, dict)
    twice = apply_configuration(once, wanted, manager="b", force=True, now=LATER, tracked=one)
    assert isinstance(twice, dict)

    assert keep_times(read(kind, once), read(kind, twice)) == read(kind, once)


@pytest.mark.parametrize("seed", range(90))
def test_what_is_applied_has_an_owner_and_nobody_owns_what_is_not_there(seed: int) -> None:
    """After any series of writes, owners are of fields that the object has."""
    case = {**series(seed), "subresource": "", "reset": []}
    for outcome in followed(case):
        if "object" in outcome:
            for entry in outcome["object"]["metadata"].get("managedFields", []):
                assert entry["fieldsV1"], "an owner of nothing is no owner"


def test_nothing_that_is_given_is_changed() -> None:
    """Live objects are shared by all readers, so they are not changed."""
    case = series(7)
    before = json.dumps(case)
    followed(case)

    assert json.dumps(case) == before


@pytest.mark.real
def test_owners_are_those_of_kubernetes() -> None:
    """Go and we compute the same objects, owners and refusals for random series."""
    cases = [series(seed) for seed in range(ORACLE_SERIES)]

    for seed, (case, answers) in enumerate(zip(cases, ask("owners", cases), strict=True)):
        kind = kind_of(*KINDS[seed % len(KINDS)])
        expected = [
            {"object": read(kind, answer["object"])} if "object" in answer else answer
            for answer in answers
        ]

        assert [comparable(each) for each in followed(case)] == [
            comparable(each) for each in expected
        ], f"seed {seed}"


# Entries


def test_entries_are_in_the_order_of_the_server() -> None:
    """Appliers first, then by time."""
    made = apply(None, config_map(x="1"), "zoe", now=LATER)
    made = update(made, {**made, "data": {"x": "1", "y": "1"}}, "adam")
    managers = [entry["manager"] for entry in made["metadata"]["managedFields"]]

    assert managers == ["zoe", "adam"]
    assert encode(decode(made["metadata"]["managedFields"])) == made["metadata"]["managedFields"]


@pytest.mark.parametrize(
    ("field_manager", "user_agent", "name"),
    [
        ("me", "kubectl/v1.36", "me"),
        ("", "kubectl/v1.36 (linux/amd64)", "kubectl"),
        ("", "", ""),
        ("", "a\x00b", "ab"),
        ("", "x" * 200, "x" * 128),
    ],
)
def test_a_write_is_ascribed_to_whom_the_request_names(
    field_manager: str, user_agent: str, name: str
) -> None:
    """Or else to the program that sent it."""
    assert manager_name(field_manager, user_agent) == name
