"""`dryrack scale`, as a person runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.cli.command import dryrack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the clusters of a test a directory, and stop them at the end."""
    directory = tmp_path / "home"
    monkeypatch.setenv("DRYRACK_HOME", str(directory))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    yield directory
    if directory.exists() and any(directory.iterdir()):
        dryrack("down", "--all")


def scale(*words: str) -> str:
    """Return what the command reports; it must succeed."""
    done = dryrack("scale", *words)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_nodes_are_created_and_deleted(home: Path) -> None:
    """New nodes continue the names of the existing ones; the last ones are deleted first."""
    up = dryrack("up", "--detach", "--nodes", "9", "--node-name", "rack-{}.a")
    assert up.returncode == 0, up.stderr

    assert scale("--nodes", "11") == "Created 2 virtual nodes: rack-10.a, rack-11.a.\n"
    assert scale("--nodes", "11") == "Cluster default has 11 virtual nodes already.\n"
    assert scale("--nodes", "10") == "Deleted 1 virtual node: rack-11.a.\n"
    assert scale("--nodes", "0") == "Deleted 10 virtual nodes: rack-1.a … rack-10.a.\n"
    assert scale("--nodes=1", "--node-name=b{}") == "Created 1 virtual node: b1.\n"
    refused = dryrack("scale", "--nodes", "1", "--instance-type", "g6.xlarge")
    assert "the cluster runs without the hardware catalog" in refused.stderr
    assert refused.returncode == 1


def test_nodes_of_an_instance_type_are_counted_by_themselves(home: Path) -> None:
    """A cluster with the catalog gets nodes of any type, and counts each type by itself."""
    up = dryrack("up", "--detach", "--nodes", "1", "--instance-type", "g6.xlarge")
    assert up.returncode == 0, up.stderr

    of_type = "virtual node of the instance type"
    assert scale("--nodes", "2") == f"Created 1 {of_type} g6.xlarge: node-2.\n"
    created = scale("--nodes", "1", "--instance-type", "g5.xlarge", "--node-name", "big-{}")
    assert created == f"Created 1 {of_type} g5.xlarge: big-1.\n"
    mixed = dryrack("scale", "--nodes", "1")
    assert "the nodes have several instance types: g5.xlarge, g6.xlarge" in mixed.stderr
    deleted = scale("--nodes", "0", "--instance-type", "g6.xlarge")
    assert deleted == "Deleted 2 virtual nodes of the instance type g6.xlarge: node-1, node-2.\n"
    unknown = dryrack("scale", "--nodes", "1", "--instance-type", "g5.xlrge")
    assert "did you mean 'g5.xlarge'" in unknown.stderr
    record = json.loads((home / "default" / "running.json").read_text())
    assert record["catalogue_files"] == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--nodes", "-1"), "--nodes -1: must be a number from 0 to 10000"),
        (("--nodes", "1", "--node-name", "a"), "--node-name 'a': must contain {} once"),
        (("--nodes", "1", "--name", "lab"), "cluster lab is not running; start it with"),
    ],
)
def test_mistakes_are_reported(words: tuple[str, ...], complaint: str) -> None:
    """The message names the option, or the command that starts the cluster."""
    done = dryrack("scale", *words)
    assert complaint in done.stderr
    assert done.returncode in (1, 2)
