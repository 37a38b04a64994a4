"""`dryrack dashboard`, and the page of `dryrack up`, as a person starts them."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import yaml
from tests.cli.command import dryrack
from tests.cli.live_plane import plane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ADDRESS = re.compile(r"dashboard: (http://127\.0\.0\.[12]:\d+/)\?token=([0-9a-f]{48})\n")


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with plane(tmp_path_factory.mktemp("plane")) as path:
        yield path


def fetched(address: str, token: str, path: str) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    with urllib.request.urlopen(urllib.request.Request(address + path, headers=headers)) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_the_command_prints_an_address_that_shows_the_cluster(kubeconfig: Path, host: str) -> None:
    """The dashboard serves until a signal stops it, at any address of this machine."""
    words = [sys.executable, "-m", "dryrack", "dashboard", "--kubeconfig", str(kubeconfig)]
    words += ["--host", host]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as command:
        assert command.stdout is not None
        told = _ADDRESS.fullmatch(command.stdout.readline())
        assert told is not None
        assert urlsplit(told[1]).hostname == host
        assert fetched(told[1], told[2], "api/v1/fleet")["nodes"]["name"] == ["rack-1", "rack-2"]
        command.send_signal(signal.SIGTERM)
        assert command.wait() == 0


def test_a_token_from_a_file_is_not_printed(kubeconfig: Path, tmp_path: Path) -> None:
    """The file can be a mounted Secret; the log of a Pod does not contain the token."""
    token = tmp_path / "token"
    token.write_text("0123456789abcdef-ABC\n")
    words = [sys.executable, "-m", "dryrack", "dashboard", "--kubeconfig", str(kubeconfig)]
    words += ["--token-file", str(token)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as command:
        assert command.stdout is not None
        address = re.fullmatch(r"dashboard: (\S+)\?token=TOKEN\n", command.stdout.readline())
        assert address is not None
        nodes = fetched(address[1], "0123456789abcdef-ABC", "api/v1/fleet")["nodes"]
        assert nodes["name"] == ["rack-1", "rack-2"]
        command.send_signal(signal.SIGTERM)
        assert command.wait() == 0


def test_a_scenario_is_run_and_shown() -> None:
    """The result is printed first; the dashboard has the timeline."""
    words = [sys.executable, "-m", "dryrack", "dashboard", "--scenario", "gang-gpu"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as command:
        assert command.stdout is not None
        lines = [command.stdout.readline() for _ in range(3)]
        told = _ADDRESS.fullmatch(lines[2])
        assert told is not None, lines
        assert "gang-gpu passed:" in lines[0]
        assert len(fetched(told[1], told[2], "api/v1/timeline")["moments"]) > 1
        command.send_signal(signal.SIGTERM)
        assert command.wait() == 0


def test_a_plane_has_a_page_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`up` prints the URL of the dashboard, which is loaded on the first visit."""
    monkeypatch.setenv("DRYRACK_HOME", str(tmp_path))
    try:
        up = dryrack("up", "--detach", "--nodes", "1")
        told = _ADDRESS.search(up.stderr)
        assert told is not None, up.stderr
        assert fetched(told[1], told[2], "api/v1/fleet")["nodes"]["name"] == ["node-1"]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            fetched(told[1], "wrong", "api/v1/fleet")
    finally:
        down = dryrack("down", "--all")
    assert down.returncode == 0


def test_a_plane_has_no_page_if_nobody_wants_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is printed about it."""
    monkeypatch.setenv("DRYRACK_HOME", str(tmp_path))
    try:
        assert "dashboard" not in dryrack("up", "--detach", "--no-dashboard").stderr
    finally:
        dryrack("down", "--all")


def test_the_rights_are_to_read() -> None:
    """The manifest has a role that a user can be bound to."""
    [role] = yaml.safe_load_all(dryrack("dashboard", "--print-rbac").stdout)

    assert role["kind"] == "ClusterRole"
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--port", "70000"), "--port 70000: must be from 1 to 65535"),
        (("--host", "example.com"), "--host 'example.com': must be an IP address"),
        (("--host", "0.0.0.0"), "--host 0.0.0.0: other machines can reach this address"),
        (("--kubeconfig", "nothing.yaml"), 'kubeconfig "nothing.yaml" not found; start a cluster'),
        (("--seed", "1"), "--seed needs --scenario"),
        (("--token-file", "none"), "none"),
        (("--token-file", "README.md"), "README.md: the token must have at least 16 letters"),
        (("--scenario", "gang-gp"), "gang-gp: no file or packaged scenario has this name"),
        (("--scenario", "gang-gpu", "--context", "lab"), "--scenario cannot show a cluster"),
    ],
)
def test_what_is_called_wrongly_is_told(words: tuple[str, ...], complaint: str) -> None:
    """In a line."""
    done = dryrack("dashboard", *words)

    assert done.returncode != 0
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
