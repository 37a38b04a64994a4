"""ComputeDomains: one answer from files, lint and the control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from tests.cli.command import dryrack

import dryrack as library
from dryrack.client.endpoints import COMPUTE_DOMAINS, TEMPLATES
from dryrack.controllers.computedomains import plan
from dryrack.controllers.writes import Create, Patch
from dryrack.testing import Cluster

if TYPE_CHECKING:
    from pathlib import Path

TYPE = "p6e-gb200.36xlarge"


def domain(nodes: int, **metadata: Any) -> dict[str, Any]:
    channel = {"resourceClaimTemplate": {"name": "channels"}}
    return {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": "d", **metadata},
        "spec": {"numNodes": nodes, "channel": channel},
    }


def pod(name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": "channel"}]}}
    claims = [{"name": "channel", "resourceClaimTemplateName": "channels"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "resourceClaims": claims},
    }


def node(name: str) -> dict[str, Any]:
    labels = {"node.kubernetes.io/instance-type": TYPE}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


def test_the_control_plane_runs_a_compute_domain() -> None:
    """Pods get the channels of different nodes, and the domain is ready when both have joined."""
    with Cluster() as cluster:
        cluster.add_nodes(TYPE, name="rack", count=2)
        cluster.apply([domain(2), pod("one")])
        first = cluster.expect_scheduled("one", devices=["compute-domain.nvidia.com/*/channel-0"])
        [before] = cluster.list("computedomains")
        cluster.apply([pod("two")])
        second = cluster.expect_scheduled("two")
        cluster.apply([pod("three")])
        cluster.expect_pending("three")
        [after] = cluster.list("computedomains")
        template = cluster.get("resourceclaimtemplates", "channels")
        [config] = template["spec"]["spec"]["devices"]["config"]

        assert {first.node, second.node} == {"rack-1", "rack-2"}
        assert before["status"]["status"] == "NotReady"
        assert after["status"]["status"] == "Ready"
        assert [each["name"] for each in after["status"]["nodes"]] == ["rack-1", "rack-2"]
        assert config["opaque"]["parameters"] == {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "ComputeDomainChannelConfig",
            "domainID": after["metadata"]["uid"],
            "allocationMode": "Single",
        }

        for name in ("one", "two", "three"):
            cluster.delete("pods", name)
        cluster.delete("computedomains", "d")
        cluster.advance("1m")
        assert cluster.list("resourceclaimtemplates") == []


def test_files_give_the_same_answer(tmp_path: Path) -> None:
    """Two pods fit, a third has no channel, and lint misses no template."""
    objects = [domain(2), *(pod(name) for name in ("one", "two", "three"))]
    answer = library.allocate([node("rack-1"), node("rack-2"), *objects])
    file = tmp_path / "domain.yaml"
    file.write_text(yaml.safe_dump_all(objects))

    assert {each.claim: each.node for each in answer.given} == {
        "default/one-channel": "rack-1",
        "default/two-channel": "rack-2",
    }
    assert [each.claim for each in answer.refused] == ["default/three-channel"]
    assert library.lint(file) == ()


def test_a_scenario_with_such_nodes_runs_a_compute_domain(tmp_path: Path) -> None:
    """The kind comes with the fleet, before the objects of the scenario."""
    running = {"object": "Pod/one", "fields": {"status.phase": "Running"}}
    ready = {"object": "ComputeDomain/d", "fields": {"status.status": "Ready"}}
    scenario = {
        "apiVersion": "dryrack.dev/v1alpha1",
        "kind": "Scenario",
        "title": "A compute domain",
        "fleet": {"nodes": [{"name": "rack", "count": 2, "profile": TYPE}]},
        "objects": [domain(1), pod("one")],
        "steps": [{"title": "The pod gets its channel", "expect": [running, ready]}],
    }
    file = tmp_path / "scenario.yaml"
    file.write_text(yaml.safe_dump(scenario))
    done = dryrack("scenario", "run", file)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_controller_plans_only_what_is_missing() -> None:
    """A new domain gets its template and a status; one that has both needs nothing."""
    new = domain(0, namespace="team", uid="u-1")
    first = plan(new, None, (), {}).writes
    settled = plan({**new, "status": {"status": "Ready"}}, {}, (), {}).writes

    created, patched = first
    assert isinstance(created, Create)
    assert isinstance(patched, Patch)
    assert (created.endpoint, patched.endpoint) == (TEMPLATES, COMPUTE_DOMAINS)
    assert created.object["metadata"]["ownerReferences"][0]["uid"] == "u-1"
    assert patched.patch["status"] == {"status": "Ready"}
    assert settled == ()
