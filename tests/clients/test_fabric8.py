"""
fabric8, the usual Kubernetes client of Java, on the embedded plane.

Operators in Java (Strimzi, Flink, Quarkus) stand on it. It watches over WebSocket and reads the
kubeconfig with a parser of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests import maven
from tests.clients.served import ServedPlane

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PROJECT = Path(__file__).parent / "java"
_SECONDS_MAX = 300


@pytest.fixture(scope="module")
def program() -> maven.JavaProgram:
    missing = maven.missing_tools()
    if missing and os.environ.get("DRYRACK_REQUIRE_REAL") != "1":
        pytest.skip(f"needs a JDK and Maven; not on the PATH: {', '.join(missing)}")
    return maven.build(PROJECT)


def test_fabric8_creates_watches_patches_and_deletes(
    program: maven.JavaProgram, tmp_path: Path
) -> None:
    """Watches over WebSocket, informers, and answers show the whole life of pods and claims."""
    options = ("--nodes", "1", "--instance-type", "p5.48xlarge")
    with ServedPlane(tmp_path, options, name="fabric8") as plane:
        done = subprocess.run(
            program.command("dryrack.ClientTrial"),
            env={**os.environ, "KUBECONFIG": str(plane.kubeconfig), "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=_SECONDS_MAX,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["version"].startswith("v1.")
    assert report["ready"] == "Running"
    for kind, name in (("claims", "brief"), ("pods", "trainer")):
        assert report[kind] == {
            # The class that watches over WebSocket; its substitute is WatchHTTPManager.
            "by": "WatchConnectionManager",
            "problems": [],
            "watched": [f"ADDED {name}", f"DELETED {name}", f"MODIFIED {name}"],
            "informed": [f"{what} {name}" for what in ("add", "delete", "resync", "update")],
            "watching": True,
            "listed": [name],
            "labels": ["applied", "edited", "merged"],
            "cached": [name],
            "left": [],
        }
