"""
Text from files cannot control the terminal or a GitHub runner.

Names and values are meant to hurt: escapes for a terminal, commands for a GitHub runner, and
characters that XML has no way to say. Every command prints them in every format, and the streams
of the process, a pipe or a terminal, get none of them.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest
import yaml
from tests.cli.command import dryrack

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = (
    "x\x1b[31m\x1b]0;owned\x07\x1b[2J\r\n::error::owned\n  ::warning file=a::owned\n"
    "##[error]owned\x00\x7f\x9b31m\u202e\u2066\u2028\ufeff\uffff\b%0A::notice::owned,:"
)
# A line would be broken after the escape, if YAML were written as PyYAML does it.
LONG = "a " * 38 + "\x01::error::owned " + "b" * 100
FILE_NAME = "::error::\x1b[31m\n##[error]owned\u202e,%0A::.yaml"
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\uffff]"
)


def orders_in(printed: str) -> list[str]:
    """Return the lines that a terminal or a runner would obey."""
    return [
        line
        for line in printed.split("\n")
        if HIDDEN.search(line) or line.lstrip().startswith("::") or "##[" in line
    ]


def named(kind: str, name: str, **more: Any) -> dict[str, Any]:
    version = {"Pod": "v1", "Node": "v1"}.get(kind, "resource.k8s.io/v1")
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more}


def world() -> list[dict[str, Any]]:
    """Objects whose names, labels, selectors and values are hostile."""
    text = {"driver": {"string": HOSTILE}, "long": {"string": LONG}}
    request = {"name": HOSTILE, "exactly": {"deviceClassName": HOSTILE}}
    selector = {"cel": {"expression": f"device.driver == '{HOSTILE}"}}
    claim = {"devices": {"requests": [request]}}
    slice_ = {
        "driver": HOSTILE,
        "nodeName": HOSTILE,
        "pool": {"name": HOSTILE, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": HOSTILE, "attributes": text}],
    }
    container = {"name": HOSTILE, "image": HOSTILE, "resources": {"claims": [{"name": HOSTILE}]}}
    pod = {
        "containers": [container],
        "resourceClaims": [{"name": HOSTILE, "resourceClaimName": HOSTILE}],
    }
    found = [
        named("Node", HOSTILE),
        named("DeviceClass", HOSTILE, spec={"selectors": [selector]}),
        named("ResourceSlice", HOSTILE, spec=slice_),
        named("ResourceClaim", HOSTILE, spec=claim),
        named("ResourceClaim", LONG, spec=claim),
        named("Pod", HOSTILE, spec=pod, **{HOSTILE: LONG, LONG: HOSTILE}),
        named(HOSTILE, HOSTILE),
    ]
    for each in found:
        each["metadata"] |= {"labels": {HOSTILE: LONG}, "annotations": {LONG: HOSTILE}}
    return found


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / FILE_NAME
    path.write_text("\n---\n".join(json.dumps(each) for each in world()))
    return path


@pytest.mark.parametrize("form", ["table", "json", "yaml", "sarif", "junit"])
def test_lint_gives_no_orders_in_any_format(manifest: Path, form: str) -> None:
    """Programs read the same text back that the file has; a terminal and a runner obey nothing."""
    done = dryrack("lint", "-o", form, manifest.name, cwd=manifest.parent)

    assert orders_in(done.stdout) == []
    assert orders_in(done.stderr) == []
    assert "owned" in done.stdout
    match form:
        case "json":
            assert json.loads(done.stdout)["findings"][0]["file"] == FILE_NAME
        case "yaml":
            assert yaml.safe_load(done.stdout)["findings"][0]["file"] == FILE_NAME
        case "sarif":
            assert json.loads(done.stdout)["runs"][0]["results"]
        case "junit":
            assert "owned" in ElementTree.fromstring(done.stdout)[0][0].attrib["classname"]


def test_lint_gives_a_runner_its_own_commands_alone(manifest: Path) -> None:
    """Each finding is one command, whose properties end where they should."""
    done = dryrack("lint", "-o", "github", manifest.name, cwd=manifest.parent)
    found = dryrack("lint", "-o", "json", manifest.name, cwd=manifest.parent)
    command = re.compile(r"::(error|warning|notice) file=[^:,]+,line=\d+,title=[^:,]+::.+")
    lines = done.stdout.splitlines()

    assert len(lines) == len(json.loads(found.stdout)["findings"])
    assert [line for line in lines if not command.fullmatch(line) or HIDDEN.search(line)] == []
    assert orders_in(done.stderr) == []
    assert all("%25250A" not in line and "%250A" in line for line in lines)


@pytest.mark.parametrize(
    "words",
    [
        "allocate -o table",
        "allocate -o json",
        "allocate -o yaml",
        "allocate -o name",
        "explain claim NAME -o table",
        "explain claim NAME -o json",
        "explain claim NAME -o yaml",
        "explain claim missing -o table",
        "devices -o wide",
        "devices -o json",
        "devices -o yaml",
        "devices -o name",
        "claims -o wide",
        "claims -o yaml",
        "gangs -o table",
        "publish --dry-run -o yaml",
    ],
)
def test_no_command_passes_orders_on(manifest: Path, words: str) -> None:
    """Not in tables, not in data, and not in what is said on standard error."""
    arguments = [HOSTILE.replace("\0", "") if each == "NAME" else each for each in words.split()]
    done = dryrack(*arguments, "-f", manifest.name, cwd=manifest.parent)

    assert orders_in(done.stdout) == []
    assert orders_in(done.stderr) == []
    assert "Traceback" not in done.stderr
    assert done.stdout + done.stderr


WAITING = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "waits"},
    "spec": {
        "nodeSelector": {"there-is": "none"},
        "containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": HOSTILE}]}],
    },
}
FAILS = {"object": "Pod/default/waits", "fields": {"status.phase": HOSTILE}, "within": "1s"}
SHOWN = {"object": "Pod/default/waits", "fields": ["spec.containers[0].env[0].value"]}


@pytest.mark.parametrize(
    ("steps", "has_report"),
    [
        ([{"title": HOSTILE, "apply": [WAITING], "show": [SHOWN], "expect": [FAILS]}], True),
        ([{"title": HOSTILE, "apply": [HOSTILE], HOSTILE: LONG}], False),
    ],
    ids=["fails", "is wrong"],
)
def test_a_scenario_and_its_report_give_no_orders(
    tmp_path: Path, steps: list[dict[str, Any]], has_report: bool
) -> None:
    """Neither the run, nor its mistakes, nor the XML of its verdicts."""
    kind = {"apiVersion": "dryrack.dev/v1alpha1", "kind": "Scenario"}
    path = tmp_path / FILE_NAME
    path.write_text(json.dumps({**kind, "title": HOSTILE, "steps": steps}))
    done = dryrack("scenario", "run", path.name, "--junit", "junit.xml", cwd=tmp_path)
    report = tmp_path / "junit.xml"

    assert done.returncode == 1
    assert "owned" in done.stdout + done.stderr
    assert orders_in(done.stdout) == []
    assert orders_in(done.stderr) == []
    assert report.exists() == has_report
    if has_report:
        assert orders_in(report.read_text()) == []
        assert "owned" in ElementTree.parse(report).getroot()[0].attrib["name"]


@pytest.mark.parametrize(
    "words",
    [
        ["lint", HOSTILE.replace("\0", "")],
        ["allocate", "-f", HOSTILE.replace("\0", "")],
        ["allocate", "--scheduler-config", HOSTILE.replace("\0", ""), "-f", "four-gpus.yaml"],
        ["scenario", "run", HOSTILE.replace("\0", "")],
        ["explain", HOSTILE.replace("\0", ""), "x", "-f", "four-gpus.yaml"],
        ["devices", "--kubeconfig", HOSTILE.replace("\0", "")],
        [HOSTILE.replace("\0", "")],
        ["lint", "-o", HOSTILE.replace("\0", "")],
    ],
    ids=lambda words: words[0][:9],
)
def test_mistakes_in_a_call_are_told_without_orders(words: list[str]) -> None:
    """A name on the command line may come from a file, too."""
    done = dryrack(*words)

    assert done.returncode == 2 or words[0] == "devices"
    assert orders_in(done.stdout) == []
    assert orders_in(done.stderr) == []


def on_terminal(*words: str, cwd: Path) -> str:
    """Return what a command writes to a terminal, on both streams."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    call = [sys.executable, "-m", "dryrack", *words]
    with subprocess.Popen(call, cwd=cwd, stdout=theirs, stderr=theirs, env=environment):
        os.close(theirs)
        printed = b""
        while chunk := _read(ours):
            printed += chunk
    os.close(ours)
    # The terminal itself adds the carriage returns.
    return printed.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


@pytest.mark.parametrize(
    "words", [["lint"], ["allocate"], ["devices", "-f"], ["claims", "-f"], ["lint", "-o", "yaml"]]
)
def test_a_terminal_gets_our_styles_alone(manifest: Path, words: list[str]) -> None:
    """Colours are ours; those of the file are shown as they are written."""
    printed = on_terminal(*words, manifest.name, cwd=manifest.parent)

    assert "\x1b[31mowned" not in printed
    assert "x\x1b" not in printed
    assert orders_in(re.sub(r"\x1b\[[0-9;]*m", "", printed)) == []


def test_a_terminal_still_gets_colours(tmp_path: Path) -> None:
    """Only text from outside is escaped: findings and help keep their styles."""
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: Pod\n")

    assert "\x1b[1;31merror\x1b[0m" in on_terminal("lint", "a.yaml", cwd=tmp_path)
    assert "\x1b[" in on_terminal("--help", cwd=tmp_path)
    assert "\\x1b" not in on_terminal("lint", "--help", cwd=tmp_path)
    assert "\\x1b" not in on_terminal("lint", "--nonsense", cwd=tmp_path)
