"""
The recordings are what a real server says today.

If one of these fails after a change of Kubernetes' version, record anew and read the difference;
if it fails without one, the script depends on something that the normaliser does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.parity.__main__ import OPTIONS
from tests.parity.recording import RECORDED, differences, read
from tests.parity.run import Run
from tests.parity.script import Script, load_all
from tests.parity.server import Server

from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from tests.realcluster.cluster import Cluster
    from tests.realcluster.fixtures import StartModuleCluster

REQUESTS_MIN = 150
REFUSALS_MIN = 60


@pytest.fixture(scope="module")
def cluster(start_module_cluster: StartModuleCluster) -> Cluster:
    """A server that no other test has written to."""
    return start_module_cluster(OPTIONS)


@pytest.mark.real
@pytest.mark.parametrize("script", load_all([]), ids=lambda script: script.name)
def test_a_real_server_answers_as_recorded(script: Script, cluster: Cluster) -> None:
    """Asked again, the real server gives the recorded answers."""
    run = Run(script, Server.of(cluster.plane.kubeconfig), cluster.plane.kubectl_path)
    release = Release(cluster.plane.options.release.minor)

    assert list(differences(script, list(run.answers()), release)) == []


@pytest.mark.parametrize("release", RECORDED, ids=lambda release: release.value)
@pytest.mark.parametrize("script", load_all([]), ids=lambda script: script.name)
def test_every_step_has_its_answer(script: Script, release: Release) -> None:
    """A recording belongs to its script: the same steps in the same order."""
    steps = [step.name for step in script.steps]

    assert [answer["step"] for answer in read(script, release)] == steps


def test_there_are_enough_requests_to_speak_of_parity() -> None:
    """The recordings cover the breadth of the API, not a corner of it."""
    assert sum(len(script.steps) for script in load_all([])) >= REQUESTS_MIN


def test_there_are_enough_objects_that_are_refused() -> None:
    """Wrong objects of the kinds for devices, each with the fields that are wrong."""
    bodies = [answer.get("body") for script in load_all([]) for answer in read(script)]
    statuses = [body for body in bodies if isinstance(body, dict) and body.get("details")]
    refused = [
        status
        for status in statuses
        if status.get("reason") == "Invalid"
        and status["details"].get("group") == "resource.k8s.io"
        and status["details"].get("causes")
    ]

    assert len(refused) >= REFUSALS_MIN
