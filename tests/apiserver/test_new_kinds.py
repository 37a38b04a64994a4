"""Kinds that are new in Kubernetes 1.37: native gangs, trust bundles, migrations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.apiserver.new_kinds import ANSWERS, GATES, RELEASE, REQUESTS, answers_of
from tests.apiserver.replay import CountingChance, EmbeddedServer
from tests.realcluster.pki import Authority

from dryrack.apiserver.runtime_config import EVERYTHING
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane

if TYPE_CHECKING:
    from pathlib import Path

# The server prints the Go names of the fields here.
_GO_NAMES = ("maximum template hierarchy depth", '{"Resource":')
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
        and not any(text in theirs[1].get("message", "") for text in _GO_NAMES)
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


def test_a_trust_bundle_needs_certificates_of_authorities(tmp_path: Path) -> None:
    """A bundle takes a certificate authority once, and no other certificate."""
    authority = Authority(tmp_path)
    anchor = authority.certificate.read_text()
    leaf = authority.client("someone").certificate.read_text()
    server = _server({})
    answers = []
    for name, text in (("good", anchor), ("twice", anchor * 2), ("leaf", leaf)):
        bundle = {"metadata": {"name": name}, "spec": {"trustBundle": text}}
        code, _, body = server.send(
            "POST",
            "/apis/certificates.k8s.io/v1/clustertrustbundles",
            headers={"Content-Type": "application/json"},
            content=json.dumps(bundle).encode(),
        )
        answers.append((code, json.loads(body).get("message", "").rpartition(": ")[2]))
    server.close()

    assert answers == [
        (201, ""),
        (422, "duplicate trust anchor (indices [0 1])"),
        (422, "entry 0 does not have the CA bit set"),
    ]
