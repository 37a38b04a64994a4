"""
A dump that kubectl printed from a cluster of Kubernetes itself.

The file was written by kubectl 1.36.4 from kube-apiserver, kube-scheduler and
kube-controller-manager of that release with nodes of KWOK; only some Events were left out, and the
name of the machine in them changed. One pod of the Deployment waits, because all devices are taken.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import run

DUMP = str(Path(__file__).parent / "dumps" / "kubernetes-1.36.yaml")
IGNORED = (
    *("ControllerRevision", "CustomResourceDefinition", "Event", "HorizontalPodAutoscaler"),
    *("Ingress", "NetworkPolicy", "Secret", "ValidatingAdmissionPolicy", "Widget"),
)
WAITING = "web-77dc5b59c8-6zfdj"


def test_a_dump_is_tried_as_it_is() -> None:
    """Allocated pods keep their devices, pending pods stay pending, and the notes are short."""
    code, out, said = run("allocate", "-f", DUMP, "-o", "json")
    answer = json.loads(out)

    assert code == 1
    assert answer["allocations"] == []
    assert [each["claim"] for each in answer["unsatisfied"]] == [f"team/{WAITING}-gpu-r8srt"]
    notes, _, _ = said.partition("\n\n")
    assert notes.splitlines()[:4] == [
        f"{DUMP}: ignored 27 objects of kinds that dryrack does not use: {', '.join(IGNORED)}",
        f"{DUMP}:2025: Job migrate: creates no pods; it is complete, or asks for no pods",
        f"{DUMP}:2093: CronJob nightly: tried as 1 pod, nightly-0",
        "6 workloads create no pods: the files contain their pods",
    ]


def test_a_cluster_wrote_nothing_that_it_would_refuse() -> None:
    """Also not the selector that it gave to a Job."""
    code, out, _ = run("lint", DUMP, "-o", "json")

    assert code == 0
    assert [each["code"] for each in json.loads(out)["findings"]] == ["DR007"]


def test_a_pod_of_a_dump_is_explained() -> None:
    """By the claims that are in its way."""
    code, out, _ = run("explain", "pod", WAITING, "-n", "team", "-f", DUMP)

    assert code == 1
    assert "gpu.example.com/gpu-a/gpu-2: in use by claim team/shared" in out


@pytest.mark.parametrize("how", [(), ("--anonymize",)])
def test_a_dump_is_recorded_and_fares_as_the_cluster_did(
    how: tuple[str, ...], tmp_path: Path
) -> None:
    """Four pods have a device, one waits; also if class and driver share a name."""
    path = str(tmp_path / "recorded.yaml")
    code, _, said = run("record", "-f", DUMP, "-o", path, *how)
    assert (code, said.splitlines()[0]) == (0, "1 pod left out: ended, or ending")
    code, out, _ = run("scenario", "run", path, "-o", "json")
    (outcome,) = json.loads(out)["scenarios"]
    pods: list[dict[str, Any]] = outcome["pods"]

    assert code == 0
    assert sorted(len(each.get("devices", ())) for each in pods) == [0, 0, 0, 0, 1, 1, 1, 1]
    assert sum(bool(each["node"]) for each in pods) == 7
    recorded = outcome["recorded"]
    assert (recorded["placedThen"], recorded["placedNow"]) == (7, 7)
    assert recorded["lost"] == recorded["gained"] == []
