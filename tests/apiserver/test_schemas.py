"""The structure of kinds, and objects read by it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.generate_objects import KINDS, Maker, kind_of, spoiled

from dryrack.kinds.releases import Release
from dryrack.kinds.schemas import builtin, custom, raw_definitions, schema_of
from dryrack.kinds.schemas.shape import fill_unset, skeleton
from dryrack.kinds.schemas.strict_decode import (
    conform,
    decode_strictly,
)
from dryrack.kinds.schemas.structs import structs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.schemas import Schema

ANSWERS = sorted((Path(__file__).parents[1] / "parity/answers").glob("*.json"))
# What stands where a recording has blanked out a time.
_TIME = "2026-01-01T00:00:00Z"
# The fields whose times have microseconds; recordings blank all times out alike.
_MICRO_TIME = re.compile(r'"(?:renewTime|acquireTime|eventTime|lastObservedTime)": "(?=<time>)')


def known(group: str, version: str, kind: str) -> Schema:
    schema = schema_of(group, version, kind)
    assert schema is not None
    return schema


POD = known("", "v1", "Pod")
CONFIG_MAP = known("", "v1", "ConfigMap")
CLAIM = known("resource.k8s.io", "v1", "ResourceClaim")


def recorded_objects(path: Path) -> Iterator[tuple[Schema, dict[str, Any]]]:
    """Every object of a built-in kind that a real server sent on its own."""
    text = _MICRO_TIME.sub(rf"\g<0>{_TIME[:-1]}.000000Z", path.read_text())
    for answer in json.loads(text.replace("Z<time>", "Z").replace("<time>", _TIME)):
        body = answer.get("body")
        found = [body, *body.get("items", ())] if isinstance(body, dict) else []
        for value in found:
            group, _, version = str(value.get("apiVersion", "")).rpartition("/")
            schema = schema_of(group, version, str(value.get("kind")))
            if schema is not None and schema.struct and value["kind"] != "Status":
                yield schema, value


@pytest.mark.parametrize("release", Release, ids=lambda release: release.value)
def test_definitions_have_no_prose(release: Release) -> None:
    """The data is structure alone; `description` is only ever the name of a field."""
    for definition in raw_definitions(release).values():
        assert "description" not in definition
        for place in definition.get("properties", {}).values():
            assert "description" not in place


@pytest.mark.parametrize("release", Release, ids=lambda release: release.value)
def test_every_object_definition_is_a_struct_with_the_same_fields(release: Release) -> None:
    """OpenAPI and Go have the same fields."""
    for name, definition in raw_definitions(release).items():
        if definition.get("type") == "object" and "properties" in definition:
            assert set(structs(release)[name]) == set(definition["properties"])


@pytest.mark.parametrize("release", Release, ids=lambda release: release.value)
def test_every_reference_leads_somewhere(release: Release) -> None:
    """No definition refers to one that is not there."""
    for name in builtin(release):
        schema = builtin(release)[name]
        for field in schema.property_names:
            assert schema.named(field) is not None


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_what_a_real_server_sends_is_read_as_it_is(path: Path) -> None:
    """Reading changes nothing in an object that a real server wrote, and complains of nothing."""
    for schema, value in recorded_objects(path):
        found = conform(schema, value)

        assert (found.mismatch, found.strict) == ("", ())
        assert _timeless(found.object) == _timeless(value)


def _timeless(value: Any) -> Any:
    """Return the text without the fraction of a replaced time."""
    return json.loads(json.dumps(value).replace(".000000Z", "Z"))


def test_unknown_fields_are_dropped_and_named() -> None:
    """A complaint has the path of the field, with the index of the item."""
    value = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "a", "colour": "red"},
        "spec": {"devices": {"requests": [{"name": "a", "deviceClassName": "c"}]}},
    }
    found = conform(CLAIM, value)

    assert found.strict == (
        'unknown field "metadata.colour"',
        'unknown field "spec.devices.requests[0].deviceClassName"',
    )
    assert found.object["spec"]["devices"]["requests"] == [{"name": "a"}]
    assert found.object["status"] == {}


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (
            CONFIG_MAP,
            {"data": {"a": 1}},
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            CONFIG_MAP,
            {"metadata": {"name": 5}},
            (
                "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name"
                " of type string"
            ),
        ),
        (
            POD,
            {"spec": {"containers": [{"image": []}]}},
            (
                "json: cannot unmarshal array into Go struct field Container.spec.containers.image"
                " of type string"
            ),
        ),
        (
            POD,
            {"spec": {"priority": 1.5}},
            (
                "json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority"
                " of type int32"
            ),
        ),
        (
            POD,
            {"metadata": {"creationTimestamp": "yesterday"}},
            (
                'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse'
                ' "yesterday" as "2006"'
            ),
        ),
    ],
)
def test_a_wrong_type_is_told_as_the_decoder_tells_it(
    schema: Schema, value: dict[str, Any], message: str
) -> None:
    """The innermost struct, the way to the field, and its Go type."""
    assert conform(schema, value).mismatch == message


def test_empty_fields_are_left_out_where_go_leaves_them_out() -> None:
    """False is nothing where it is no pointer, and something where it is one."""
    value = {"spec": {"hostNetwork": False, "enableServiceLinks": False, "containers": []}}
    spec = conform(POD, value).object["spec"]

    assert spec == {"enableServiceLinks": False, "containers": []}


def test_quantities_and_times_have_one_form() -> None:
    """Two spellings of one value are stored as one."""
    value = {
        "metadata": {"creationTimestamp": "2026-01-01T02:00:00.5+02:00"},
        "spec": {"overhead": {"cpu": "1000m", "memory": 1024}},
    }
    made = conform(POD, value).object

    assert made["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert made["spec"]["overhead"] == {"cpu": "1", "memory": "1024"}


def test_nothing_that_is_given_is_changed() -> None:
    """The object that was read may be stored elsewhere."""
    value = {"metadata": {"name": "a", "labels": None}, "data": {"b": None, "a": "x"}}
    before = json.dumps(value)
    conform(CONFIG_MAP, value)
    fill_unset(CONFIG_MAP, value)

    assert json.dumps(value) == before


def test_an_object_that_nobody_wrote_to_has_its_structs() -> None:
    """Go writes the spec and status of an empty pod, and null for the containers."""
    made = skeleton(POD)

    assert made["spec"] == {"containers": None}
    assert made["status"] == {}


def test_lists_say_how_their_items_are_told_apart() -> None:
    """By list type, or, of older lists, by how they are patched."""
    spec = POD.named("spec")
    assert spec is not None
    containers = spec.named("containers")
    tolerations = spec.named("tolerations")
    assert containers is not None
    assert tolerations is not None

    assert (containers.list_type, containers.list_keys) == ("map", ("name",))
    assert tolerations.list_type == "atomic"


def test_a_custom_schema_has_every_objects_metadata() -> None:
    """The definition of a custom resource need not say what metadata is."""
    schema = custom({"type": "object", "properties": {"spec": {"type": "object"}}})
    metadata = schema.named("metadata")

    assert metadata is not None
    assert metadata.named("labels") is not None


@pytest.mark.parametrize("seed", range(120))
def test_the_swift_reader_reads_what_the_careful_one_reads(seed: int) -> None:
    """Objects that are as they should be, and ones with something missing, null or wrong."""
    kind = kind_of(*KINDS[seed % len(KINDS)])
    random = Random(seed)
    made = Maker(kind, random).object()
    value = {name: spoiled(random, each) for name, each in made.items()}

    assert conform(kind.schema, value) == decode_strictly(kind.schema, value)
