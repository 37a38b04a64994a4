"""Answers that a real server gives and that its own tests ask for, a few of every kind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import embedded_server

from dryrack.apiserver.strategies.services.allocation import RANGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw


TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PODS = "/api/v1/namespaces/default/pods"


class ControlPlane:
    """A server that is asked by one request after the other."""

    def __init__(self) -> None:
        self.server = embedded_server()

    def ask(
        self, method: str, path: str, body: Raw | bytes | None = None, accept: str = ""
    ) -> tuple[int, Any]:
        form = "merge-patch+json" if method == "PATCH" else "json"
        content = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
        headers = {"content-type": f"application/{form}", "accept": accept or "application/json"}
        status, _, answer = self.server.send(method, path, headers=headers, content=content)
        return status, json.loads(answer)


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    made = ControlPlane()
    yield made
    made.server.close()


def test_the_status_of_a_namespace_brings_its_metadata(plane: ControlPlane) -> None:
    """Labels and annotations that are written with the status are kept, and the spec is not."""
    patch = {
        "metadata": {"annotations": {"a": "1"}, "labels": {"b": "2"}},
        "spec": {"finalizers": []},
        "status": {"conditions": [{"type": "X", "status": "True"}]},
    }
    status, found = plane.ask("PATCH", "/api/v1/namespaces/default/status", patch)

    assert status == 200
    assert found["metadata"]["annotations"] == {"a": "1"}
    assert found["metadata"]["labels"] == {"b": "2", "kubernetes.io/metadata.name": "default"}
    assert found["spec"]["finalizers"] == ["kubernetes"]
    assert [each["type"] for each in found["status"]["conditions"]] == ["X"]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"podIP": "10.0.0.1"}, ("10.0.0.1", ["10.0.0.1"])),
        ({"podIPs": [{"ip": "10.0.0.2"}, {"ip": "fd::2"}]}, ("10.0.0.2", ["10.0.0.2", "fd::2"])),
        ({"podIP": "10.0.0.3", "podIPs": [{"ip": "10.0.0.4"}]}, ("10.0.0.3", ["10.0.0.3"])),
        (
            {"podIP": "10.0.0.5", "podIPs": [{"ip": "10.0.0.5"}, {"ip": "fd::5"}]},
            ("10.0.0.5", ["10.0.0.5", "fd::5"]),
        ),
    ],
)
def test_the_addresses_of_a_pod_are_under_both_names(
    plane: ControlPlane, sent: Raw, kept: tuple[str, list[str]]
) -> None:
    """A client that sets one of them sets the other; the first address wins over the list."""
    account = {"metadata": {"name": "default"}}
    plane.ask("POST", "/api/v1/namespaces/default/serviceaccounts", account)
    spec = {"containers": [{"name": "c", "image": "i"}]}
    assert plane.ask("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})[0] == 201
    status, found = plane.ask("PATCH", f"{PODS}/p/status", {"status": sent})

    assert status == 200, found
    addresses = [each["ip"] for each in found["status"]["podIPs"]]
    assert (found["status"]["podIP"], addresses) == kept
    owned = found["metadata"]["managedFields"][-1]["fieldsV1"]["f:status"]
    assert {"f:podIP", "f:podIPs"} <= owned.keys()


def test_a_strict_request_is_told_what_is_repeated_and_what_is_unknown(plane: ControlPlane) -> None:
    """Repeated and unknown fields are listed once each, in the order of the document."""
    text = b"""{"new": {"x": 1}, "metadata": {"name": "a", "name": "b", "odd": 1},
        "data": {"k": "1", "k": "2", "k": "3"}, "new": 3, "late": 4}"""
    path = "/api/v1/namespaces/default/configmaps?fieldValidation=Strict"
    status, found = plane.ask("POST", path, text)

    assert status == 400
    assert found["message"].partition("strict decoding error: ")[2] == (
        'unknown field "new", duplicate field "metadata.name", unknown field "metadata.odd", '
        'duplicate field "data.k", duplicate field "new", unknown field "late"'
    )


@pytest.mark.parametrize(
    ("accept", "code", "kind"),
    [
        (TABLE, 406, "Status"),
        (f"{TABLE},application/json", 201, "SelfSubjectAccessReview"),
    ],
)
def test_a_review_is_never_a_table(plane: ControlPlane, accept: str, code: int, kind: str) -> None:
    """A client that accepts nothing else is refused; one that also accepts JSON gets JSON."""
    body = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    status, found = plane.ask("POST", path, body, accept)

    assert (status, found["kind"]) == (code, kind)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("10.0.0.1", ""),
        ("fd00::1", ""),
        ("10.0.0.01", "must not have leading 0s"),
        ("a", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
    ],
)
def test_an_address_is_called_as_it_is_written(
    plane: ControlPlane, name: str, problem: str
) -> None:
    """IPv4 or IPv6; what is no address is no name."""
    body = {"metadata": {"name": name}, "spec": {"parentRef": {"resource": "x", "name": "y"}}}
    status, found = plane.ask("POST", "/apis/networking.k8s.io/v1/ipaddresses", body)

    assert status == (422 if problem else 201)
    assert problem in found.get("message", "")
    if not problem:
        path = f"/apis/networking.k8s.io/v1/ipaddresses/{name}"
        assert plane.ask("GET", path)[1]["metadata"]["name"] == name


def test_services_have_their_range_from_the_start(plane: ControlPlane) -> None:
    """The default ServiceCIDR is there, it is ready, and it is the range that is given out of."""
    found = plane.ask("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes")[1]

    assert found["spec"]["cidrs"] == [str(RANGE)]
    (ready,) = found["status"]["conditions"]
    assert (ready["type"], ready["status"]) == ("Ready", "True")
