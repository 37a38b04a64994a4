"""
A cluster of `dryrack up` answers as a real one: over HTTPS, with engines, and to kubectl.

Every step of every script is played, kubectl's too. What differs is listed; races may hide a
difference, so that the list is allowed to be longer than what is found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.apiserver.over_https import answers, cluster
from tests.apiserver.replay import (
    DIFFERENCES_OVER_HTTPS,
    SCRIPTS,
    differences_of_the_server,
    differing,
    known_differences,
)
from tests.parity.recording import TESTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.parity.script import Script
    from tests.parity.server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with cluster("parity-test") as started:
        yield started


@pytest.mark.real
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_cluster_answers_as_recorded(script: Script, server: Server) -> None:
    """No step differs but those that are listed, with their reasons."""
    known = {
        **differences_of_the_server(TESTED).get(script.name, {}),
        **known_differences(DIFFERENCES_OVER_HTTPS, TESTED).get(script.name, {}),
    }
    found = differing(script, answers(script, server), TESTED)

    assert [each for each in found if each not in known] == []
