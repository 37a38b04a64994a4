"""Commands on a cluster, from a terminal that knows no kubeconfig."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack
from tests.cli.live_plane import pod

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home, no KUBECONFIG, and no cluster left after the test."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "DRYRACK_HOME", "XDG_STATE_HOME", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path
    dryrack("down", "--all")


NOTE = 'note: no kubeconfig found; using the running cluster "default"\n'


def test_the_only_running_cluster_is_used_with_a_note(home: Path) -> None:
    """If a cluster has no nodes, `up` warns, and `explain` names no invented node."""
    file = home / "pod.yaml"
    file.write_text(yaml.safe_dump(pod("waits") | {"metadata": {"name": "waits"}}))
    up = dryrack("up", "--detach", "--config", file)
    devices = dryrack("devices")
    explained = dryrack("explain", "pod", "waits")

    assert up.returncode == 0, up.stderr
    assert " ! The cluster has no nodes, so Pods stay Pending. To start with nodes, " in up.stderr
    assert devices.returncode == 0
    assert devices.stderr.startswith(f"{NOTE}no devices; ")
    assert (explained.returncode, explained.stderr) == (1, NOTE)
    assert "no nodes available to schedule pods" in explained.stdout
    assert "node node" not in explained.stdout


def test_a_kubeconfig_without_a_current_context_is_none(home: Path) -> None:
    """A file that only lists clusters selects none of them; a context that is named has to be."""
    config = home / ".kube" / "config"
    config.parent.mkdir()
    config.write_text("apiVersion: v1\nkind: Config\ncontexts: []\n")
    refused = dryrack("devices")
    assert dryrack("up", "--detach").returncode == 0

    assert f'kubeconfig "{config}" has no current context; start a cluster' in refused.stderr
    assert dryrack("devices").stderr.startswith(NOTE)
    assert "no context 'work'" in dryrack("devices", "--context", "work").stderr


def test_without_a_cluster_the_error_names_the_command_to_start_one(home: Path) -> None:
    """The error is also good for a named file that does not exist."""
    default = dryrack("devices")
    named = dryrack("devices", "--kubeconfig", "nowhere")
    told = 'not found; start a cluster with "dryrack up --merge", or pass --kubeconfig FILE'

    assert default.stderr == f'dryrack: kubeconfig "{home / ".kube" / "config"}" {told}\n'
    assert named.stderr == f'dryrack: kubeconfig "nowhere" {told}\n'


def test_of_several_running_clusters_one_has_to_be_chosen(home: Path) -> None:
    """The error has an option that works."""
    for name in ("one", "two"):
        assert dryrack("up", "--detach", "--name", name).returncode == 0
    done = dryrack("devices")
    option = done.stderr.partition("for example ")[2].split()

    assert "2 clusters are running (one, two): choose one" in done.stderr
    assert option == ["--name", "one"]
    for words in (["devices"], ["claims"], ["gangs"], ["fault", "list"]):
        assert dryrack(*words, *option).returncode == 0, words
    assert "pod 'default/p' not found" in dryrack("explain", "pod", "p", *option).stderr
    assert "nothing to record" in dryrack("record", *option).stderr
    assert "--kubeconfig" in dryrack("plugin", "--devices=fake").stderr


def test_a_cluster_that_is_selected_by_name_has_to_run(home: Path) -> None:
    """The name needs no kubeconfig, and excludes one."""
    stopped = dryrack("devices", "--name", "other")
    both = dryrack("devices", "--name", "other", "--kubeconfig", "a")
    invalid = dryrack("fault", "list", "--name", "A/b")

    assert stopped.stderr == (
        "dryrack: cluster other is not running; list the clusters with: dryrack status\n"
    )
    assert "--name selects a cluster; leave out --kubeconfig" in both.stderr
    assert [each.returncode for each in (stopped, both, invalid)] == [1, 2, 2]


def test_a_second_terminal_uses_the_merged_cluster(home: Path) -> None:
    """`up --merge` makes its context current for every program; `down` restores the context."""
    config = home / ".kube" / "config"
    config.parent.mkdir()
    context = {"name": "work", "context": {"cluster": "work"}}
    theirs = {"contexts": [context], "current-context": "work"}
    config.write_text(yaml.safe_dump(theirs))
    up = dryrack("up", "--detach", "--merge", "--nodes", "1")
    merged = yaml.safe_load(config.read_text())
    devices = dryrack("devices")
    assert dryrack("down").returncode == 0
    after = yaml.safe_load(config.read_text())

    told = f" ✓ kubectl uses the cluster: context dryrack-default in {config}\n"
    assert told in up.stderr
    assert "export KUBECONFIG" not in up.stderr
    assert merged["current-context"] == "dryrack-default"
    assert devices.returncode == 0
    assert devices.stderr.startswith("no devices; ")
    assert {key: after[key] for key in theirs} == theirs
