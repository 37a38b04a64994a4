"""`dryrack convert`: what it prints, what it writes, and how it refuses."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack

from dryrack.cli.convert import write_all
from dryrack.conversion import ConvertedFile

if TYPE_CHECKING:
    from pathlib import Path

OLD = """\
# the claim
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: a
      deviceClassName: gpu.nvidia.com # its class
"""
NEW = """\
# the claim
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: a
      exactly:
        deviceClassName: gpu.nvidia.com # its class
"""
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n"
BROKEN = "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\nmetadata: {name: c}\n"


def test_the_result_goes_to_standard_output(tmp_path: Path) -> None:
    """Files become one stream of documents; the files stay."""
    (tmp_path / "a.yaml").write_text(OLD)
    (tmp_path / "b.yaml").write_text(NAMESPACE)
    done = dryrack("convert", "-f", "a.yaml", "b.yaml", cwd=tmp_path)

    assert (done.returncode, done.stderr) == (0, "")
    # Files that are named without an option come last.
    assert done.stdout == NEW + "---\n" + NAMESPACE
    assert (tmp_path / "a.yaml").read_text() == OLD


def test_standard_input_and_json() -> None:
    """One object is itself; several are a List."""
    one = dryrack("convert", "-f", "-", "-o", "json", stdin=OLD)
    two = dryrack("convert", "-", "-o", "json", stdin=f"{OLD}---\n{NAMESPACE}")

    assert json.loads(one.stdout) == yaml.safe_load(NEW)
    assert [each["kind"] for each in json.loads(two.stdout)["items"]] == [
        "ResourceClaim",
        "Namespace",
    ]


def test_a_diff_changes_no_file(tmp_path: Path) -> None:
    """Only the changed lines are marked."""
    (tmp_path / "a.yaml").write_text(OLD)
    done = dryrack("convert", "--diff", "a.yaml", cwd=tmp_path)

    changed = [line for line in done.stdout.splitlines()[2:] if line[0] in "+-"]
    assert changed == [
        "-apiVersion: resource.k8s.io/v1beta1",
        "+apiVersion: resource.k8s.io/v1",
        "-      deviceClassName: gpu.nvidia.com # its class",
        "+      exactly:",
        "+        deviceClassName: gpu.nvidia.com # its class",
    ]
    assert (tmp_path / "a.yaml").read_text() == OLD


def test_a_folder_is_changed_in_place(tmp_path: Path) -> None:
    """The mode of a file stays; a second run changes nothing."""
    (tmp_path / "a.yaml").write_text(OLD)
    (tmp_path / "a.yaml").chmod(0o640)
    (tmp_path / "b.yaml").write_text(NAMESPACE)
    first = dryrack("convert", "-i", "-f", ".", cwd=tmp_path)
    second = dryrack("convert", "-i", "-f", ".", cwd=tmp_path)

    assert (first.stdout, first.stderr) == ("", "1 file changed\n")
    assert second.stderr == "0 files changed\n"
    assert (tmp_path / "a.yaml").read_text() == NEW
    assert (tmp_path / "a.yaml").stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["a.yaml", "b.yaml"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (BROKEN, "b.yaml:1: error: a ResourceClass without driverName; add driverName"),
        ("a: [\n", "b.yaml:2: error: while parsing a flow node"),
        (
            "apiVersion: resource.k8s.io/v1alpha9\nkind: ResourceClaim\nmetadata: {name: c}\n",
            "b.yaml:1: error: resource.k8s.io/v1alpha9 is no version of resource.k8s.io",
        ),
        (
            "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nspec: 1\n",
            "b.yaml:3: error: spec: expected an object",
        ),
    ],
)
def test_one_bad_document_changes_no_file(tmp_path: Path, text: str, told: str) -> None:
    """The problem has its file and line, and the exit status is 1."""
    (tmp_path / "a.yaml").write_text(OLD)
    (tmp_path / "b.yaml").write_text(text)
    done = dryrack("convert", "-i", "a.yaml", "b.yaml", cwd=tmp_path)

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(told)
    assert done.stderr.endswith("1 problem; nothing is converted\n")
    assert (tmp_path / "a.yaml").read_text() == OLD


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "no input"),
        (("missing.yaml",), "missing.yaml: no such file"),
        (("-i", "-"), "-i cannot change standard input"),
        (("-i", "--diff", "a.yaml"), "-i and --diff exclude each other"),
        (("--claims", "--extended-resources", "a.yaml"), "exclude each other"),
        (("-o", "json", "--diff", "a.yaml"), "-o json applies to standard output"),
        (("--release", "1.30", "a.yaml"), "--release '1.30': unknown release; use 1.36 or 1.37"),
    ],
)
def test_wrong_usage_ends_with_2(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    """Nothing is read or written."""
    (tmp_path / "a.yaml").write_text(OLD)
    done = dryrack("convert", *words, cwd=tmp_path)

    assert done.returncode == 2
    assert told in done.stderr
    assert done.stdout == ""


def test_what_is_lost_is_told_with_its_line(tmp_path: Path) -> None:
    """On standard error, so that the result can be piped."""
    text = OLD.replace("spec:\n", "spec:\n  controller: x # which\n").replace("v1beta1", "v1alpha3")
    (tmp_path / "a.yaml").write_text(text)
    done = dryrack("convert", "a.yaml", cwd=tmp_path)

    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "a.yaml:6: spec.controller is dropped: the scheduler allocates devices by itself",
        "a.yaml:6: the comment '# which' is dropped with its line",
    ]


def test_all_files_are_written_or_none(tmp_path: Path) -> None:
    """A file that cannot be written leaves the others as they are, and no temporary file."""
    (tmp_path / "a.yaml").write_text(OLD)
    files = [
        ConvertedFile(str(tmp_path / "a.yaml"), OLD, NEW, ()),
        ConvertedFile(str(tmp_path / "gone" / "b.yaml"), OLD, NEW, ()),
    ]
    with pytest.raises(FileNotFoundError):
        write_all(files)

    assert (tmp_path / "a.yaml").read_text() == OLD
    assert os.listdir(tmp_path) == ["a.yaml"]


def test_the_options_are_steps_of_one_conversion() -> None:
    """Versions, claims, gangs and schedulers in one run."""
    pod = """\
apiVersion: v1
kind: Pod
metadata:
  name: p
  labels:
    pod-group.scheduling.sigs.k8s.io/name: g
    pod-group.scheduling.sigs.k8s.io/min-available: "2"
spec:
  schedulerName: volcano
  containers:
  - {name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}
"""
    done = dryrack(
        *("convert", "--claims", "--gangs", "native", "--release", "1.37"),
        *("--scheduler-name", "dryrack", "-"),
        stdin=f"{OLD}---\n{pod}",
    )
    claim, converted, template, group = yaml.safe_load_all(done.stdout)

    assert done.stderr == ""
    assert claim["apiVersion"] == "resource.k8s.io/v1"
    assert converted["spec"]["schedulerName"] == "dryrack"
    assert converted["spec"]["schedulingGroup"] == {"podGroupName": "g"}
    assert template["kind"] == "ResourceClaimTemplate"
    assert group["apiVersion"] == "scheduling.k8s.io/v1beta1"
