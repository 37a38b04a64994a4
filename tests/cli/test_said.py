"""What a scheduler said is shown in its name, and not twice."""

from __future__ import annotations

import pytest

from dryrack.cli.allocate import Settings
from dryrack.cli.explain import Subject
from dryrack.cli.output import NamedFormat
from dryrack.cli.views.explaining import Case, print_said
from dryrack.kinds.core import Node, Pod
from dryrack.kinds.decode import decode
from dryrack.placement import Said, World


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("0/1 nodes: 1 full.", "(mine said the same)"),
        ("0/1 nodes: 1 full. preemption: none", "(mine said the same, and: preemption: none)"),
        ("0/2 nodes: 2 full.", "mine said: 0/2 nodes: 2 full."),
        ("", ""),
    ],
)
def test_words_that_are_the_same_are_not_told_again(
    said: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is said besides, about preemption, is."""
    print_said(Said("mine", said, ""), "0/1 nodes: 1 full.", 0.0)

    assert capsys.readouterr().out.strip() == line


def test_a_scheduler_that_decided_otherwise_may_have_a_configuration_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The pod would fit by what is known here; the option that tells more is named."""
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "1", "pods": "9"}}}
    refused = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes: 1 in maintenance"}
    waits = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
        "status": {"conditions": [refused]},
    }
    world = World.of([decode(node, Node), decode(waits, Pod)])
    settings = Settings.of(release="1.36", feature_gates="", node=None, scheduler_config="")
    Case(world, Subject.of("pod", "p", "default"), settings, NamedFormat.TABLE).run()

    told = capsys.readouterr().out
    assert "default-scheduler said: 0/1 nodes: 1 in maintenance\n" in told
    assert "decided now, it would go to node n\n" in told
    assert "or by a configuration of its own (--scheduler-config)\n" in told
