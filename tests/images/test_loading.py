"""`dryrack image load` finds the tool of the cluster, and runs the command that it prints."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack

from dryrack.cli.images.archive import ImageConfig, write_archive
from dryrack.cli.images.installation import ImageError
from dryrack.cli.images.loading import Tool, find_tool

if TYPE_CHECKING:
    from pathlib import Path

EVERYTHING = ("kind", "minikube", "k3s", "ctr")


@pytest.mark.parametrize(
    ("context", "programs", "tool"),
    [
        ("kind-test", EVERYTHING, Tool.KIND),
        ("minikube", EVERYTHING, Tool.MINIKUBE),
        ("production", ("k3s", "ctr"), Tool.K3S),
        ("", ("ctr",), Tool.CONTAINERD),
    ],
)
def test_the_context_decides_before_the_programs(
    context: str, programs: tuple[str, ...], tool: Tool
) -> None:
    """A machine with several tools uses the one of its current cluster."""
    assert find_tool(context, programs.__contains__) is tool


def test_a_missing_tool_is_an_error() -> None:
    """The error names the tools, or the one that the context needs."""
    with pytest.raises(ImageError, match="none of kind, minikube, k3s and ctr is installed"):
        find_tool("", ().__contains__)
    with pytest.raises(ImageError, match="context kind-a is a cluster of kind, and kind is not"):
        find_tool("kind-a", ("ctr",).__contains__)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    config = ImageConfig(architecture="amd64", entrypoint=("/a",))
    write_archive(tmp_path / "a.tar", "localhost/a:1", config, ())
    return tmp_path / "a.tar"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for the only programs on PATH, and a current context of kind."""
    folder = tmp_path / "bin"
    folder.mkdir()
    config = {"current-context": "kind-dra", "contexts": [{"name": "kind-dra", "context": {}}]}
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    return folder


def install(folder: Path, name: str, status: int = 0) -> Path:
    """Create a program that records its arguments, and return the record."""
    record = folder / f"{name}.arguments"
    script = f"import sys; open({str(record)!r}, 'w').write(repr(sys.argv[1:])); sys.exit({status})"
    (folder / name).write_text(f"#!{sys.executable}\n{script}\n")
    (folder / name).chmod(0o755)
    return record


@pytest.mark.parametrize(
    ("words", "program", "arguments"),
    [
        ((), "kind", "load image-archive {} --name dra"),
        (("--cluster", "b"), "kind", "load image-archive {} --name b"),
        (("--to", "minikube"), "minikube", "image load {}"),
        (("--to", "minikube", "--cluster", "b"), "minikube", "image load {} --profile b"),
        (("--to", "k3s"), "k3s", "ctr images import {}"),
        (("--to", "containerd"), "ctr", "-n k8s.io images import {}"),
    ],
)
def test_the_printed_command_is_the_one_that_runs(
    archive: Path, programs: Path, words: tuple[str, ...], program: str, arguments: str
) -> None:
    """The command is on standard error, and the name of the image on standard output."""
    record = install(programs, program)
    expected = arguments.format(archive)
    done = dryrack("image", "load", archive, *words)

    assert (done.returncode, done.stdout) == (0, "localhost/a:1\n")
    assert done.stderr.splitlines()[0] == f"{program} {expected}"
    assert record.read_text() == repr(shlex.split(expected))


def test_an_archive_is_not_written_into_a_directory_that_does_not_exist(tmp_path: Path) -> None:
    """The directory is named before the image is made."""
    done = dryrack("image", "save", tmp_path / "a" / "b.tar")

    assert (done.returncode, done.stdout) == (2, "")
    assert f"the directory {tmp_path / 'a'} does not exist" in done.stderr


def test_a_tool_that_fails_is_an_error(archive: Path, programs: Path) -> None:
    """The exit status is 1, and no image is reported."""
    install(programs, "kind", status=3)
    done = dryrack("image", "load", archive)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("dryrack: kind failed with exit status 3; see above\n")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("--to", "docker"), 2, "--to 'docker': must be kind, minikube, k3s, containerd"),
        (("--to", "k3s", "--cluster", "a"), 2, "--cluster is for kind and minikube, not for k3s"),
        (("--tag", "dryrack"), 2, "--tag 'dryrack': must be a full name, such as localhost/"),
        (("--to", "k3s"), 1, "k3s is not installed; install it, or choose with --to"),
        ((), 1, "the context kind-dra is a cluster of kind, and kind is not installed"),
        (("text",), 2, "text: not an archive of an image"),
        (("missing",), 1, "missing: no such file or directory"),
    ],
)
def test_bad_input_has_a_message(
    archive: Path, programs: Path, words: tuple[str, ...], status: int, message: str
) -> None:
    """Nothing runs, and the option or the file is named."""
    if words in (("text",), ("missing",)):
        install(programs, "kind")
        (archive.parent / "text").write_text("")
        done = dryrack("image", "load", *words, cwd=archive.parent)
    else:
        done = dryrack("image", "load", archive, *words)

    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
    assert not os.path.exists(programs / "kind.arguments")
