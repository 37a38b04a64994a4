"""
Ten causes why a pod waits: the first line of `dryrack explain`, and the change that it proposes.

Each cause is asked about on a cluster, and in files that hold the objects of that cluster. Both
must say the same.
"""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.explain_builders import pod, quota, template

from dryrack.cli.allocate import Settings
from dryrack.cli.explain import Subject, explain_files
from dryrack.cli.output import NamedFormat
from dryrack.testing import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


ZONE = "topology.kubernetes.io/zone"
GANG = "pod-group.scheduling.sigs.k8s.io"
# What an explanation in files needs of a cluster.
KINDS = (
    *("nodes", "resourceslices", "deviceclasses", "resourceclaimtemplates", "resourceclaims"),
    *("resourcequotas", "limitranges", "priorityclasses", "pods"),
)


def wrong_class(cluster: Cluster) -> None:
    cluster.add_nodes("p5.48xlarge", count=2)
    cluster.apply([template("t", of="gpu.nvidia.co"), pod("p", "t")])


def other_class(cluster: Cluster) -> None:
    cluster.add_nodes("p5.48xlarge", count=2)
    cluster.add_nodes(name="plain")
    cluster.apply([template("t", of="mig.nvidia.com"), pod("p", "t")])


def selector_typo(cluster: Cluster) -> None:
    cluster.add_nodes(name="plain")
    cluster.add_nodes("p4d.24xlarge", name="old")
    cluster.add_nodes("p5.48xlarge")
    select = "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H100 80GB'"
    cluster.apply([template("t", select=select), pod("p", "t")])


def fragmentation(cluster: Cluster) -> None:
    cluster.add_nodes(name="plain")
    cluster.add_nodes("p5.48xlarge", count=2)
    cluster.apply([template("six", 6), pod("a", "six"), pod("b", "six")])
    cluster.expect_scheduled("a")
    cluster.expect_scheduled("b")
    cluster.apply([template("t", 4), pod("p", "t")])


def mig_profile(cluster: Cluster) -> None:
    cluster.add_nodes(name="plain")
    cluster.add_nodes("p5.48xlarge")
    cluster.add_nodes(name="cut", devices="catalogue:a100-sxm4-40gb,mig=true")
    select = "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"
    cluster.apply([template("t", select=select, of="mig.nvidia.com"), pod("p", "t")])


def taint(cluster: Cluster) -> None:
    cluster.add_nodes(name="plain", count=2)
    cluster.add_nodes("p5.48xlarge", taints=["team=ml:NoSchedule"])
    cluster.apply([template("t", 4), pod("p", "t")])


def priority(cluster: Cluster) -> None:
    cluster.add_nodes("p5.48xlarge")
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "important"},
        "value": 1000,
    }
    cluster.apply([important, template("t", 8), pod("a", "t", priorityClassName="important")])
    cluster.expect_scheduled("a")
    cluster.apply(pod("p", "t"))


def gang(cluster: Cluster) -> None:
    cluster.add_nodes("p5.48xlarge", count=3)
    labels = {f"{GANG}/name": "train", f"{GANG}/min-available": "4"}
    pods = [pod(f"p{number}", "t", labels=labels) for number in range(4)]
    cluster.apply([template("t", 8), *pods])


def zone(cluster: Cluster) -> None:
    cluster.add_nodes(name="plain", labels={ZONE: "b"})
    cluster.add_nodes("p5.48xlarge", count=2, labels={ZONE: "a"})
    cluster.apply([template("t", 4), pod("p", "t", nodeSelector={ZONE: "b"})])


def cpu(cluster: Cluster) -> None:
    cluster.add_nodes(name="plain", count=2)
    cluster.add_nodes("p5.48xlarge", count=2, capacity={"cpu": "32"})
    others = [pod(name, cpu="22", nodeName=on) for name, on in (("a", "node-1"), ("b", "node-2"))]
    cluster.apply([*others, template("t", 4), pod("p", "t", cpu="11")])


@dataclass(frozen=True, slots=True)
class Cause:
    """A situation, the first line about it, and the smallest change."""

    arrange: Callable[[Cluster], None]
    first_line: str
    change: str
    # Further changes that are proposed.
    more: tuple[str, ...] = ()
    # What must not be said.
    never: tuple[str, ...] = field(default=("does it run?", "dra.net", "dra.cpu"))
    kind: str = "pod"
    name: str = "p"


CAUSES = {
    "wrong class": Cause(
        wrong_class,
        "pod default/p is pending: request gpu: device class gpu.nvidia.co does not exist; "
        "did you mean 'gpu.nvidia.com'?",
        "use class gpu.nvidia.com instead of gpu.nvidia.co in request gpu",
    ),
    "class of other devices": Cause(
        other_class,
        "pod default/p is pending: node node-1 and 1 node like it: request gpu: needs 1 device; "
        "class mig.nvidia.com selects none of 42 devices of node node-1; "
        "gpu.nvidia.com/node-1/gpu-0 and 7 more: class mig.nvidia.com does not select it: "
        "type is 'gpu', the class requires 'mig'",
        "use class gpu.nvidia.com instead of mig.nvidia.com in request gpu",
    ),
    "selector typo": Cause(
        selector_typo,
        "pod default/p is pending: node node-1: request gpu: needs 1 device; 0 of 8 are available; "
        "gpu.nvidia.com/node-1/gpu-0 and 7 more: productName is 'NVIDIA H100 80GB HBM3', "
        "the selector requires 'NVIDIA H100 80GB'",
        "use 'NVIDIA H100 80GB HBM3' instead of 'NVIDIA H100 80GB' in the selector of request gpu",
    ),
    "fragmentation": Cause(
        fragmentation,
        "pod default/p is pending: node node-1 and 1 node like it: request gpu: needs 4 devices; "
        "2 of 8 are available (6 in use)",
        "lower the count of request gpu from 4 to 2",
        more=("add 2 devices like gpu.nvidia.com/node-1/gpu-0",),
    ),
    "MIG profile": Cause(
        mig_profile,
        "pod default/p is pending: node cut: request gpu: needs 1 device; 0 of ",
        "use '3g.20gb' instead of '3g.40gb' in the selector of request gpu",
    ),
    "taint": Cause(
        taint,
        "pod default/p is pending: node node-1: the node is tainted team:NoSchedule",
        "tolerate team=ml:NoSchedule of node node-1",
    ),
    "quota": Cause(
        quota,
        "pod default/p is pending: exceeded quota: ResourceQuota gpus allows 4 of "
        "gpu.nvidia.com.deviceclass.resource.k8s.io/devices, 0 are used, and the pod requests 8",
        "raise gpu.nvidia.com.deviceclass.resource.k8s.io/devices in ResourceQuota gpus from 4 to "
        "8",
        more=("lower the count of request gpu from 8 to 4",),
    ),
    "priority": Cause(
        priority,
        "pod default/p is pending: node node-1: request gpu: needs 8 devices; 0 of 8 are available "
        "(8 in use); it cannot preempt pod default/a (priority 1000): its own priority is 0",
        "give the pod a priority above 1000, so that it preempts pod default/a (priority 1000) on "
        "node node-1",
    ),
    "gang too large by one": Cause(
        gang,
        "pod group default/train: 3 of 4 pods fit; pod default/p3 does not fit with them: ",
        "lower the minimum of pod group default/train from 4 to 3",
        more=("add 1 node like node-1",),
        never=("in use by claim", "dra.net"),
        kind="gang",
        name="train",
    ),
    "zone": Cause(
        zone,
        "pod default/p is pending: node node-1 and 1 node like it: the pod's nodeSelector requires "
        f"{ZONE}: b, and the node has 'a'",
        f"remove the nodeSelector {ZONE}: b, or add this label to a node",
    ),
    "CPU beside free GPUs": Cause(
        cpu,
        "pod default/p is pending: node node-1 and 1 node like it: the pod requests 11 of cpu; "
        "the node has 10 of 32 left",
        "request 10 CPUs instead of 11",
    ),
}


def in_files(cause: Cause, cluster: Cluster, folder: Path) -> str:
    """Return what the command says of files with the objects of the cluster."""
    objects = [each for kind in KINDS for each in cluster.list(kind)]
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    settings = Settings.of()
    subject = Subject.of(cause.kind, cause.name, "default")
    words = io.StringIO()
    with redirect_stdout(words), redirect_stderr(io.StringIO()):
        explain_files([str(file)], subject, settings=settings, form=NamedFormat.TABLE)
    return words.getvalue()


def proposed(text: str) -> list[str]:
    """Return the changes that were printed."""
    title = "any one of these would help, the smallest change first:\n"
    return [line.strip() for line in text.partition(title)[2].splitlines()]


def check(cause: Cause, text: str) -> None:
    helps = proposed(text)
    assert text.splitlines()[0].startswith(cause.first_line)
    assert helps[0] == cause.change
    assert set(cause.more) <= set(helps)
    assert not [words for words in cause.never if words in text]


@pytest.mark.parametrize("name", CAUSES)
def test_the_first_line_is_the_cause_and_the_first_change_is_the_smallest(
    name: str, tmp_path: Path
) -> None:
    """On a cluster and in files; every change that is proposed was tried."""
    cause = CAUSES[name]
    with Cluster() as cluster:
        cause.arrange(cluster)
        cluster.clock.advance("10s")
        target = f"gang/{cause.name}" if cause.kind == "gang" else cause.name
        on_cluster = cluster.explain(target)
        of_files = in_files(cause, cluster, tmp_path)

    check(cause, on_cluster)
    check(cause, of_files)
    assert proposed(of_files) == proposed(on_cluster)
