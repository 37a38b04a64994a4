"""CDI specs as a container runtime reads them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from dryrack.kubelet.cdi import problems, resolve

if TYPE_CHECKING:
    from pathlib import Path


def write(directory: Path, name: str, *devices: str, common: Any = None, **edits: Any) -> None:
    directory.mkdir(exist_ok=True)
    spec: dict[str, Any] = {
        "cdiVersion": "0.5.0",
        "kind": "example.com/gpu",
        "devices": [{"name": each, "containerEdits": edits} for each in devices],
    }
    if common is not None:
        spec["containerEdits"] = common
    (directory / name).write_text(json.dumps(spec))


def test_edits_of_devices_are_joined(tmp_path: Path) -> None:
    """The edits of a spec apply once; variables, device nodes and files keep their order."""
    (tmp_path / "config").write_text("a\nb\n")
    mount = {"hostPath": str(tmp_path / "config"), "containerPath": "/etc/gpu"}
    write(
        tmp_path / "cdi",
        "a.json",
        "0",
        common={"env": ["ALL=x=y"]},
        env=["GPU_0=1"],
        deviceNodes=[{"path": "/dev/gpu0"}],
        mounts=[mount],
    )
    (tmp_path / "cdi" / "b.yaml").write_text(
        "cdiVersion: 0.5.0\nkind: other.com/nic\n"
        "devices: [{name: n, containerEdits: {env: [NIC=n]}}]\n"
    )
    edits = resolve(["example.com/gpu=0", "other.com/nic=n"], [tmp_path / "cdi"])

    assert edits.env == (("ALL", "x=y"), ("GPU_0", "1"), ("NIC", "n"))
    assert edits.device_nodes == ("/dev/gpu0",)
    assert edits.mounts == ("/etc/gpu",)
    assert edits.lines == (("/etc/gpu", "a"), ("/etc/gpu", "b"))
    assert edits.error == ""


def test_a_later_directory_overrides_an_earlier_one(tmp_path: Path) -> None:
    """Two files of one directory that define a device conflict, and then no file counts."""
    write(tmp_path / "first", "a.json", "0", env=["FROM=first"])
    write(tmp_path / "second", "a.json", "0", env=["FROM=second"])
    both = [tmp_path / "first", tmp_path / "second", tmp_path / "missing"]

    assert resolve(["example.com/gpu=0"], both).env == (("FROM", "second"),)
    write(tmp_path / "second", "b.json", "0", env=["FROM=third"])
    assert resolve(["example.com/gpu=0"], both).error == (
        "unresolvable CDI devices example.com/gpu=0"
    )


def test_unknown_devices_and_damaged_files_are_named(tmp_path: Path) -> None:
    """A damaged file hides no other file."""
    write(tmp_path / "cdi", "a.json", "0", env=["A=1"])
    (tmp_path / "cdi" / "b.json").write_text("{")
    (tmp_path / "cdi" / "c.yaml").write_text("- a list")
    directories = [tmp_path / "cdi"]

    assert resolve(["example.com/gpu=0"], directories).env == (("A", "1"),)
    assert resolve(["x.com/y=1", "x.com/y=2"], directories).error == (
        "unresolvable CDI devices x.com/y=1, x.com/y=2"
    )
    first, second = problems(directories)
    assert first.startswith(f"{tmp_path}/cdi/b.json: ")
    assert second == f"{tmp_path}/cdi/c.yaml: not a CDI spec: it has no kind"


def test_hooks_are_listed_and_do_not_run(tmp_path: Path) -> None:
    """Each has its time and its words."""
    hook = {"hookName": "createContainer", "path": "/bin/ctk", "args": ["ctk", "update"]}
    write(tmp_path / "cdi", "a.json", "0", hooks=[hook, {"hookName": "poststop", "path": "/x"}])

    edits = resolve(["example.com/gpu=0"], [tmp_path / "cdi"])
    assert edits.hooks == ("createContainer ctk update", "poststop /x")


def test_a_changed_spec_is_read_again(tmp_path: Path) -> None:
    """A file is parsed once for each of its states."""
    for value in ("first", "second"):
        write(tmp_path / "cdi", "new.json", "0", env=[f"FROM={value}"])
        (tmp_path / "cdi" / "new.json").replace(tmp_path / "cdi" / "a.json")

        edits = resolve(["example.com/gpu=0"], [tmp_path / "cdi"])
        assert edits.env == (("FROM", value),)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"cdiVersion": None}, "it has no cdiVersion"),
        ({"kind": "gpu"}, "invalid vendor/class 'gpu'"),
        ({"devices": []}, "no devices"),
        ({"devices": [{"name": "0"}]}, "device '0' has empty device edits"),
        ({"devices": [{"name": "a b", "containerEdits": {}}]}, "invalid device name 'a b'"),
        ({"containerEdits": {"env": ["NO-VALUE"]}}, "invalid environment variable 'NO-VALUE'"),
        ({"containerEdits": {"hooks": [{"hookName": "x"}]}}, "invalid hook name 'x'"),
        ({"containerEdits": {"mounts": [{"hostPath": "/x"}]}}, "a required field is missing"),
        ({"containerEdits": {"deviceNodes": "x"}}, "a field has a wrong type"),
        ({"devices": "text"}, "a field has a wrong type"),
    ],
)
def test_a_spec_that_a_runtime_refuses_has_no_devices(
    tmp_path: Path, changes: Any, problem: str
) -> None:
    """The reason names what is wrong."""
    write(tmp_path, "a.json", "0", env=["A=1"])
    spec = json.loads((tmp_path / "a.json").read_text()) | changes
    (tmp_path / "a.json").write_text(json.dumps(spec))

    assert resolve(["example.com/gpu=0"], [tmp_path]).error
    assert problem in next(problems([tmp_path]))
