"""Differences between the API servers of the releases, beside those that the recordings have."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.apiserver.replay import EmbeddedServer, embedded_server

from dryrack.apiserver.runtime_config import EVERYTHING, RuntimeConfig
from dryrack.kinds.releases import Release

RULES = "/apis/resource.k8s.io/{}/devicetaintrules"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
RULE: dict[str, Any] = {
    "metadata": {"name": "rule"},
    "spec": {
        "deviceSelector": {"driver": "gpu.example.com"},
        "taint": {"key": "dead", "effect": "NoSchedule"},
    },
}


def _send(
    server: EmbeddedServer, request: str, body: Any = None, accept: str = "application/json"
) -> tuple[int, Any]:
    method, path = request.split()
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    code, _, answer = server.send(
        method,
        path,
        headers={"Content-Type": kind, "Accept": accept},
        content=b"" if body is None else json.dumps(body).encode(),
    )
    return code, json.loads(answer)


@pytest.mark.parametrize(
    ("release", "served"), [(Release.V1_36, 404), (Release.V1_37, 200)], ids=["1.36", "1.37"]
)
def test_device_taint_rules_are_in_v1_from_1_37_on(release: Release, served: int) -> None:
    """A server with default options serves DeviceTaintRules in 1.37, and not in 1.36."""
    server = embedded_server(RuntimeConfig(), release)
    code, _ = _send(server, f"GET {RULES.format('v1')}")
    server.close()

    assert code == served


def test_versions_of_a_device_taint_rule_differ_in_two_ways() -> None:
    """In v1, an update needs a resourceVersion, and a deletion is answered with a Status."""
    server = embedded_server(EVERYTHING, Release.V1_37)
    _send(server, f"POST {RULES.format('v1')}", RULE)
    refused, status = _send(server, f"PUT {RULES.format('v1')}/rule", RULE)
    accepted, older = _send(server, f"PUT {RULES.format('v1alpha3')}/rule", RULE)
    _, deleted = _send(server, f"DELETE {RULES.format('v1')}/rule")
    _send(server, f"POST {RULES.format('v1')}", RULE)
    _, shown = _send(server, f"DELETE {RULES.format('v1beta2')}/rule")
    server.close()

    assert (refused, accepted) == (422, 200)
    assert "metadata.resourceVersion" in status["message"]
    assert older["apiVersion"] == "resource.k8s.io/v1alpha3"
    assert (deleted["kind"], shown["kind"]) == ("Status", "DeviceTaintRule")


def test_a_new_effect_sets_the_time_of_a_taint() -> None:
    """An update that changes the effect of a rule sets timeAdded, unless the client sets it."""
    server = embedded_server(EVERYTHING, Release.V1_37)
    at = f"{RULES.format('v1')}/rule"
    old = "2020-01-01T00:00:00Z"
    taint = {**RULE["spec"]["taint"], "timeAdded": old}
    _send(server, f"POST {RULES.format('v1')}", {**RULE, "spec": {**RULE["spec"], "taint": taint}})
    _, valued = _send(server, f"PATCH {at}", {"spec": {"taint": {"value": "x"}}})
    _, changed = _send(server, f"PATCH {at}", {"spec": {"taint": {"effect": "NoExecute"}}})
    server.close()

    assert valued["spec"]["taint"]["timeAdded"] == old
    assert changed["spec"]["taint"]["timeAdded"] != old
    assert changed["metadata"]["generation"] == 3


@pytest.mark.parametrize(
    ("release", "served"), [(Release.V1_36, 400), (Release.V1_37, 200)], ids=["1.36", "1.37"]
)
def test_slices_are_selected_by_their_pool(release: Release, served: int) -> None:
    """The field selector spec.pool.name exists from 1.37 on."""
    server = embedded_server(RuntimeConfig(), release)
    for pool in ("a", "b"):
        spec = {
            "driver": "gpu.example.com",
            "nodeName": "node-1",
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu"}],
        }
        _send(server, f"POST {SLICES}", {"metadata": {"name": pool}, "spec": spec})
    code, found = _send(server, f"GET {SLICES}?fieldSelector=spec.pool.name%3Da")
    server.close()

    assert code == served
    assert [each["metadata"]["name"] for each in found.get("items", ())] in ([], ["a"])


@pytest.mark.parametrize(
    ("release", "names", "alone"),
    [
        (Release.V1_36, ["a (default)", "b (default)", "c"], "a (default)"),
        (Release.V1_37, ["a (default)", "b", "c"], "a"),
    ],
    ids=["1.36", "1.37"],
)
def test_one_storage_class_is_shown_as_the_default(
    release: Release, names: list[str], alone: str
) -> None:
    """A list marks the class that new claims get; a class that is read alone has no mark."""
    server = embedded_server(RuntimeConfig(), release)
    for name in ("a", "b", "c"):
        notes = {"storageclass.kubernetes.io/is-default-class": str(name != "c").lower()}
        metadata = {"name": name, "annotations": notes}
        _send(server, f"POST {CLASSES}", {"metadata": metadata, "provisioner": "example.com/p"})
    _, listed = _send(server, f"GET {CLASSES}", accept=TABLE)
    _, one = _send(server, f"GET {CLASSES}/a", accept=TABLE)
    server.close()

    assert [row["cells"][0] for row in listed["rows"]] == names
    assert one["rows"][0]["cells"][0] == alone


@pytest.mark.parametrize(
    ("release", "kept"), [(Release.V1_36, False), (Release.V1_37, True)], ids=["1.36", "1.37"]
)
def test_a_status_keeps_the_claims_that_a_client_leaves_out(release: Release, kept: bool) -> None:
    """In 1.37, an update of a pod's status without resourceClaimStatuses keeps them."""
    server = embedded_server(RuntimeConfig(), release)
    server.make_namespace("default")
    pods = "/api/v1/namespaces/default/pods"
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    statuses = [{"name": "gpu", "resourceClaimName": "a-gpu"}]
    _send(server, f"POST {pods}", {"metadata": {"name": "a"}, "spec": spec})
    at = f"{pods}/a/status"
    _send(server, f"PATCH {at}", {"status": {"resourceClaimStatuses": statuses}})
    _, left_out = _send(server, f"PUT {at}", {"metadata": {"name": "a"}, "status": {}})
    server.close()

    assert left_out["status"].get("resourceClaimStatuses") == (statuses if kept else None)
