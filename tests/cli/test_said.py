"""The message of the scheduler is printed with its name, and not twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dryrack.cli.allocate import Settings
from dryrack.cli.explain import Subject
from dryrack.cli.output import NamedFormat
from dryrack.cli.views.explaining import Case, print_said
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.placement import SchedulerMessage, World

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("0/1 nodes: 1 full.", "(mine reported the same)"),
        ("0/1 nodes: 1 full. preemption: none", "(mine reported the same, and: preemption: none)"),
        ("0/2 nodes: 2 full.", "mine reported: 0/2 nodes: 2 full."),
        ("", ""),
    ],
)
def test_words_that_are_the_same_are_not_told_again(
    said: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The part about preemption is printed."""
    print_said(SchedulerMessage("mine", said, ""), "0/1 nodes: 1 full.", 0.0)

    assert capsys.readouterr().out.strip() == line


NODE = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}}


def told_of(capsys: pytest.CaptureFixture[str], status: Raw, **spec: Any) -> str:
    """Return the explanation of a pod in a cluster with one node."""
    containers = [{"name": "c", "image": "i"}]
    metadata = {"name": "p", "namespace": "default"}
    pod = {"metadata": metadata, "spec": {"containers": containers, **spec}, "status": status}
    world = World.of([decode(NODE, Node), decode(pod, Pod)])
    settings = Settings.of()
    Case(world, Subject.of("pod", "p", "default"), settings, NamedFormat.TABLE).run()
    return capsys.readouterr().out


def test_a_scheduler_that_decided_otherwise_may_have_a_configuration_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The pod would fit with the known configuration; the output names the option for another."""
    refused = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes: 1 in maintenance"}
    told = told_of(capsys, {"conditions": [refused]})

    assert "default-scheduler reported: 0/1 nodes: 1 in maintenance\n" in told
    assert "it now fits on node n\n" in told
    assert "or the scheduler may use another configuration (--scheduler-config)\n" in told


def test_a_scheduler_that_said_nothing_may_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    """A pod that names one which there is not waits without a word."""
    told = told_of(capsys, {}, schedulerName="nobody")

    assert "scheduler nobody has not reported on it yet; check that this scheduler runs\n" in told


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ({"phase": "Pending"}, "its node has not started it yet; "),
        (
            {"phase": "Pending", "startTime": "2026-01-02T03:04:05Z"},
            "it has not started yet; to print its events, run: kubectl describe pod p -n default\n",
        ),
        ({"phase": "Running"}, ""),
    ],
)
def test_a_pod_that_has_its_node_and_does_not_run_is_told_as_such(
    status: Raw, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Claims that are not prepared, images and volumes are for the node, and in its events."""
    *_, last = told_of(capsys, status, nodeName="n").splitlines(keepends=True)

    assert last.startswith(line or "it is the only node")
