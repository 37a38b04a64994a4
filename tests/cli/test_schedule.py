"""`dryrack schedule`: what its options mean, and what it says when it cannot work."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.cli.command import dryrack

from dryrack.cli.files import UsageError
from dryrack.cli.options import ScheduleOptions
from dryrack.cli.schedule import decide
from dryrack.cli.scheduler_config import read_config, settings_of_plane
from dryrack.client.client import Client
from dryrack.client.endpoints import LEASES, PODS
from dryrack.client.https import connected
from dryrack.client.informer import Name
from dryrack.client.kubeconfig import load
from dryrack.cluster.ports import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("names", "lease"),
    [
        ((), "dryrack-scheduler"),
        (("kubenexus-scheduler",), "kubenexus-scheduler"),
        (("gangs", "dryrack"), "gangs-scheduler"),
    ],
)
def test_schedulers_of_different_names_have_different_leases(
    names: tuple[str, ...], lease: str
) -> None:
    """So that each of them works; it is called by the first of its names."""
    assert decide(ScheduleOptions(name=names)).lease == Name("kube-system", lease)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ScheduleOptions(name=("",)), "--name '': the name is empty; use the schedulerName"),
        (
            ScheduleOptions(name=("My_One",)),
            "--name 'My_One': .*; name the lease with --lease-name",
        ),
        (ScheduleOptions(lease_name="My_One"), "--lease-name 'My_One': "),
        (ScheduleOptions(namespace="a.b"), "--namespace 'a.b': "),
    ],
)
def test_names_that_no_cluster_takes_are_told_before_one_is_asked(
    options: ScheduleOptions, words: str
) -> None:
    """The option is named, and what would be right."""
    with pytest.raises(UsageError, match=words):
        decide(options)


def test_a_name_that_no_lease_can_have_needs_a_lease_of_another() -> None:
    """Pods may name a scheduler as they like."""
    decided = decide(ScheduleOptions(name=("My_One",), lease_name="mine"))

    assert decided.lease.name == "mine"
    assert decided.settings().plans_lease == Name("kube-system", "mine-gangs")


def test_the_rights_are_printed_under_the_names_that_were_given() -> None:
    """Manifests that can be applied: the account, its lease, and the namespace if it is new."""
    done = dryrack("schedule", "--print-rbac", "--name", "kubenexus-scheduler", "-n", "gangs")
    objects = list(yaml.safe_load_all(done.stdout))
    places = [each["metadata"].get("namespace") for each in objects]

    assert done.returncode == 0
    assert objects[0] == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gangs"}}
    assert {each["metadata"]["name"] for each in objects[1:]} == {"kubenexus-scheduler"}
    assert set(places) == {"gangs", None}
    assert "dryrack-scheduler" not in done.stdout
    leases = "resourceNames: [kubenexus-scheduler, kubenexus-scheduler-gangs]"
    assert leases in done.stdout


def test_the_definition_of_pod_groups_is_printed() -> None:
    """For clusters that want gangs of the coscheduling plugin."""
    [found] = yaml.safe_load_all(dryrack("schedule", "--print-crds").stdout)

    assert found["metadata"]["name"] == "podgroups.scheduling.x-k8s.io"


def test_every_cluster_has_the_usual_namespace() -> None:
    """It is not made again."""
    done = dryrack("schedule", "--print-rbac")

    assert "kind: Namespace" not in done.stdout


def test_a_cluster_that_is_not_there_is_told_in_a_line(tmp_path: Path) -> None:
    """The error has a fix, without a traceback."""
    done = dryrack("schedule", "--kubeconfig", tmp_path / "none")

    assert done.returncode == 1
    assert done.stderr.startswith("dryrack: kubeconfig ")
    assert "start a cluster with" in done.stderr
    assert done.stderr.count("\n") == 1


HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NO_FILTERS = "plugins: {filter: {disabled: [{name: '*'}]}}"


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], str]:
    """Writes a configuration; its path."""

    def write(text: str) -> str:
        path = tmp_path / "scheduler.yaml"
        path.write_text(HEAD + text)
        return str(path)

    return write


def test_profiles_of_a_configuration_are_schedulers(config: Callable[[str], str]) -> None:
    """Each takes its pods by its name; the lease is called by the first."""
    file = config(f"profiles:\n- schedulerName: gangs\n- schedulerName: plain\n  {NO_FILTERS}\n")
    decided = decide(ScheduleOptions(config=file))

    assert list(decided.settings().profiles) == ["gangs", "plain"]
    assert decided.settings().profiles["gangs"].filters != ()
    assert decided.settings().profiles["plain"].filters == ()
    assert decided.lease == Name("kube-system", "gangs-scheduler")


def test_a_profile_without_a_name_is_for_the_names_that_were_given(
    config: Callable[[str], str],
) -> None:
    """It is not taken for the cluster's own scheduler, whose name is the default of the format."""
    file = config(f"profiles:\n- {NO_FILTERS}\n")

    assert list(decide(ScheduleOptions(config=file)).settings().profiles) == ["dryrack"]
    assert list(decide(ScheduleOptions(config=file, name=("a", "b"))).settings().profiles) == [
        "a",
        "b",
    ]


def test_names_are_given_once(config: Callable[[str], str]) -> None:
    """By the file or by the option."""
    with pytest.raises(UsageError, match="--name a: the profiles of the configuration have names"):
        decide(ScheduleOptions(config=config("profiles:\n- schedulerName: gangs\n"), name=("a",)))


def test_options_count_more_than_the_file(config: Callable[[str], str]) -> None:
    """Options override the namespace, the name and the use of the lease."""
    file = config(
        "leaderElection:\n  leaderElect: false\n  resourceName: mine\n"
        "  resourceNamespace: gangs\n  leaseDuration: 30s\n"
    )
    said = decide(ScheduleOptions(config=file))
    overruled = ScheduleOptions(config=file, leader_elect=True, namespace="b")

    assert (said.lease, said.leader_elect) == (Name("gangs", "mine"), False)
    assert said.terms is not None
    assert said.terms.lease_seconds == 30.0
    assert (decide(overruled).lease, decide(overruled).leader_elect) == (Name("b", "mine"), True)


@pytest.mark.parametrize("words", [("schedule", "--config"), ("up", "--scheduler-config")])
def test_a_wrong_configuration_is_told_by_line_and_nothing_is_started(
    words: tuple[str, str], config: Callable[[str], str]
) -> None:
    """Exit code 1, every mistake on a line, and no traceback."""
    file = config("profiles:\n- plugins: {score: {enabled: [{name: NodeAfinity}]}}\n")
    done = dryrack(*words, file)
    where = f"{file}:4: profiles[0].plugins.score.enabled[0].name"

    assert done.returncode == 1
    assert done.stderr == (
        f"dryrack: {where}: unknown plugin 'NodeAfinity'; did you mean 'NodeAffinity'?\n"
    )


def test_an_embedded_plane_schedules_also_what_a_configuration_does_not_name(
    config: Callable[[str], str],
) -> None:
    """No other scheduler runs in the cluster."""
    file = config(f"profiles:\n- schedulerName: plain\n  {NO_FILTERS}\n")
    profiles = settings_of_plane(read_config(file)).profiles

    assert set(profiles) == {"default-scheduler", "dryrack", "kubenexus-scheduler", "plain"}
    assert profiles["plain"].filters == ()
    assert profiles["dryrack"].filters != ()


def test_a_plane_schedules_as_its_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Callable[[str], str]
) -> None:
    """A profile without the plugin ignores node affinity."""
    monkeypatch.setenv("DRYRACK_HOME", str(tmp_path))
    off = "plugins: {filter: {disabled: [{name: NodeAffinity}]}}"
    profile = config(f"profiles:\n- schedulerName: mine\n  {off}\n")
    file = tmp_path / "pod.yaml"
    file.write_text(POD + "  nodeSelector: {zone: nowhere}\n")
    up = ("up", "--detach", "--nodes", "1", "--config", file, "--scheduler-config", profile)
    try:
        done = dryrack(*up)
        assert done.returncode == 0, done.stderr
        node = asyncio.run(_node_of_pod(tmp_path / "default" / "kubeconfig"))
    finally:
        dryrack("down")

    assert node == "node-1"


async def _node_of_pod(config: Path) -> str:
    """Wait until the pod is bound; return its node."""
    async with (
        connected(load([config], SystemClock())) as transport,
        asyncio.timeout(30),
        Client(transport).watch(PODS, revision="0") as events,
    ):
        async for event in events:
            node = event.object.get("spec", {}).get("nodeName")
            if node:
                return str(node)
    raise AssertionError("the watch has ended")


def test_it_schedules_until_it_is_told_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines of JSON, pages, a pod that is bound, exit 0 on SIGTERM, and a lease that is free."""
    monkeypatch.setenv("DRYRACK_HOME", str(tmp_path))
    config = tmp_path / "default" / "kubeconfig"
    file = tmp_path / "pod.yaml"
    file.write_text(POD)
    up = dryrack("up", "--detach", "--without", "scheduler", "--nodes", "1", "--config", file)
    assert up.returncode == 0, up.stderr
    try:
        lines, metrics = _watched(config)
        lease = asyncio.run(_lease(config))
    finally:
        dryrack("down")

    scheduled = next(each for each in lines if each["message"] == "pod scheduled")
    assert (scheduled["pod"], scheduled["node"]) == ("default/one", "node-1")
    assert lines[-1]["message"] == "stopped"
    assert 'scheduler_schedule_attempts_total{result="scheduled",profile="mine"} 1' in metrics
    assert 'leader_election_master_status{name="mine-scheduler"} 1' in metrics
    assert lease["spec"]["holderIdentity"] == ""


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: default}
spec:
  schedulerName: mine
  containers: [{name: c, image: i}]
"""


def _watched(config: Path) -> tuple[list[dict[str, Any]], str]:
    """Return log lines and metrics of a scheduler, which is stopped after it has scheduled."""
    words = ("schedule", "--name", "mine", "--kubeconfig", str(config), "--log-format", "json")
    address = "127.0.0.1:0"
    pages = ("--metrics-address", address, "--health-address", address)
    command = [sys.executable, "-m", "dryrack", *words, *pages]
    lines: list[dict[str, Any]] = []
    metrics = ""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            lines.append(json.loads(line))
            if lines[-1]["message"] == "pod scheduled":
                metrics = _page(lines, "/metrics")
                assert _page(lines, "/readyz") == "ok"
                process.send_signal(signal.SIGTERM)
        assert process.wait() == 0
    return lines, metrics


def _page(lines: list[dict[str, Any]], path: str) -> str:
    address = next(each["address"] for each in lines if "address" in each)
    with urllib.request.urlopen(address + path, timeout=10) as answer:
        text: str = answer.read().decode()
        return text


async def _lease(config: Path) -> dict[str, Any]:
    async with connected(load([config], SystemClock())) as transport:
        return await Client(transport).get(LEASES, "mine-scheduler", "kube-system")
