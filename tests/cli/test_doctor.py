"""`dryrack doctor`, as a person runs it on a virtual cluster that enforces RBAC."""

from __future__ import annotations

import asyncio
import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.cli.command import dryrack, run

from dryrack.client.client import Client
from dryrack.client.endpoints import SERVICE_ACCOUNTS, SLICES
from dryrack.client.https import connected
from dryrack.client.kubeconfig import load
from dryrack.cluster.doctor import CLUSTER_CHECKS, MACHINE_CHECKS
from dryrack.cluster.ports import SystemClock
from dryrack.cluster.rights import DOCTOR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dryrack.kinds.raw import Raw

INCOMPLETE = {
    "metadata": {"name": "incomplete"},
    "spec": {
        "driver": "gpu.example.com",
        "allNodes": True,
        "pool": {"name": "shared", "generation": 1, "resourceSliceCount": 3},
        "devices": [{"name": "gpu-0"}],
    },
}
ACCOUNT = {"metadata": {"name": "viewer", "namespace": "default"}}
BINDING = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "viewer"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "dryrack-doctor",
    },
    "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": "default"}],
}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The kubeconfig of a cluster with RBAC, and with the account of the manifest."""
    directory = tmp_path_factory.mktemp("doctor")
    config = directory / "objects.yaml"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", **ACCOUNT}
    config.write_text(f"{DOCTOR.read_text()}---\n{yaml.safe_dump_all([account, BINDING])}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRYRACK_HOME", str(directory / "home"))
        patch.delenv("KUBECONFIG", raising=False)
        words = ("--nodes", "2", "--devices", "gpu:2", "--authorization", "rbac")
        up = dryrack("up", "--detach", *words, "--config", config)
        assert up.returncode == 0, up.stderr
        try:
            yield directory / "home" / "default" / "kubeconfig"
        finally:
            dryrack("down", "--all")


def doctor(*words: str | Path) -> tuple[int, dict[str, Raw]]:
    """Return the exit status, and the findings by check."""
    done = dryrack("doctor", *words, "-o", "json")
    findings = json.loads(done.stdout)
    assert [each["check"] for each in findings] == [*CLUSTER_CHECKS, *MACHINE_CHECKS]
    assert {tuple(each) for each in findings} == {("check", "state", "message", "fix")}
    return done.returncode, {each["check"]: each for each in findings}


def test_a_healthy_cluster_has_no_failure(kubeconfig: Path) -> None:
    """The administrator may do all, and the exit status is 0 in spite of warnings."""
    status, findings = doctor("--kubeconfig", kubeconfig)
    states = {name: each["state"] for name, each in findings.items()}

    assert status == 0
    assert "failed" not in states.values()
    expected = ("api-server", "version", "clock", "dra-api", "feature-gates", "scheduler", "kwok")
    assert {states[name] for name in (*expected, "rights-schedule", "pools")} == {"ok"}
    assert states["optional-apis"] == "warning"


def test_a_table_in_a_pipe_is_plain(kubeconfig: Path) -> None:
    """Each check is one line with columns that a program can split."""
    done = dryrack("doctor", "--kubeconfig", kubeconfig)
    lines = done.stdout.splitlines()

    assert [re.split(r"   +", line)[:2] for line in lines[:3]] == [
        ["CHECK", "STATE"],
        ["api-server", "ok"],
        ["version", "ok"],
    ]
    assert len(lines) == len(CLUSTER_CHECKS) + len(MACHINE_CHECKS) + 1
    assert re.fullmatch(r"\d+ checks: \d+ ok, .*skipped\n", done.stderr)


def test_an_account_that_only_reads_gets_what_it_may_read(kubeconfig: Path, tmp_path: Path) -> None:
    """Over HTTPS with a token: dry runs are unknown, and what it may list is ok."""
    own = tmp_path / "viewer"
    config = yaml.safe_load(kubeconfig.read_text())
    token = asyncio.run(_token(kubeconfig))
    config["users"] = [{"name": each["name"], "user": {"token": token}} for each in config["users"]]
    own.write_text(yaml.safe_dump(config))
    status, findings = doctor("--kubeconfig", own)

    assert status == 0
    assert findings["feature-gates"]["state"] == "unknown"
    assert "may not" in findings["rights-schedule"]["message"]
    assert (findings["pools"]["state"], findings["kwok"]["state"]) == ("ok", "ok")
    status, findings = doctor("--kubeconfig", own, "--for", "schedule")
    assert (status, findings["rights-schedule"]["state"]) == (1, "failed")
    assert findings["rights-publish"]["state"] == "warning"
    assert findings["rights-schedule"]["fix"].startswith("dryrack schedule --print-rbac")


async def _token(kubeconfig: Path) -> str:
    async with connected(load([kubeconfig], SystemClock())) as transport:
        request: Raw = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        request |= {"metadata": ACCOUNT["metadata"], "spec": {}}
        review = await Client(transport).create(SERVICE_ACCOUNTS, request, subresource="token")
        return str(review["status"]["token"])


def test_an_incomplete_pool_fails_until_it_is_deleted(kubeconfig: Path) -> None:
    """The exit status is 1, and the pool and its counts are named."""

    async def write(delete: bool) -> None:
        async with connected(load([kubeconfig], SystemClock())) as transport:
            client = Client(transport)
            if delete:
                await client.delete(SLICES, "incomplete")
            else:
                await client.create(SLICES, INCOMPLETE)

    asyncio.run(write(delete=False))
    status, findings = doctor("--kubeconfig", kubeconfig)
    asyncio.run(write(delete=True))

    assert (status, findings["pools"]["state"]) == (1, "failed")
    assert "gpu.example.com/shared has 1 of 3 slices" in findings["pools"]["message"]
    assert doctor("--kubeconfig", kubeconfig)[0] == 0


def test_a_cluster_that_does_not_answer_is_a_failure(tmp_path: Path) -> None:
    """The address is named, and the machine is checked all the same."""
    config: dict[str, Any] = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    status, findings = doctor("--kubeconfig", tmp_path / "config")

    assert (status, findings["api-server"]["state"]) == (1, "failed")
    assert "https://127.0.0.1:1" in findings["api-server"]["message"]
    assert findings["api-server"]["fix"] == (
        "check that the cluster runs, and check --kubeconfig and --context"
    )
    assert findings["python"]["state"] == "ok"


def test_without_a_kubeconfig_the_cluster_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person who has no cluster yet sees how to start one; a named file must exist."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("DRYRACK_HOME", str(tmp_path / "none"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    _, findings = doctor()
    status, named = doctor("--kubeconfig", tmp_path / "missing")

    assert findings["api-server"]["state"] == "skipped"
    assert "dryrack up --merge" in findings["api-server"]["message"]
    assert (status, named["api-server"]["state"]) == (1, "failed")
    assert str(os.path.join(tmp_path, "missing")) in named["api-server"]["message"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--for", "up"), "--for 'up': must be publish, schedule, plugin or dashboard"),
        (("--driver", "A_b"), "--driver"),
        (("--node", "A_b"), "--node 'A_b'"),
        (("-n", "A_b"), "--namespace 'A_b'"),
        (("--name", "a", "--context", "b"), "--name selects a cluster"),
    ],
)
def test_wrong_usage_has_its_own_status(words: tuple[str, ...], message: str) -> None:
    """Nothing is read, and the option is named."""
    done = dryrack("doctor", *words)

    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_the_manifest_is_printed() -> None:
    """The permissions are those of the packaged file."""
    assert run("doctor", "--print-rbac") == (0, DOCTOR.read_text(), "")
