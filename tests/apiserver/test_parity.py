"""
The embedded server answers as a real one.

Every recorded request that needs no kubectl is sent to a fresh embedded server. Where the answer
is another one, `differences.yaml` says so and why; a difference that is gone has to leave the
list, so that it never promises less than there is. To see the differences of a script:

    python -m tests.apiserver.show_differences configmaps
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.apiserver.replay import (
    DIFFERENCES,
    DIFFERENCES_OVER_HTTPS,
    SCRIPTS,
    differing,
    known_differences,
    replayed,
)
from tests.parity.recording import RECORDED

if TYPE_CHECKING:
    from tests.parity.script import Script

    from dryrack.kinds.releases import Release

REASON_CHARS_MIN = 12


@pytest.mark.parametrize("release", RECORDED, ids=lambda release: release.value)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_the_embedded_server_answers_as_recorded(script: Script, release: Release) -> None:
    """The steps that differ are exactly those that are listed as different."""
    found = set(differing(script, replayed(script, release), release))
    known = set(known_differences(release=release).get(script.name, {}))

    assert (sorted(found - known), sorted(known - found)) == ([], [])


def test_every_known_difference_names_a_step_and_a_reason() -> None:
    """The list of differences names existing steps, with reasons."""
    steps = {script.name: {step.name for step in script.steps} for script in SCRIPTS}

    for path in (DIFFERENCES, DIFFERENCES_OVER_HTTPS):
        for release in RECORDED:
            for name, listed in known_differences(path, release).items():
                assert set(listed) <= steps[name]
                assert all(len(reason) >= REASON_CHARS_MIN for reason in listed.values())
