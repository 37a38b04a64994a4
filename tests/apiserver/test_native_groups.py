"""PodGroups, CompositePodGroups and Workloads of Kubernetes 1.37."""

from __future__ import annotations

import json

import pytest
from tests.apiserver.native_groups import ANSWERS, GATES, RELEASE, REQUESTS, answers_of
from tests.apiserver.replay import CountingChance, EmbeddedServer

from dryrack.apiserver.runtime_config import EVERYTHING
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane

# The server prints the Go names of the fields here.
_GO_NAMES = "maximum template hierarchy depth"
# It reports each removed template of a list, and the sentence names the list once.
_REPEATED = {"podGroupTemplates": None}


def _server(gates: dict[str, bool]) -> EmbeddedServer:
    clock = VirtualClock()
    options = ControlPlaneOptions(
        clock=clock,
        chance=CountingChance(),
        runtime_config=EVERYTHING,
        release=RELEASE,
        feature_gates=gates,
    )
    return EmbeddedServer(build_control_plane(options).transport, clock)


def test_answers_are_those_of_a_real_server() -> None:
    """Objects, refusals, and their order are those of kube-apiserver 1.37.1."""
    server = _server(GATES)
    answers = answers_of(server)
    server.close()
    recorded = json.loads(ANSWERS.read_text())
    differing = [
        each["request"]
        for each, ours, theirs in zip(REQUESTS, answers, recorded, strict=True)
        if ours != theirs
        and _GO_NAMES not in theirs[1].get("message", "")
        and each.get("body", {}).get("spec") != _REPEATED
    ]

    assert differing == []
    assert len(recorded) > 80


@pytest.mark.parametrize("gates", [{}, {"GenericWorkload": True}], ids=["off", "on"])
def test_a_kind_is_served_only_with_its_gate(gates: dict[str, bool]) -> None:
    """`--runtime-config` alone does not serve a kind whose feature gate is off."""
    server = _server(gates)
    path = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
    code, _, _ = server.send("GET", path, headers={}, content=b"")
    server.close()

    assert code == (200 if gates else 404)


def test_fields_of_gates_that_are_off_are_dropped() -> None:
    """The server stores a PodGroup without the fields of alpha gates, and refuses nothing."""
    server = _server({"GenericWorkload": True})
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        "preemptionPolicy": "Never",
        "parentCompositePodGroupName": "parent",
    }
    code, _, body = server.send(
        "POST",
        "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
        headers={"Content-Type": "application/json"},
        content=json.dumps({"metadata": {"name": "a"}, "spec": spec}).encode(),
    )
    server.close()

    assert code == 201
    assert sorted(json.loads(body)["spec"]) == ["disruptionMode", "priority", "schedulingPolicy"]
