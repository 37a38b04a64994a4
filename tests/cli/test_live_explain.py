"""`dryrack explain` on a cluster, as a person runs it: the case as it is now."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.command import dryrack
from tests.cli.live_plane import plane, settle
from tests.scheduler.messages import refusal_in

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with plane(tmp_path_factory.mktemp("plane")) as path:
        settle(path)
        yield path


def explain(kubeconfig: Path, *words: str) -> subprocess.CompletedProcess[str]:
    done = dryrack("explain", *words, "-n", "team", "--kubeconfig", kubeconfig)
    assert "Traceback" not in done.stderr
    return done


def document(kubeconfig: Path, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(explain(kubeconfig, *words, "-o", "json").stdout)
    return found


def test_a_pod_that_waits_is_told_why_and_what_would_help(kubeconfig: Path) -> None:
    """The nearest cause comes first, then what the scheduler said."""
    done = explain(kubeconfig, "pod", "waits")
    lines = done.stdout.splitlines()

    assert done.returncode == 1
    assert lines[0].startswith("pod team/waits is pending: node rack-2: request gpu: needs 4 dev")
    assert lines[1].startswith("default-scheduler reported ")
    assert " ago: 0/2 nodes are available: " in lines[1]
    assert lines[3] == "node rack-2, 1 short"
    helps = lines[lines.index("any one of these would help, the smallest change first:") + 1 :]
    assert helps[0].startswith("  remove the taint ")
    assert "  lower the count of request gpu from 4 to 3" in lines


def test_programs_read_what_a_person_is_told(kubeconfig: Path) -> None:
    """The message of the decision is that of the scheduler, but for what it says of preemption."""
    waits = document(kubeconfig, "pod", "waits")

    assert refusal_in(waits["said"]["message"]) == waits["message"].rstrip(".")
    assert waits["said"]["by"] == "default-scheduler"
    assert [each["node"] for each in waits["nodes"]] == ["rack-2", "rack-1"]
    assert "trace" not in waits


def test_a_pod_without_claims_has_a_case_too(kubeconfig: Path) -> None:
    """The explanation has the requirements for nodes, and which one to remove."""
    done = explain(kubeconfig, "pod", "lost")

    assert "2 node(s) didn't match Pod's node affinity/selector" in done.stdout
    assert "remove the nodeSelector disk: fast, or add this label to a node" in done.stdout


def test_a_pod_that_is_placed_is_told_where_and_why(kubeconfig: Path) -> None:
    """The output has its devices, and with -v the result of each plugin."""
    done = explain(kubeconfig, "pod", "train", "-v")

    assert done.returncode == 0
    assert done.stdout.startswith("pod team/train is on node rack-1\n  claim team/three\n")
    assert "    gpu: gpu.nvidia.com/rack-1/gpu-2\n" in done.stdout
    assert "it is the best of 2 nodes where the pod fits: " in done.stdout
    assert "rack-1   DynamicResources    passed" in done.stdout
    assert "selected by profile default-scheduler: node rack-1" in done.stdout


def test_the_trace_is_for_programs_as_well(kubeconfig: Path) -> None:
    """Plugin by plugin and node by node."""
    trace = document(kubeconfig, "pod", "lost", "-v")["trace"]

    assert trace["chosen"] == ""
    refused = [each["filters"][-1] for each in trace["nodes"]]
    assert {(each["plugin"], each["verdict"]) for each in refused} == {("NodeAffinity", "refused")}


def test_gates_are_told_before_anything_else(kubeconfig: Path) -> None:
    """And what would become of the pod without them."""
    done = explain(kubeconfig, "pod", "gated")

    assert done.returncode == 1
    assert "pod team/gated has scheduling gates: example.com/quota\n" in done.stdout
    assert "it now fits on node rack-" in done.stdout


def test_a_gang_is_told_with_the_proof_and_so_are_its_pods(kubeconfig: Path) -> None:
    """The report has the number of pods that fit, and why the next one does not."""
    gang = explain(kubeconfig, "gang", "pair")
    member = explain(kubeconfig, "pod", "first")
    proof = "pod group team/pair: 1 of 2 pods fit; pod team/second does not fit with them: "

    assert gang.returncode == member.returncode == 1
    assert gang.stdout.startswith(proof)
    assert member.stdout.startswith(f"pod team/first is pending with its gang:\n{proof}")
    assert document(kubeconfig, "gang", "pair")["gangs"][0]["fits"] is False


def test_a_claim_is_told_with_what_it_has_or_with_its_pod(kubeconfig: Path) -> None:
    """Devices are given when a pod is placed."""
    has = explain(kubeconfig, "claim", "three")
    waits = explain(kubeconfig, "claim", "four")

    assert has.returncode == 0
    assert has.stdout.startswith("claim team/three is allocated on node rack-1:\n")
    assert has.stdout.endswith("used by: train\n")
    assert waits.stderr == "claim team/four is not allocated, because its pod has no node:\n"
    assert waits.stdout.startswith("pod team/waits is pending: ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("pod", "trian"),
            "pod 'team/trian' not found, or it has ended; did you mean 'team/train'?",
        ),
        (("claim", "thre"), "claim 'team/thre' not found; did you mean 'team/three'?"),
        (("gang", "pairs"), "gang 'team/pairs' not found; did you mean 'team/pair'?"),
        (("gang", "other/pair"), "gang 'other/pair' not found; did you mean 'team/pair'?"),
    ],
)
def test_names_that_nobody_has_are_told_with_what_was_meant(
    kubeconfig: Path, words: tuple[str, ...], told: str
) -> None:
    """In a line."""
    done = explain(kubeconfig, *words)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"dryrack: {told}\n"


def test_plans_of_a_cluster_keep_its_nodes_or_begin_from_zero(kubeconfig: Path) -> None:
    """With --existing the plan is for pending pods; otherwise it is for all pods."""
    words = ("plan", "--kubeconfig", kubeconfig, "--instance-types", "p5.48xlarge", "-o", "json")
    kept = json.loads(dryrack(*words, "--existing").stdout)
    fresh = json.loads(dryrack(*words).stdout)
    more = {pod for node in (*kept["nodes"], *kept["existing"]) for pod in node["pods"]}
    every = {pod for node in fresh["nodes"] for pod in node["pods"]}

    assert "team/waits" in more
    assert "team/train" not in more
    assert {"team/waits", "team/train"} <= every
    assert (fresh["existing"], kept["optimal"], fresh["optimal"]) == ([], True, True)
