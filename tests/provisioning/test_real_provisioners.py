"""
Nodes for pods with claims by Karpenter 1.14.1 and by dryrack, on `dryrack up` and on real clusters.

The workflow is that of the design of Karpenter's DRA KWOK driver: a Pod with a claim is
unschedulable, a node is provisioned, its slices appear, the Pod runs, and the empty node goes.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.clients.served import ServedPlane
from tests.golang import sources
from tests.provisioning.beds import DEVICE_CLASS, MODULE, Bed, print_provision
from tests.publisher.real_publisher import ALONE
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options
from tests.realcluster.processes import Processes

from dryrack.cluster import node_pool_objects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartCluster

    from dryrack.kinds.raw import Raw

pytestmark = pytest.mark.real
PLAIN = """
apiVersion: v1
kind: Pod
metadata: {name: plain}
spec:
  nodeSelector: {node.kubernetes.io/instance-type: g5.xlarge}
  containers: [{name: main, image: example.com/main, resources: {requests: {cpu: "1"}}}]
"""


@contextmanager
def served(directory: Path) -> Iterator[Bed]:
    """`dryrack up` with the devices of instance types."""
    with ServedPlane(directory, name="provisioners", options=("--catalogue",)) as plane:
        processes = Processes(directory)
        try:
            yield Bed(plane.kubeconfig, processes, plane.kubectl)
        finally:
            processes.kill_all()


def real(cluster: Cluster) -> Bed:
    """A real control plane with KWOK, whose nodes get devices from `dryrack publish`."""
    bed = Bed(cluster.plane.kubeconfig, cluster.processes, cluster.plane.kubectl)
    bed.must("apply", "-f", "-", stdin=DEVICE_CLASS)
    bed.start_dryrack("publish", "--catalogue", ALONE)
    return bed


def check_karpenter(bed: Bed) -> None:
    types = bed.start_karpenter()
    bed.start_dryrack("provision", "--karpenter", "--instance-types", str(types), ALONE)
    bed.check_workflow()
    # Karpenter serves pods without claims as before, and no stand-in is created for them.
    bed.must("apply", "-f", "-", stdin=PLAIN)
    bed.must("wait", "--for=condition=Ready", "pod/plain", "--timeout=60s")
    assert [each["metadata"]["name"] for each in bed.items("pods")] == ["plain"]


def test_karpenter_on_the_embedded_control_plane(tmp_path: Path) -> None:
    """Karpenter creates the node that dryrack chooses, and removes it when it is empty."""
    with served(tmp_path) as bed:
        check_karpenter(bed)


def test_karpenter_on_a_real_cluster(start_cluster: StartCluster) -> None:
    """The same with a real API server, kube-scheduler, and KWOK."""
    check_karpenter(real(start_cluster(Options(), Parts(kwok=True))))


def test_dryrack_provision_on_a_real_cluster(start_cluster: StartCluster) -> None:
    """`dryrack provision` creates and removes the node of KWOK."""
    bed = real(start_cluster(Options(), Parts(kwok=True)))
    crds = bed.processes.directory / "crds.yaml"
    crds.write_text(print_provision("--print-crds"))
    bed.must("apply", "-f", str(crds))
    bed.must("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    bed.start_dryrack("provision", ALONE)
    bed.check_workflow()


def test_kubectl_prints_the_columns_of_karpenter() -> None:
    """The columns and the short names of NodePools, NodeClaims, and node classes are the same."""
    folder = sources(MODULE, "sigs.k8s.io/karpenter")
    theirs = {}
    for path in (*folder.glob("pkg/apis/crds/*.yaml"), *folder.glob("kwok/apis/crds/*.yaml")):
        for each in yaml.safe_load_all(path.read_text()):
            theirs[each["metadata"]["name"]] = _printed(each)
    ours = {each["metadata"]["name"]: _printed(each) for each in node_pool_objects()}

    # The provider for AWS is another module.
    del ours["ec2nodeclasses.karpenter.k8s.aws"]
    assert ours == {name: theirs[name] for name in ours}


def _printed(definition: Raw) -> tuple[Raw, list[tuple[str, str, int]]]:
    columns = definition["spec"]["versions"][0].get("additionalPrinterColumns", ())
    listed = [(each["name"], each["jsonPath"], each.get("priority", 0)) for each in columns]
    return definition["spec"]["names"], listed
