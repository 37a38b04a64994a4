"""
What kubectl says to `dryrack up` is what it said to a real server.

Scripts with steps for kubectl are replayed whole, over HTTPS, on a cluster that is as the recorded
one was: it decides by roles, and its nodes have no kubelets.
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack
from tests.parity.__main__ import OPTIONS
from tests.parity.recording import TESTED, read
from tests.parity.run import Run
from tests.parity.script import load_all
from tests.parity.server import Server
from tests.realcluster import programs
from tests.realcluster.releases import RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.parity.script import Script

pytestmark = pytest.mark.real

SCRIPTS = [script for script in load_all([]) if any(step.kubectl for step in script.steps)]

# By script and step: why kubectl says something else here.
DIFFERENCES: dict[str, dict[str, str]] = {
    "everyday-kubectl": {
        "patch wrongly": "shows values as JSON; a real server prints them as Go does",
    },
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with tempfile.TemporaryDirectory() as home:
        monkeypatch.setenv("DRYRACK_HOME", home)
        served = ",".join(f"{version}=true" for version in OPTIONS.runtime_config)
        options = ("--authorization", "rbac", "--without", "kubelet,scheduler")
        release = ("--release", TESTED.value)
        up = dryrack("up", "--detach", *options, *release, "--runtime-config", served)
        assert up.returncode == 0, up.stderr
        yield Server.of(by_files(Path(home) / "default" / "kubeconfig"))
        assert dryrack("down").returncode == 0


def by_files(kubeconfig: Path) -> Path:
    """The same kubeconfig with files in the place of data, as the recorder reads it."""
    config = yaml.safe_load(kubeconfig.read_text())
    for part in (config["clusters"][0]["cluster"], config["users"][0]["user"]):
        for key in [key for key in part if key.endswith("-data")]:
            path = kubeconfig.parent / f"{key}.pem"
            path.write_bytes(base64.b64decode(part.pop(key)))
            part[key.removesuffix("-data")] = str(path)
    made = kubeconfig.parent / "kubeconfig-by-files"
    made.write_text(yaml.safe_dump(config))
    return made


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_kubectl_says_the_same(script: Script, server: Server) -> None:
    """Output, errors and exit codes of every step for kubectl are the recorded ones."""
    kubectl = programs.kubernetes("kubectl", RELEASE)
    answers = list(Run(script, server, kubectl).answers())
    recorded = {answer["step"]: answer for answer in read(script, TESTED)}
    names = {step.name for step in script.steps if step.kubectl}
    differing = {
        answer["step"]: (answer, recorded[answer["step"]])
        for answer in answers
        if answer["step"] in names and answer != recorded[answer["step"]]
    }
    known = DIFFERENCES.get(script.name, {})

    assert {name: pair for name, pair in differing.items() if name not in known} == {}
    assert sorted(known) == sorted(differing)
