"""What a scheduler said is shown in its name, and not twice."""

from __future__ import annotations

import pytest

from dryrack.cli.views.explaining import print_said
from dryrack.placement import Said


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
