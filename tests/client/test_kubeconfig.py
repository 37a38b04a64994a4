"""Kubeconfig files are read as kubectl reads them."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from dryrack.client.credentials import CredentialError
from dryrack.client.kubeconfig import KubeconfigError, in_cluster, kubeconfig_paths, load
from dryrack.client.timekeeping import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dryrack.kinds.raw import Raw


def config(user: Raw, cluster: Raw | None = None, name: str = "a") -> Raw:
    context = {"cluster": name, "user": name, "namespace": "team"}
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": context}],
        "clusters": [{"name": name, "cluster": cluster or {"server": "https://example.com:1/"}}],
        "users": [{"name": name, "user": user}],
    }


def written(path: Path, content: Raw) -> Path:
    path.write_text(yaml.safe_dump(content))
    return path


def headers(path: Path, clock: VirtualClock | None = None) -> dict[str, str]:
    connection = load([path], clock or VirtualClock())
    return dict(asyncio.run(_headers(connection.credentials.headers)))


async def _headers(ask: Callable[[], Any]) -> dict[str, str]:
    return dict(await ask())


def test_a_context_leads_to_a_server(tmp_path: Path) -> None:
    """Server, namespace and token of the current context."""
    path = written(tmp_path / "c", config({"token": "t"}))
    connection = load([path], VirtualClock())

    assert connection.server == "https://example.com:1"
    assert connection.namespace == "team"
    assert headers(path) == {"authorization": "Bearer t"}


def test_certificates_are_inline_or_in_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    """Relative paths are relative to the file that names them; inline data wins."""
    (tmp_path / "ca.pem").write_bytes(b"authority")
    (tmp_path / "client.pem").write_bytes(b"certificate")
    key = base64.b64encode(b"key").decode()
    user = {"client-certificate": "client.pem", "client-key-data": key, "client-key": "missing"}
    cluster = {"server": "https://x", "certificate-authority": "ca.pem"}
    connection = load([written(tmp_path / "c", config(user, cluster))], VirtualClock())
    pair = asyncio.run(_pair(connection.credentials.key_pair))

    assert connection.authority == b"authority"
    assert (pair.certificate, pair.key) == (b"certificate", b"key")


async def _pair(ask: Callable[[], Any]) -> Any:
    return await ask()


def test_the_first_file_wins(tmp_path: Path) -> None:
    """The first of several files with an entry counts; missing files are skipped."""
    first = written(tmp_path / "1", config({"token": "one"}) | {"current-context": ""})
    second = config({"token": "two"})
    second["users"].append({"name": "b", "user": {}})
    paths = [tmp_path / "none", first, written(tmp_path / "2", second)]
    connection = load(paths, VirtualClock())

    assert asyncio.run(_headers(connection.credentials.headers)) == {"authorization": "Bearer one"}


def test_kubeconfig_names_several_files(tmp_path: Path) -> None:
    """As the variable has them, or the one at home."""
    assert [str(p) for p in kubeconfig_paths({"KUBECONFIG": "/a::/b"}, tmp_path)] == ["/a", "/b"]
    assert kubeconfig_paths({}, tmp_path) == [tmp_path / ".kube" / "config"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-context": "z"}, "no context 'z'; there are: a"),
        (
            {"current-context": ""},
            'has no current context; start a cluster with "dryrack up --merge"',
        ),
        ({"clusters": []}, "no cluster 'a'; there are: none"),
        ({"users": [{"name": "a", "user": {"auth-provider": {"name": "gcp"}}}]}, "use exec"),
        ({"users": [{"name": "a", "user": {"client-certificate-data": "!"}}]}, "no base64"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(tmp_path: Path, change: Raw, message: str) -> None:
    """One sentence that names the part and, where there is one, the remedy."""
    path = written(tmp_path / "c", config({}) | change)

    with pytest.raises(KubeconfigError, match=message):
        load([path], VirtualClock())


@pytest.mark.parametrize(
    "text",
    ["[" * 5000, "a: " + "1" * 5000, "clusters: x", "users: [1]", "contexts: [{context: 1}]"],
    ids=["deep", "thousands of digits", "no list", "no entries", "no context"],
)
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    """Also one that Python's own limits keep from being read."""
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError, match=re.escape(f"kubeconfig {path}: ")):
        load([path], VirtualClock())


async def test_a_token_file_is_read_again(tmp_path: Path) -> None:
    """Once a minute, and at once after a refusal."""
    token = tmp_path / "token"
    token.write_text("one\n")
    path = written(tmp_path / "c", config({"tokenFile": "token"}))
    clock = VirtualClock()
    credentials = load([path], clock).credentials

    assert await credentials.headers() == {"authorization": "Bearer one"}
    assert not credentials.renew()
    token.write_text("two")
    assert await credentials.headers() == {"authorization": "Bearer one"}
    assert credentials.renew()
    assert await credentials.headers() == {"authorization": "Bearer two"}
    token.write_text("three")
    await clock.advance(61)
    assert await credentials.headers() == {"authorization": "Bearer three"}


def plugin(tmp_path: Path, answer: Raw, version: str = "v1") -> Path:
    """A kubeconfig whose command counts its calls and prints an answer."""
    script = tmp_path / "plugin.py"
    script.write_text(
        "import os, pathlib, sys\n"
        "calls = pathlib.Path(sys.argv[1])\n"
        "calls.write_text(calls.read_text() + 'x' if calls.exists() else 'x')\n"
        "assert 'ExecCredential' in os.environ['KUBERNETES_EXEC_INFO']\n"
        f"print({json.dumps(json.dumps(answer))})\n"
    )
    spec = {
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "command": sys.executable,
        "args": [str(script), str(tmp_path / "calls")],
        "interactiveMode": "Never",
    }
    return written(tmp_path / "c", config({"exec": spec}))


def credential(version: str = "v1", **status: str) -> Raw:
    api_version = f"client.authentication.k8s.io/{version}"
    return {"apiVersion": api_version, "kind": "ExecCredential", "status": status}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_command_gives_a_token_until_it_expires(tmp_path: Path, version: str) -> None:
    """It is asked once, again when its answer is over, and again after a refusal."""
    answer = credential(version, token="t", expirationTimestamp="2027-01-15T08:10:00Z")
    clock = VirtualClock(1_800_000_000.0)
    credentials = load([plugin(tmp_path, answer, version)], clock).credentials

    for _ in range(3):
        assert await credentials.headers() == {"authorization": "Bearer t"}
    assert (tmp_path / "calls").read_text() == "x"
    await clock.advance(580)
    await credentials.headers()
    assert (tmp_path / "calls").read_text() == "xx"
    assert credentials.renew()
    await credentials.headers()
    assert (tmp_path / "calls").read_text() == "xxx"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"kind": "Other"}, "printed no ExecCredential"),
        (credential("v1beta1", token="t"), "answered as 'client.authentication.k8s.io/v1beta1'"),
        (credential("v1"), "neither a token nor a certificate"),
    ],
)
def test_a_command_that_answers_nonsense_is_named(
    tmp_path: Path, answer: Raw, message: str
) -> None:
    """The error says which command and what it did."""
    with pytest.raises(CredentialError, match=message):
        headers(plugin(tmp_path, answer))


def test_a_pod_finds_its_own_cluster(tmp_path: Path) -> None:
    """Address from the environment, the rest from the account's files."""
    for name, content in (("token", "t"), ("ca.crt", "pem"), ("namespace", "team")):
        (tmp_path / name).write_text(content)
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    connection = in_cluster(environment, VirtualClock(), account=tmp_path)

    assert connection.server == "https://[fd00::1]:443"
    assert connection.authority == b"pem"
    assert connection.namespace == "team"
    with pytest.raises(KubeconfigError, match="not in a cluster"):
        in_cluster({}, VirtualClock(), account=tmp_path)


def test_keys_are_not_shown(tmp_path: Path) -> None:
    """Secrets are in no text that might be logged."""
    shown = repr(load([written(tmp_path / "c", config({"token": "secret"}))], VirtualClock()))

    assert "secret" not in shown
