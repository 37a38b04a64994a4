"""OpenAPI documents: complete, consistent, and the same structure as a real server's."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.go_oracle import ask
from tests.apiserver.visits import found, json_of, plain_registry, text_of, visited

from dryrack.apiserver.answer.status import StatusError
from dryrack.apiserver.pages.openapi import OpenApiPages
from dryrack.apiserver.pages.plain_pages import (
    Check,
    HealthPages,
    IndexPage,
    NoSuchPage,
    VersionPage,
)
from dryrack.apiserver.protobuf import documents
from dryrack.apiserver.protobuf.wire import fields
from dryrack.apiserver.registry import Registry, Resource
from dryrack.apiserver.strategy import Strategy
from dryrack.kinds.releases import Release
from dryrack.kinds.rules.kind_rules import KindRules

if TYPE_CHECKING:
    from collections.abc import Iterator


def _registry(release: Release = Release.V1_36) -> Registry:
    registry = plain_registry(release)
    registry.add(
        Resource(
            group="example.com",
            version="v1",
            kind="Gadget",
            plural="gadgets",
            namespaced=True,
            strategy=Strategy(KindRules(namespaced=True)),
            schema={"type": "object", "properties": {"spec": {"type": "object"}}},
        )
    )
    return registry


def _pages(release: Release = Release.V1_36) -> OpenApiPages:
    return OpenApiPages(_registry(release), release)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def test_custom_kinds_say_what_their_metadata_is() -> None:
    """`kubectl explain` has words for the fields that no definition describes, in both forms."""
    pages = _pages()
    newer = json_of(visited(pages, "/openapi/v3/apis/example.com/v1"))["components"]["schemas"]
    older = json_of(visited(pages, "/openapi/v2"))["definitions"]
    meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

    for schemas in (newer, older):
        for kind in ("Gadget", "GadgetList"):
            told = schemas[f"com.example.v1.{kind}"]["properties"]
            assert told["apiVersion"]["description"].startswith("APIVersion defines")
            assert told["metadata"]["description"].startswith("Standard object's metadata")
        every = schemas[meta]["properties"]
        assert all(each.get("description") for each in every.values())


def test_the_index_leads_to_documents_that_hold_all_they_refer_to() -> None:
    """Every address of the index answers, and no reference in a document leads out of it."""
    pages = _pages()
    index = json_of(visited(pages, "/openapi/v3"))["paths"]

    assert "api/v1" in index
    assert "apis/example.com/v1" in index
    for entry in index.values():
        document = json_of(visited(pages, entry["serverRelativeURL"]))
        names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert set(_references(document)) <= names


def test_version_2_holds_all_it_refers_to() -> None:
    """No reference in the old document leads out of it, and none has anything of version 3."""
    document = json_of(visited(_pages(), "/openapi/v2"))
    names = {f"#/definitions/{name}" for name in document["definitions"]}

    assert set(_references(document)) <= names
    assert "#/components" not in json.dumps(document)


def test_kubectl_finds_that_the_server_validates_fields() -> None:
    """The PATCH of every kind, custom ones too, takes fieldValidation."""
    pages = _pages()
    for address, kind in (
        ("apis/resource.k8s.io/v1", "ResourceClaim"),
        ("apis/example.com/v1", "Gadget"),
    ):
        document = json_of(visited(pages, f"/openapi/v3/{address}"))
        patches = [path["patch"] for path in document["paths"].values() if "patch" in path]
        mine = [p for p in patches if p["x-kubernetes-group-version-kind"]["kind"] == kind]

        assert mine
        assert all("fieldValidation" in [q["name"] for q in p["parameters"]] for p in mine)


def test_a_kind_is_found_by_its_group_version_and_kind() -> None:
    """The schema of each kind says whose it is, which is how `kubectl explain` finds it."""
    document = json_of(visited(_pages(), "/openapi/v3/apis/example.com/v1"))
    found = [
        kind
        for schema in document["components"]["schemas"].values()
        for kind in schema.get("x-kubernetes-group-version-kind", ())
    ]

    assert {"group": "example.com", "version": "v1", "kind": "Gadget"} in found


def test_identifiers_of_operations_are_used_once() -> None:
    """Clients are generated from them, so no two operations share one."""
    document = json_of(visited(_pages(), "/openapi/v2"))
    found = [
        operation["operationId"]
        for path in document["paths"].values()
        for method, operation in path.items()
        if method != "parameters"
    ]

    assert len(found) == len(set(found))


WIRE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (WIRE, documents.MEDIA_TYPE),
        (documents.MEDIA_TYPE, documents.MEDIA_TYPE),
        (f"{WIRE}, application/json", documents.MEDIA_TYPE),
        (f"application/json, {WIRE}", "application/json"),
        ("", "application/json"),
    ],
)
def test_version_2_comes_in_the_form_that_is_asked_for(accept: str, form: str) -> None:
    """kubectl asks for protobuf by its old name, and is answered by the new one."""
    answer = visited(_pages(), "/openapi/v2", accept=accept)

    assert (answer.status, dict(answer.headers)["content-type"]) == (200, form)


def test_what_is_asked_for_in_no_form_there_is_is_refused() -> None:
    """A client that accepts none of the types gets a 406."""
    assert visited(_pages(), "/openapi/v2", accept="text/html").status == 406
    assert visited(_pages(), "/openapi/v3/api/v1", accept=WIRE).status == 406


def _inside(wire: bytes, *numbers: int) -> Any:
    """Return the value in the only field of each message on the path."""
    value: Any = memoryview(wire)
    for number in numbers:
        (value,) = [found for each, _, found in fields(value) if each == number]
    return bytes(value) if isinstance(value, memoryview) else value


def test_schemas_are_written_by_their_numbers() -> None:
    """Names, references, extensions as text; zero is left out unless it is the choice itself."""
    schema = {
        "properties": {"a": {"$ref": "#/x", "x-y": [1]}},
        "additionalProperties": False,
        "minLength": 0,
        "minimum": -1.5,
    }
    wire = _inside(documents.to_wire({"definitions": {"D": schema}}), 9, 1)

    assert _inside(wire, 1) == b"D"
    assert _inside(wire, 2, 25, 1, 1) == b"a"
    assert _inside(wire, 2, 25, 1, 2, 1) == b"#/x"
    assert _inside(wire, 2, 25, 1, 2, 31, 1) == b"x-y"
    assert _inside(wire, 2, 25, 1, 2, 31, 2, 2) == b"[1]"
    assert _inside(wire, 2, 21, 2) == 0
    assert _inside(wire, 2, 9) == -1.5
    assert [number for number, _, _ in fields(memoryview(_inside(wire, 2)))] == [25, 21, 9]


@pytest.mark.real
def test_protobuf_says_what_the_document_says() -> None:
    """Kubernetes' own reader finds the same in both, down to the last extension."""
    pages = _pages()
    told, wire = (visited(pages, "/openapi/v2", accept=accept).body for accept in ("", WIRE))
    assert isinstance(told, bytes)
    assert isinstance(wire, bytes)
    case = {"json": b64encode(told).decode(), "wire": b64encode(wire).decode()}

    assert ask("documents", [case]) == [{"definitions": len(json.loads(told)["definitions"])}]


def test_health_names_what_fails() -> None:
    """One failing check fails the whole, and is named; the others can be asked one by one."""
    pages = HealthPages((Check("ping"), Check("store", lambda: False)))

    assert visited(pages, "/readyz").status == 500
    assert text_of(visited(pages, "/readyz")) == (
        "[+]ping ok\n[-]store failed: reason withheld\nreadyz check failed\n"
    )
    assert text_of(visited(pages, "/livez/ping")) == "ok"
    assert visited(pages, "/livez/nothing").status == 404


def test_health_may_leave_checks_out() -> None:
    """An excluded check cannot fail, and an unknown name causes a warning."""
    pages = HealthPages((Check("ping"), Check("store", lambda: False)))

    assert text_of(visited(pages, "/livez?exclude=store")) == "ok"
    assert text_of(visited(pages, "/livez?verbose&exclude=store&exclude=zork")) == (
        "[+]ping ok\n[+]store excluded: ok\n"
        'warn: some health checks cannot be excluded: no matches for "zork"\nlivez check passed\n'
    )


@pytest.mark.parametrize("release", Release, ids=lambda release: release.value)
def test_the_version_is_that_of_the_release(release: Release) -> None:
    """Clients decide by the minor version what they may ask for."""
    version = json_of(visited(VersionPage(release), "/version"))

    assert f"{version['major']}.{version['minor']}" == release.value
    assert version["gitVersion"].startswith(f"v{release.value}.")


def test_paths_of_no_group_are_no_pages() -> None:
    """Groups that are served say themselves what they lack; for all others there is no page."""
    page = NoSuchPage(_registry())

    assert text_of(visited(page, "/nowhere")) == "404 page not found\n"
    assert text_of(visited(page, "/apis/none.example.com/v1/things")) == "404 page not found\n"
    assert found(page, "/apis/example.com/v9") is None
    with pytest.raises(StatusError) as caught:
        found(page, "/apis/apps/v9")
    assert caught.value.status.message == "the server could not find the requested resource"


def test_the_index_lists_custom_groups() -> None:
    """`/` lists every path of discovery."""
    assert "/apis/example.com/v1" in json_of(visited(IndexPage(_registry()), "/"))["paths"]


@pytest.mark.parametrize("release", Release, ids=lambda release: release.value)
def test_every_field_of_the_device_kinds_is_explained(release: Release) -> None:
    """`kubectl explain` has a line for each type and field of dynamic resource allocation."""
    pages = _pages(release)
    for version in ("v1", "v1beta2"):
        document = json_of(visited(pages, f"/openapi/v3/apis/resource.k8s.io/{version}"))
        for name, schema in document["components"]["schemas"].items():
            if name.startswith("io.k8s.api.resource.") and not name.endswith("List"):
                own = set(schema["properties"]) - {"apiVersion", "kind", "metadata"}
                silent = [
                    key for key in sorted(own) if "description" not in schema["properties"][key]
                ]
                assert (name, "description" in schema, silent) == (name, True, [])
