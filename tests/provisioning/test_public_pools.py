"""NodePools as people write them for Karpenter's providers: they are accepted, and create nodes."""

from __future__ import annotations

import pytest
from tests.provisioning.worlds import pod, template

from dryrack.testing import Cluster, Setup

AWS_CLASS = """
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec:
  role: KarpenterNodeRole-test
  amiSelectorTerms: [{alias: al2023@latest}]
"""
KWOK_CLASS = """
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
"""
TEMPLATE = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: pool, annotations: {kubernetes.io/description: a pool}}
spec:
  template:
    metadata: {labels: {intent: apps}}
    spec:
      nodeClassRef: {group: GROUP, kind: KIND, name: default}
      expireAfter: 720h
      terminationGracePeriod: 1h
      requirements: [REQUIREMENTS]
  limits: {cpu: 1000, memory: 4000Gi}
  weight: 10
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 1m
    budgets:
    - {nodes: "20%", reasons: [Empty, Drifted]}
    - {nodes: "5"}
    - {nodes: "0", schedule: "@daily", duration: 10m, reasons: [Underutilized]}
"""
LINUX = (
    "{key: kubernetes.io/os, operator: In, values: [linux]}, "
    "{key: kubernetes.io/arch, operator: In, values: [amd64]}"
)
SPOT = "{key: karpenter.sh/capacity-type, operator: In, values: [spot]}"
BOTH = "{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}"


def aws(name: str, operator: str, *values: str, least: int = 0) -> str:
    listed = ", ".join(f'"{each}"' for each in values)
    more = f", minValues: {least}" if least else ""
    key = f"karpenter.k8s.aws/instance-{name}"
    return f"{{key: {key}, operator: {operator}, values: [{listed}]{more}}}"


@pytest.mark.parametrize(
    ("node_class", "requirements", "gpus", "expected"),
    [
        (KWOK_CLASS, f"{LINUX}, {SPOT}", 0, ("c-1x-amd64-linux", "spot")),
        (KWOK_CLASS, f"{LINUX}, {BOTH}", 1, ("g4dn.xlarge", "on-demand")),
        (
            AWS_CLASS,
            (
                f"{LINUX}, {BOTH}, {aws('category', 'In', 'c', 'm', 'r', least=2)}, "
                f"{aws('generation', 'Gt', '2')}"
            ),
            0,
            ("c-1x-amd64-linux", "on-demand"),
        ),
        (
            AWS_CLASS,
            (
                f"{LINUX}, {aws('cpu', 'Gt', '3')}, {aws('memory', 'Gte', '16384')}, "
                f"{aws('cpu', 'Lte', '8')}, {aws('category', 'NotIn', 'r')}"
            ),
            0,
            ("s-4x-amd64-linux", "on-demand"),
        ),
        (
            AWS_CLASS,
            f"{LINUX}, {aws('gpu-name', 'In', 'h100')}, {aws('gpu-count', 'Gt', '4')}",
            1,
            ("p5.48xlarge", "on-demand"),
        ),
        (
            AWS_CLASS,
            f"{LINUX}, {aws('family', 'In', 'g5', 'g6')}, {aws('size', 'NotIn', 'xlarge')}",
            4,
            ("g6.12xlarge", "on-demand"),
        ),
        (AWS_CLASS, aws("generation", "Lt", "5"), 8, ("g4dn.metal", "on-demand")),
    ],
)
def test_pools_of_providers(
    node_class: str, requirements: str, gpus: int, expected: tuple[str, str]
) -> None:
    """The manifest is accepted unmodified, and the Pod runs on the cheapest type of the pool."""
    is_aws = node_class is AWS_CLASS
    group = "karpenter.k8s.aws" if is_aws else "karpenter.kwok.sh"
    kind = "EC2NodeClass" if is_aws else "KWOKNodeClass"
    made = TEMPLATE.replace("GROUP", group).replace("KIND", kind)
    with Cluster(Setup(provisioner=True)) as cluster:
        cluster.apply(f"{made.replace('REQUIREMENTS', requirements)}---{node_class}")
        if gpus:
            claims = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
            cluster.apply({**claims, **template(gpus)})
        guest = pod("guest", cpu="500m", gpus=gpus, nodeSelector={"intent": "apps"})
        cluster.apply({"apiVersion": "v1", "kind": "Pod", **guest})
        cluster.expect_scheduled("guest")
        (node,) = cluster.list("nodes")
        labels = node["metadata"]["labels"]
        keys = ("node.kubernetes.io/instance-type", "karpenter.sh/capacity-type")
        assert tuple(labels[key] for key in keys) == expected
        assert cluster.get("nodepools", "pool")["status"]["nodes"] == 1
