"""`dryrack lint` for people and pipelines: exit status, lines, data, bad input."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.lint_files import REFUSED, WARNED, run, write
from tests.linter.examples import CLASS, POD, SLICE, join

from dryrack.cli.files import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_clean_file_exits_with_0_and_says_nothing_on_stdout(tmp_path: Path) -> None:
    """No finding: nothing for a program to read, one line for a person."""
    assert run(write(tmp_path, SLICE)) == (0, "", "no findings in 1 file\n")


def test_warnings_alone_exit_with_0(tmp_path: Path) -> None:
    """A pipeline goes on when all that was found may be right elsewhere."""
    code, out, talk = run(write(tmp_path, WARNED))

    assert code == 0
    assert " warning DR602 Pod team-a/trainer, " in out
    assert talk == "1 warning in 1 file\n"


def test_an_error_exits_with_1(tmp_path: Path) -> None:
    """A pipeline stops at what no cluster takes."""
    code, out, talk = run(write(tmp_path, REFUSED))

    assert code == 1
    assert out.startswith(
        f"{tmp_path}/a.yaml:6: error DR111 ResourceSlice rack-1-gpus, spec.driver: "
    )
    assert out.endswith("; write 'example.com.gpu'\n")
    assert talk == "1 error in 1 file\n"


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_data_has_every_part_of_a_finding(tmp_path: Path, form: str) -> None:
    """A program gets code, severity, place, object, field, message, fix and the API's reason."""
    code, out, talk = run(write(tmp_path, REFUSED), "-o", form)
    (finding,) = (json.loads(out) if form == "json" else yaml.safe_load(out))["findings"]

    assert (code, talk) == (1, "")
    assert finding.pop("message").startswith('Invalid value: "example.com/gpu": ')
    assert finding == {
        "code": "DR111",
        "name": "driver-name",
        "severity": "error",
        "file": f"{tmp_path}/a.yaml",
        "line": 6,
        "object": "ResourceSlice rack-1-gpus",
        "field": "spec.driver",
        "fix": "write 'example.com.gpu'",
        "reason": "FieldValueInvalid",
    }


def test_no_findings_are_still_data(tmp_path: Path) -> None:
    """A program can read the answer whether or not there is anything in it."""
    assert json.loads(run(write(tmp_path, SLICE), "-o", "json")[1]) == {"findings": []}


def test_a_finding_is_one_line(tmp_path: Path) -> None:
    """A compiler's message has a picture of the expression; a line of output does not."""
    bad = CLASS.replace("device.driver", "device.drivers")
    code, out, _ = run(write(tmp_path, bad))

    assert code == 1
    assert re.fullmatch(r".*:8: error DR113 DeviceClass gpu, .*; correct the expression\n", out)


def test_several_files_are_one_world(tmp_path: Path) -> None:
    """A class in one file and its devices in another are judged together."""
    files = [write(tmp_path, CLASS, "class.yaml"), write(tmp_path, SLICE, "slice.yaml")]

    assert run(*files)[0] == 0
    assert run("-f", files[0], files[1])[2] == "no findings in 2 files\n"


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (b"", 1, "the file is empty"),
        (b"\x7fELF\x00\x01", 1, "a binary file"),
        (b"a: 1\na: 2\n", 2, "twice"),
        (b"just words\n", 1, "expected an object"),
        (b"apiVersion: v1\nkind: Node\r\nmetadata: [\n", 3, ""),
        (b"apiVersion: v1\nkind: Nodes\nmetadata: {name: a}\n", 2, "unknown kind 'Nodes'"),
        (b"apiVersion: v1\nkind: DeviceClass\nmetadata: {name: a}\n", 1, "DeviceClass is not in"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: 3\n", 4, "expected an object"),
    ],
)
def test_bad_input_is_a_finding_with_a_line(
    tmp_path: Path, content: bytes, line: int, what: str
) -> None:
    """Invalid input is an error with its line, and never a traceback."""
    code, out, _ = run(write(tmp_path, content), "-o", "json")
    finding = json.loads(out)["findings"][0]

    assert code == 1
    assert finding["severity"] == "error"
    assert finding["line"] >= line
    assert what in finding["message"]


def test_a_custom_kind_is_told_and_no_error(tmp_path: Path) -> None:
    """dryrack has no schema for the kind, so it is only an info; the help says so."""
    custom = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n"
    code, out, _ = run(write(tmp_path, custom), "-o", "json")
    (finding,) = json.loads(out)["findings"]
    _, explained, _ = run("--help")

    assert (code, finding["code"], finding["severity"]) == (0, "DR007", "info")
    assert "Exit status 0: no error; warnings and infos are possible." in explained
    assert "DR007" in explained


def test_a_scenario_is_checked_as_the_command_that_runs_it_does(tmp_path: Path) -> None:
    """A Scenario is no custom kind: its mistakes are errors with file and line, else silence."""
    right = "apiVersion: dryrack.dev/v1alpha1\nkind: Scenario\nsteps:\n- apply: [pods.yaml]\n"
    write(tmp_path, POD, "pods.yaml")
    clean = run(write(tmp_path, right))
    _, refused, _ = run(write(tmp_path, right.replace("pods.", "gone."), "b.yaml"))
    _, old, _ = run(write(tmp_path, right.replace("v1alpha1", "v1"), "c.yaml"))
    _, mixed, _ = run(write(tmp_path, join(right, POD), "d.yaml"), "-o", "json")

    assert clean == (0, "", "no findings in 1 file\n")
    assert refused == (
        f"{tmp_path}/b.yaml:4: error DR008 steps[0].apply[0]: 'gone.yaml': "
        f"no such file or directory; use a file in {tmp_path} or below it\n"
    )
    assert ":2: error DR008 expected a scenario, got dryrack.dev/v1 Scenario; write " in old
    assert json.loads(mixed)["findings"][0]["code"] == "DR008"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("kind: NodeDevices\ndevices: [{kind: fake, count: 2}]\n", 0, ""),
        (
            "kind: NodeDevices\ndevices:\n- kind: fake\n  cuont: 2\n",
            5,
            "devices[0].cuont: unknown field",
        ),
        ("kind: NodeDevices\ndevices: [{kind: fame}]\n", 3, "unknown device kind; use one of: "),
        (
            "kind: NodeDevices\ndevices: [{kind: fake}, {kind: fake}]\n",
            3,
            "already provides driver",
        ),
        ("kind: Catalogue\nmodels: []\n", 0, ""),
        ("kind: Catalogue\nmodels:\n- nmae: x\n", 4, "models[0].nmae: unknown field"),
        ("kind: Senario\n", 2, "no kind 'Senario' in dryrack.dev/v1alpha1; did you mean"),
    ],
)
def test_all_kinds_of_our_own_are_checked(tmp_path: Path, text: str, line: int, said: str) -> None:
    """lint checks the files of `dryrack plugin` and `dryrack hardware` as these commands do."""
    path = write(tmp_path, f"apiVersion: dryrack.dev/v1alpha1\n{text}")
    code, out, _ = run(path)

    assert code == (1 if said else 0)
    assert out.startswith(f"{path}:{line}: error DR008 " if said else "")
    assert said in out
    assert bool(out) is bool(said)


def test_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    """A file with CRLF has the same findings at the same lines."""
    unix = write(tmp_path, REFUSED)
    windows = write(tmp_path, REFUSED.replace("\n", "\r\n"), "b.yaml")

    assert run(unix)[1].replace("a.yaml", "b.yaml") == run(windows)[1]


def test_an_error_in_the_third_document_is_told_at_its_line(tmp_path: Path) -> None:
    """Documents before it are read, and the line counts from the beginning of the file."""
    text = join(CLASS, SLICE, "kind: {\n")
    code, out, _ = run(write(tmp_path, text), "-o", "json")
    (finding,) = json.loads(out)["findings"]

    assert (code, finding["code"]) == (1, "DR001")
    assert finding["line"] > len(join(CLASS, SLICE).splitlines())


def test_a_bomb_of_aliases_ends_at_once(tmp_path: Path) -> None:
    """Ten levels of ten aliases are refused before they are expanded."""
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    text = "\n".join(["a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *levels])
    code, out, _ = run(write(tmp_path, text), "-o", "json")

    assert code == 1
    assert json.loads(out)["findings"][0]["code"] == "DR001"


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_a_name_that_cannot_be_read_is_a_usage_error(tmp_path: Path, name: str) -> None:
    """Nothing is judged when the command was called wrongly."""
    with pytest.raises(UsageError):
        run(str(tmp_path / name))
