"""dryrack reads a dump of a cluster, as `kubectl get -o yaml` prints it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack
from tests.cli.dumps import claim, dump, pod, pod_spec

from dryrack.testing import Cluster

if TYPE_CHECKING:
    from pathlib import Path

DUMPED = ["nodes", "resourceslices", "deviceclasses", "resourceclaims", "pods"]
WHOLE = [
    *DUMPED,
    *["resourceclaimtemplates", "deployments", "replicasets", "namespaces", "events", "leases"],
]


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": pod_spec(resourceClaimTemplateName="two"),
        },
    },
}


@pytest.mark.parametrize("kinds", [DUMPED, WHOLE], ids=["five kinds", "more"])
def test_pods_that_run_keep_their_devices_and_the_others_are_tried(
    kinds: list[str], tmp_path: Path
) -> None:
    """Status, managedFields and owners are no obstacle; files and plane agree."""
    with Cluster() as cluster:
        cluster.add_nodes(count=2, devices="fake:4")
        cluster.apply([claim("two", 2, "ResourceClaimTemplate"), claim("one", 1), DEPLOYMENT])
        cluster.apply([pod("a", resourceClaimName="one"), pod("b", resourceClaimName="one")])
        for target in ("web-*", "a", "b"):
            cluster.expect_scheduled(target)
        cluster.apply([claim("four", 4), pod("greedy", resourceClaimName="four")])
        cluster.expect_pending("greedy")
        cluster.add_nodes(name="small", taints=["team=x:NoSchedule"], devices="fake:4")
        assert cluster.pending() == ["default/greedy"]
        dump(cluster, kinds, tmp_path / "dump.yaml")
        cluster.apply([claim("late", 2), pod("modest", resourceClaimName="late")])
        there = cluster.expect_scheduled("modest")

    done = dryrack("allocate", "-f", tmp_path / "dump.yaml", "-o", "json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1, done.stderr
    assert answer["allocations"] == []
    assert [each["claim"] for each in answer["unsatisfied"]] == ["default/four"]
    late = tmp_path / "late.yaml"
    late.write_text(yaml.safe_dump_all([claim("late", 2), pod("modest", resourceClaimName="late")]))

    done = dryrack("allocate", "-f", tmp_path / "dump.yaml", "-f", late, "-o", "json")
    (given,) = json.loads(done.stdout)["allocations"]
    devices = [
        f"{each['driver']}/{each['pool']}/{each['device']}"
        for each in given["allocation"]["devices"]["results"]
    ]
    assert (given["claim"], given["node"]) == ("default/late", there.node)
    assert sorted(devices) == [*there.devices]


def test_what_takes_no_part_is_told_once_for_each_kind(tmp_path: Path) -> None:
    """The events of a dump do not hide what matters."""
    events = [
        {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"e{each}", "namespace": "x"}}
        for each in range(30)
    ]
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    path = tmp_path / "dump.yaml"
    path.write_text(yaml.safe_dump_all([node, *events, claim("one", 1)]))
    said = dryrack("allocate", "-f", path).stderr

    assert f"{path}: ignored 30 objects of kind Event: dryrack does not use this kind\n" in said
    assert "e7" not in said


def test_a_dump_without_claims_is_answered_with_the_command_that_has_them(tmp_path: Path) -> None:
    """As of `kubectl get all`: one hint and no verdict, since devices that are used look free."""
    path = tmp_path / "all.yaml"
    rest = tmp_path / "rest.yaml"
    with Cluster() as cluster:
        cluster.add_nodes(devices="fake:4")
        cluster.apply([claim("two", 2, "ResourceClaimTemplate"), DEPLOYMENT])
        cluster.expect_scheduled("web-*")
        dump(cluster, ["pods", "deployments", "replicasets"], path)
        dump(cluster, ["nodes", "resourceslices", "deviceclasses"], rest)

    for command in (("allocate",), ("record",), ("explain", "pod", "web-0")):
        done = dryrack(*command, "-f", path, "-f", rest)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.count("dump with: kubectl get nodes,resourceslices,") == 1
    linted = json.loads(dryrack("lint", "-o", "json", path, rest).stdout)["findings"]
    assert [each["object"].split()[0] for each in linted] == ["Deployment", "ReplicaSet"]
    assert all(each["fix"].startswith("add it to the dump with: kubectl") for each in linted)


def test_a_written_pod_beside_nothing_lacks_its_template(tmp_path: Path) -> None:
    """No cluster has made it, so that it is no dump that would be dumped better."""
    path = tmp_path / "pod.yaml"
    path.write_text(yaml.safe_dump(pod("a", resourceClaimTemplateName="two")))

    assert "'two', which does not exist; add it" in dryrack("allocate", "-f", path).stderr
    assert "add the ResourceClaimTemplate" in dryrack("lint", path).stdout
