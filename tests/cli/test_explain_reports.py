"""Reports of `dryrack explain` about objects other than nodes and devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cli.explain_builders import pod, quota, template

from dryrack.testing import Cluster, Setup

if TYPE_CHECKING:
    from pathlib import Path

    from dryrack.kinds.raw import Raw

LONG = {"dryrack.dev/run-seconds": "3600"}
FABRIC = "device.driver == 'fabric.example.com'"


def fabric(**device: Any) -> list[Raw]:
    """A class and a slice of a fabric that every node reaches."""
    pool = {"name": "fabric", "generation": 1, "resourceSliceCount": 1}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "fabric"},
            "spec": {"selectors": [{"cel": {"expression": FABRIC}}]},
        },
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": "fabric"},
            "spec": {
                "driver": "fabric.example.com",
                "allNodes": True,
                "pool": pool,
                "devices": [{"name": "fab-0", **device}],
            },
        },
    ]


def job(name: str, count: int, uses: str) -> Raw:
    spec = pod("unused", uses)["spec"] | {"restartPolicy": "Never"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": count,
            "completions": count,
            "template": {"metadata": {"annotations": LONG}, "spec": spec},
        },
    }


def test_a_cluster_without_nodes_is_said_to_have_none() -> None:
    """No node is assumed, as it is for files that hold none."""
    with Cluster() as cluster:
        cluster.apply([*fabric(), template("t", of="fabric"), pod("p", "t"), pod("plain")])
        cluster.clock.advance("10s")

        assert cluster.explain("p").startswith("pod default/p is pending: the cluster has no")
        assert cluster.explain("plain").startswith(
            "pod default/plain is pending: the cluster has no"
        )


def test_a_pod_that_waits_for_a_device_to_be_attached_is_told_which() -> None:
    """The device and the binding condition are named; the scheduler does run."""
    wanted = "example.com/attached"
    with Cluster() as cluster:
        cluster.add_nodes()
        attaching = fabric(bindsToNode=True, bindingConditions=[wanted])
        attaching[1]["spec"]["devices"][0]["bindingFailureConditions"] = ["example.com/failed"]
        cluster.apply([*attaching, template("t", of="fabric"), pod("p", "t")])
        cluster.clock.advance("10s")
        text = cluster.explain("p")

    device = "device fabric.example.com/fabric/fab-0 of claim default/p-gpu-"
    assert text.startswith(f"pod default/p is pending: {device}")
    assert f" on node node-1: the binding condition {wanted} is not set" in text.splitlines()[0]
    assert "does it run?" not in text


def test_a_driver_without_slices_is_named_and_no_node_for_it() -> None:
    """The driver is missing on all nodes."""
    with Cluster() as cluster:
        cluster.add_nodes("p5.48xlarge")
        cluster.apply([fabric()[0], template("t", of="fabric"), pod("p", "t")])
        cluster.clock.advance("10s")
        text = cluster.explain("p")

    assert text.splitlines()[0] == (
        "pod default/p is pending: request gpu: no ResourceSlice of driver fabric.example.com "
        "exists; install the driver, or check that it runs on the nodes"
    )


def test_a_missing_template_is_named_with_what_to_do() -> None:
    """The claim controller says the same in an event."""
    with Cluster() as cluster:
        cluster.add_nodes("p5.48xlarge")
        cluster.apply(pod("p", "nowhere"))
        cluster.clock.advance("10s")
        text = cluster.explain("p")

    assert "uses ResourceClaimTemplate 'nowhere', which does not exist" in text.splitlines()[0]
    assert "does it run?" not in text


def test_quota_is_the_cause_on_a_full_fleet_as_well() -> None:
    """Devices that others hold do not matter to a claim that is not created."""
    with Cluster() as cluster:
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
        quota(cluster)
        for number in range(2):
            full = [template(f"t{number}", 8), pod(f"full-{number}", f"t{number}")]
            cluster.apply(
                [{**e, "metadata": {**e["metadata"], "namespace": "other"}} for e in full]
            )
        cluster.clock.advance("10s")
        text = cluster.explain("p")

    assert text.startswith(
        "pod default/p is pending: exceeded quota: ResourceQuota gpus allows 4 of "
    )
    assert "would help" not in text


def test_a_claim_that_a_driver_cannot_prepare_is_told_on_the_node() -> None:
    """The kubelet's event is what a person would look for."""
    with Cluster(Setup(without=("kubelet",))) as cluster:
        cluster.add_nodes("p5.48xlarge")
        anywhere = [{"operator": "Exists"}]
        cluster.apply([template("t"), pod("p", "t", tolerations=anywhere)])
        cluster.expect_scheduled("p")
        about = {"kind": "Pod", "namespace": "default", "name": "p"}
        message = "Failed to prepare dynamic resources: the driver is broken"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "p.1", "namespace": "default"},
            "involvedObject": about,
            "reason": "FailedPrepareDynamicResources",
            "message": message,
            "type": "Warning",
        }
        cluster.apply(event)
        text = cluster.explain("p")

    assert text.startswith("pod default/p is on node node-1")
    assert f"its node cannot prepare its claims: {message}" in text


def test_pods_of_a_job_are_told_together() -> None:
    """The report has the number of pods that fit, and why the next one does not."""
    with Cluster() as cluster:
        cluster.add_nodes("p5.48xlarge")
        cluster.apply([template("four", 4), job("small", 5, "four")])
        cluster.clock.advance("10s")
        waiting = cluster.pending()
        text = cluster.explain(waiting[0].partition("/")[2])

    assert text.splitlines()[1] == "Job small: 2 of 5 pods fit"


def test_a_job_in_files_is_explained_by_its_name(tmp_path: Path) -> None:
    """The report explains the first pod that does not fit."""
    import io
    from contextlib import redirect_stderr, redirect_stdout

    import yaml

    from dryrack.cli.allocate import Settings
    from dryrack.cli.explain import Subject, explain_files
    from dryrack.cli.output import NamedFormat

    with Cluster() as cluster:
        cluster.add_nodes("p5.48xlarge")
        kinds = ("nodes", "resourceslices", "deviceclasses")
        fleet = [each for kind in kinds for each in cluster.list(kind)]
    file = tmp_path / "files.yaml"
    file.write_text(yaml.safe_dump_all([*fleet, template("four", 4), job("small", 5, "four")]))
    settings = Settings.of()
    words = io.StringIO()
    with redirect_stdout(words), redirect_stderr(io.StringIO()):
        fits = explain_files(
            [str(file)],
            Subject.of("job", "small", "default"),
            settings=settings,
            form=NamedFormat.TABLE,
        )

    lines = words.getvalue().splitlines()
    assert not fits
    assert lines[0].startswith("pod default/small-2 is pending: node node-1: request gpu: needs 4 ")
    assert lines[1] == "Job small: 2 of 5 pods fit"
