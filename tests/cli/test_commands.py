"""The commands on the example files: what they print, in which form, with which exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import yaml
from tests.cli.command import EXAMPLES, documents, dryrack

if TYPE_CHECKING:
    from pathlib import Path

FLEET = ("-f", "nodes.yaml")


def test_allocate_prints_one_row_for_each_device() -> None:
    """A table in a pipe is plain columns."""
    done = dryrack("allocate", *FLEET, "-f", "training.yaml")
    rows = [line.split() for line in done.stdout.splitlines()]

    assert rows[0] == ["CLAIM", "NODE", "REQUEST", "DEVICE"]
    assert rows[1] == ["default/trainer-gpus", "rack-1", "gpus", "gpu.nvidia.com/rack-1/gpu-0"]
    assert len(rows) == 6
    assert done.returncode == 0


def test_allocate_answers_programs_in_the_promised_shape() -> None:
    """JSON: allocations with Kubernetes' own AllocationResult, unsatisfied with reasons."""
    done = dryrack("allocate", *FLEET, "-f", "training.yaml", "-f", "four-gpus.yaml", "-o", "json")
    answer = json.loads(done.stdout)
    first = answer["allocations"][0]
    refused = answer["unsatisfied"][0]
    reasons = refused["nodes"][0]["reasons"]

    assert (first["claim"], first["node"]) == ("default/trainer-gpus", "rack-1")
    assert first["allocation"]["devices"]["results"][0] == {
        "request": "gpus",
        "driver": "gpu.nvidia.com",
        "pool": "rack-1",
        "device": "gpu-0",
    }
    assert refused["claim"] == "default/four-gpus"
    assert {"request", "device", "reason", "message"} <= set(reasons[0])
    assert {reason["reason"] for reason in reasons} == {"not-enough", "in-use"}
    assert done.returncode == 1


def test_yaml_says_the_same_as_json() -> None:
    """The two are one answer in two forms."""
    words = ("allocate", *FLEET, "-f", "training.yaml")
    by_json = json.loads(dryrack(*words, "-o", "json").stdout)
    by_yaml = yaml.safe_load(dryrack(*words, "-o", "yaml").stdout)

    assert by_json == by_yaml


def test_names_are_printed_as_kubectl_prints_them() -> None:
    """Only objects that get devices are printed; the exit status shows that others do not."""
    done = dryrack("allocate", *FLEET, "-f", "training.yaml", "-f", "four-gpus.yaml", "-o", "name")
    every = (*FLEET, "training.yaml", "four-gpus.yaml")
    claim = dryrack("explain", "claim", "four-gpus", *every, "-o", "name")

    assert done.stdout.splitlines()[:2] == [
        "pod/trainer",
        "resourceclaim.resource.k8s.io/trainer-gpus",
    ]
    assert "four-gpus" not in done.stdout
    assert (claim.stdout, claim.returncode) == ("", 1)


def test_one_node_alone_can_be_tried() -> None:
    """--node leaves the others out."""
    done = dryrack("allocate", *FLEET, "-f", "training.yaml", "--node", "rack-2", "-o", "json")
    answer = json.loads(done.stdout)

    assert {each["node"] for each in answer["allocations"]} == {"rack-2"}


def test_a_node_that_is_not_in_the_files_is_a_wrong_call() -> None:
    """A typing error in --node does not look like a claim that does not fit."""
    done = dryrack("allocate", *FLEET, "-f", "training.yaml", "--node", "rack-3")

    assert "--node 'rack-3': the files have no such Node; did you mean 'rack-" in done.stderr
    assert done.returncode == 2


def test_a_node_that_no_slice_names_is_a_wrong_call_too(tmp_path: Path) -> None:
    """If the files have no Nodes, --node accepts only nodes that slices name."""
    others = [each for each in documents("nodes.yaml") if each["kind"] != "Node"]
    (tmp_path / "slices.yaml").write_text(yaml.safe_dump_all(others))
    words = ("-f", "slices.yaml", "-f", str(EXAMPLES / "training.yaml"), "--node", "rack-3")
    done = dryrack("allocate", *words, cwd=tmp_path)

    assert "--node 'rack-3': the files have no such Node; did you mean 'rack-" in done.stderr
    assert done.returncode == 2


def test_a_class_that_is_not_there_leads_to_lint(tmp_path: Path) -> None:
    """The words are Kubernetes' own; what was meant and in which line, lint knows."""
    greedy = (EXAMPLES / "four-gpus.yaml").read_text().replace("gpu.nvidia.com", "gpu.nvidia.con")
    (tmp_path / "typo.yaml").write_text(greedy)
    words = ("-f", str(EXAMPLES / "nodes.yaml"), "-f", "typo.yaml")
    done = dryrack("explain", "claim", "four-gpus", *words, cwd=tmp_path)

    assert '"gpu.nvidia.con" not found; correct the object (dryrack lint' in done.stdout


def test_explain_tells_the_nearest_miss_and_what_would_help() -> None:
    """The node that lacks one device comes before the one that lacks four."""
    done = dryrack("explain", "claim", "four-gpus", *FLEET, "four-gpus.yaml", "-o", "json")
    story = json.loads(done.stdout)

    assert story["allocated"] is True
    assert story["node"] == "rack-1"


def test_explain_of_a_claim_that_does_not_fit_names_a_change_that_helps() -> None:
    """Taking the taint away is enough, and is said."""
    done = dryrack("explain", "claim", "four-gpus", *FLEET, "four-gpus.yaml", "--node", "rack-2")

    assert "remove the taint example.com/xid:NoSchedule" in done.stdout
    assert done.returncode == 1


def test_a_directory_stands_for_its_manifests(tmp_path: Path) -> None:
    """In the order of their names, and nothing else in it is read."""
    for name in ("nodes.yaml", "training.yaml"):
        (tmp_path / name).write_bytes((EXAMPLES / name).read_bytes())
    (tmp_path / "notes.txt").write_text("{")
    one_by_one = dryrack("allocate", *FLEET, "-f", "training.yaml")
    together = dryrack("allocate", "-f", tmp_path)

    assert (together.returncode, together.stdout) == (0, one_by_one.stdout)


def test_explain_takes_kind_and_name_as_one_word() -> None:
    """As kubectl does; what comes next are files."""
    apart = dryrack("explain", "pod", "trainer", *FLEET, "training.yaml")
    joined = dryrack("explain", "pod/trainer", "nodes.yaml", "training.yaml")

    assert (joined.returncode, joined.stdout) == (apart.returncode, apart.stdout)


def test_explain_wants_a_name() -> None:
    """A kind alone says nothing."""
    done = dryrack("explain", "pod")

    told = "dryrack: pod: name is missing; write: dryrack explain pod NAME\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_explain_takes_a_pod_as_well() -> None:
    """A pod's claims are explained together."""
    done = dryrack("explain", "pod", "trainer", *FLEET, "training.yaml")

    assert "pod default/trainer fits on node rack-1:\n  claim default/trainer-gpus" in done.stdout
    assert done.returncode == 0


def test_the_version_is_data_too() -> None:
    """Programs read it as JSON."""
    assert json.loads(dryrack("version", "-o", "json").stdout).keys() == {"version"}


def test_nodes_of_which_the_same_is_true_are_told_together(tmp_path: Path) -> None:
    """Fifty nodes that lack the same are one paragraph, and all of them in the JSON."""
    slices = "".join(
        f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {{name: s{n}}}
spec:
  driver: gpu.example.com
  nodeName: n{n}
  pool: {{name: n{n}, generation: 1, resourceSliceCount: 1}}
  devices: [{{name: gpu-0}}]
---
"""
        for n in range(50)
    )
    wanted = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: pair}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 2}}]}}
"""
    (tmp_path / "a.yaml").write_text(slices + wanted)
    told = dryrack("allocate", "-f", "a.yaml", cwd=tmp_path).stderr
    explained = dryrack("explain", "claim", "pair", "-f", "a.yaml", cwd=tmp_path).stdout
    data = json.loads(dryrack("allocate", "-f", "a.yaml", "-o", "json", cwd=tmp_path).stdout)

    assert "node n0 and 49 nodes like it:" in told
    assert "node n0 and 49 nodes like it, 1 short" in explained
    assert len(data["unsatisfied"][0]["nodes"]) == 50


def test_explain_takes_a_pod_without_claims(tmp_path: Path) -> None:
    """The explanation has the requirements for nodes, from the profile of the scheduler."""
    pod = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
        "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100}}}]}\n"
    )
    config = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {filter: {disabled: [{name: NodeResourcesFit}]}}}]\n"
    )
    for name, text in (("pod.yaml", pod), ("config.yaml", config)):
        (tmp_path / name).write_text(text)
    words = ("explain", "pod", "p", *FLEET, "-f", tmp_path / "pod.yaml")
    usual = dryrack(*words)
    other = dryrack(*words, "--scheduler-config", tmp_path / "config.yaml", "-v")

    assert usual.returncode == 1
    assert "request 32 CPUs instead of 100" in usual.stdout
    assert other.returncode == 0
    assert "pod default/p fits on node rack-1" in other.stdout
    assert "NodeResourcesFit   passed" not in other.stdout


def test_explaining_for_one_node_speaks_of_that_node() -> None:
    """The explanation mentions no other node."""
    words = ("explain", "claim", "four-gpus", *FLEET, "-f", "four-gpus.yaml", "--node", "rack-2")
    done = dryrack(*words)

    assert done.stdout.startswith("default/four-gpus does not fit on node rack-2\n")


TWO = {"deviceClassName": "gpu.nvidia.com", "count": 2}


def gang(folder: Path, pods: int) -> Path:
    """A file with a gang that needs all its pods, each with two devices of one node."""
    prefix = "pod-group.scheduling.sigs.k8s.io"
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus"},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpus", "exactly": TWO}]}}},
    }
    made: list[object] = [template]
    for number in range(pods):
        labels = {f"{prefix}/name": "training", f"{prefix}/min-available": str(pods)}
        claims = [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]
        containers = [{"name": "c", "image": "i"}]
        made.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"worker-{number}", "labels": labels},
                "spec": {"containers": containers, "resourceClaims": claims},
            }
        )
    file = folder / "gang.yaml"
    file.write_text(yaml.safe_dump_all(made))
    return file


def test_allocate_tells_once_why_a_gang_does_not_fit(tmp_path: Path) -> None:
    """No pod of the gang gets devices; those that would fit wait."""
    file = gang(tmp_path, 4)
    done = dryrack("allocate", *FLEET, "-f", str(file))

    assert "waits for its gang" in done.stdout
    assert done.stderr.count("pod group default/training: ") == 1
    assert done.returncode == 1


def test_explain_gang_says_where_its_pods_go(tmp_path: Path) -> None:
    """One line for each, and the exit code of a claim that fits."""
    file = gang(tmp_path, 3)
    done = dryrack("explain", "gang", "training", *FLEET, "-f", str(file))

    assert done.stdout.splitlines()[0] == "pod group default/training fits:"
    assert "  pod default/worker-0: node " in done.stdout
    assert done.returncode == 0


def test_explain_gang_says_why_it_does_not_fit_and_what_would_help(tmp_path: Path) -> None:
    """The proof first, then the story of the claim that finds nothing."""
    file = gang(tmp_path, 4)
    done = dryrack("explain", "gang", "training", *FLEET, "-f", str(file))
    by_json = dryrack("explain", "gang", "training", *FLEET, "-f", str(file), "-o", "json")
    (document,) = json.loads(by_json.stdout)["gangs"]

    assert " pods fit; pod default/worker-" in done.stdout.splitlines()[0]
    assert "would help" in done.stdout
    assert document["message"] == done.stdout.splitlines()[0]
    assert [each["claim"] for each in document["claims"]]
    assert (done.returncode, by_json.returncode) == (1, 1)


def test_explain_names_the_gang_that_is_not_there() -> None:
    """As for claims and pods."""
    done = dryrack("explain", "gang", "training", *FLEET, "-f", "training.yaml")

    assert "gang 'default/training' not found" in done.stderr
    assert done.returncode == 1


def test_a_claim_that_the_files_do_not_contain_is_named() -> None:
    """Files without any claim name it, too."""
    done = dryrack("explain", "claim", "nope", "-f", "nodes.yaml")

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == 'dryrack: claim "nope" not found: the files contain no claims\n'
