"""The provisioner in scenarios and in the clusters of pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.provisioning.worlds import deploy, instance_type, pool, template

from dryrack.client.credentials import Fixed
from dryrack.client.kubeconfig import Connection
from dryrack.errors import ContentError
from dryrack.scenario import (
    ClusterRun,
    EmbeddedRun,
    Verdict,
    read_scenario,
    run_in_virtual_time,
    run_on_cluster,
)
from dryrack.testing import Cluster, Setup

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.kinds.raw import Raw

NOWHERE = Connection("https://127.0.0.1:1", Fixed())
TYPES = instance_type("g5.xlarge", "g5.12xlarge")
SCENARIO = """
apiVersion: dryrack.dev/v1alpha1
kind: Scenario
fleet: {provisioner: true}
objects: [objects.yaml]
steps:
- expect:
  - object: Pod/train-*
    fields: {status.phase: Running}
    count: 2
  - object: Node/*
    fields: {"metadata.labels[node.kubernetes.io/instance-type]": g5.12xlarge}
    count: 1
- delete: [Deployment/train]
  expect:
  - gone: Node/*
    within: 2m
"""


def objects() -> list[Raw]:
    """Two Pods with two GPUs each, and a NodePool with nodes of one and of four."""
    return [
        {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", **pool("gpus", TYPES)},
        {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", **template(2)},
        {"apiVersion": "apps/v1", "kind": "Deployment", **deploy("train", 2, cpu="1", gpus=2)},
    ]


def test_a_scenario_with_a_provisioner(tmp_path: Path) -> None:
    """A node comes and goes with its Pods; the same seed gives the same journal."""
    import yaml

    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(objects()))
    loaded = read_scenario(SCENARIO, "scenario.yaml", name="scale", folder=tmp_path)
    first = run_in_virtual_time(loaded, EmbeddedRun(seed=1))
    again = run_in_virtual_time(loaded, EmbeddedRun(seed=1))

    assert all(each.verdict is Verdict.HELD for each in first.steps), first
    assert first.hash == again.hash != ""


def test_a_scenario_with_a_provisioner_is_not_run_on_a_cluster(tmp_path: Path) -> None:
    """The error names the field and the remedy, before a cluster is reached."""
    text = SCENARIO.replace("[objects.yaml]", "[]")
    loaded = read_scenario(text, "scenario.yaml", name="scale", folder=tmp_path)
    with pytest.raises(ContentError, match=r"fleet\.provisioner: not supported on a cluster"):
        run_on_cluster(loaded, ClusterRun(connection=NOWHERE))


def test_a_test_cluster_with_a_provisioner() -> None:
    """The Pods get a node that did not exist, without the fixture fleet."""
    with Cluster(Setup(provisioner=True)) as cluster:
        cluster.apply(objects())
        cluster.expect_scheduled("train-*")
        (node,) = cluster.list("nodes")
        labels = node["metadata"]["labels"]
        assert labels["node.kubernetes.io/instance-type"] == "g5.12xlarge"
