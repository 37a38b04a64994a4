"""Requests as Kubernetes' own end-to-end tests send them, with the answers of a real API server."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.apiserver.whole_plane import WholePlane

from dryrack.client.transport import ADMIN, Request

PODS = "/api/v1/namespaces/default/pods"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FOOS = "/apis/example.com/v1/namespaces/default/foos"


def send(
    plane: WholePlane, method: str, path: str, text: str, content_type: str
) -> tuple[int, Any]:
    """Send a text as it is, and return the status and the decoded body."""
    where, _, query = path.partition("?")
    headers = {"accept": "application/json", "content-type": content_type}
    request = Request(method, where, query, headers, text.encode(), ADMIN)
    response = asyncio.run(plane.plane.transport.send(request))
    assert isinstance(response.body, bytes)
    return response.status, msgspec.json.decode(response.body)


def pod(**spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}


def test_a_configuration_that_looks_like_json_can_be_yaml() -> None:
    """Server-side apply reads YAML, which allows a comma at the end."""
    text = (
        '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c",}, "data": {"a": "b"}}'
    )
    path = "/api/v1/namespaces/default/configmaps/c?fieldManager=m"
    status, body = send(WholePlane(), "PATCH", path, text, "application/apply-patch+yaml")

    assert (status, body["data"]) == (201, {"a": "b"})


def test_complaints_about_fields_have_the_order_of_the_document() -> None:
    """Unknown and repeated fields are listed where they are."""
    text = '{"metadata": {"name": "c"}, "unknown": 1, "data": {"a": "b", "a": "c"}, "other": 2}'
    path = "/api/v1/namespaces/default/configmaps?fieldValidation=Strict"
    _, body = send(WholePlane(), "POST", path, text, "application/json")

    assert body["message"].endswith(
        'strict decoding error: unknown field "unknown", duplicate field "data.a", '
        'unknown field "other"'
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [("soon", 'invalid duration "soon"'), ("10", 'missing unit in duration "10"')],
)
def test_a_timeout_is_a_duration(text: str, problem: str) -> None:
    """kubectl --request-timeout sends it."""
    answer = WholePlane().ask("GET", f"{PODS}?timeout={text}")

    assert answer.status == 400
    assert answer.message == f"invalid timeout specified in the request URL - time: {problem}"
    assert WholePlane().ask("GET", "/version?timeout=soon").status == 400
    assert WholePlane().ask("GET", f"{PODS}?timeout=10s").status == 200


def test_a_negative_grace_period_is_stored_as_one_second() -> None:
    """An update with the original negative value changes nothing."""
    plane = WholePlane()
    created = plane.create(PODS, pod(terminationGracePeriodSeconds=-1)).body
    spec = {**created["spec"], "terminationGracePeriodSeconds": -1}
    updated = plane.ask("PUT", f"{PODS}/p", {**created, "spec": spec})

    assert created["spec"]["terminationGracePeriodSeconds"] == 1
    assert (updated.status, updated.body["spec"]["terminationGracePeriodSeconds"]) == (200, 1)


def test_conditions_of_webhooks_are_compiled() -> None:
    """An expression that does not compile is refused with its place."""
    webhook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://127.0.0.1:1/"},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "matchConditions": [{"name": "bad", "expression": "... [] bad"}],
    }
    answer = WholePlane().create(WEBHOOKS, {"metadata": {"name": "w"}, "webhooks": [webhook]})
    [cause] = answer.body["details"]["causes"]

    assert answer.status == 422
    assert cause["field"] == "webhooks[0].matchConditions[0].expression"
    assert "compilation failed" in cause["message"]


def test_unknown_fields_are_kept_only_where_the_schema_says_so() -> None:
    """A field below a place that preserves unknown fields follows the schema of its own place."""
    schema = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "foos", "kind": "Foo"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    plane = WholePlane()
    plane.create(DEFINITIONS, {"metadata": {"name": "foos.example.com"}, "spec": spec})
    own = {"extra": 1, "spec": {"size": 2, "unknown": 3}}
    metadata = {"name": "f", "finalizers": ["of-an-operator"]}
    foo = {"apiVersion": "example.com/v1", "kind": "Foo", "metadata": metadata, **own}
    refused = plane.create(f"{FOOS}?fieldValidation=Strict", foo)
    created = plane.create(FOOS, foo).body

    assert refused.message.endswith('strict decoding error: unknown field "spec.unknown"')
    assert (created["extra"], created["spec"]) == (1, {"size": 2})
    assert created["metadata"]["finalizers"] == ["of-an-operator"]
