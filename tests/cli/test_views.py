"""`dryrack devices`, `claims` and `gangs`, as a person runs them, on a plane and on files."""

from __future__ import annotations

import json
import re
import signal
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import dryrack, dryrack_without_reader, example_path
from tests.cli.live_plane import plane, settle

from dryrack.cli.views.sheets import Look, Row, Sheet, device_sheet
from dryrack.cli.views.watching import Lines
from dryrack.kinds.decode import decode
from dryrack.kinds.resource import ResourceClaim, ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with plane(tmp_path_factory.mktemp("plane")) as path:
        settle(path)
        yield path


def shown(*words: str | Path) -> str:
    """Return the output of a command, with equal ages."""
    done = dryrack(*words)
    assert (done.returncode, done.stderr) == (0, "")
    return re.sub(r"\b\d+s\b *", "0s   ", done.stdout).replace("0s   \n", "0s\n")


DEVICES = """\
NODE     DEVICE   MODEL                   STATE       HELD BY
rack-1   gpu-0    NVIDIA H100 80GB HBM3   allocated   team/train
rack-1   gpu-1    NVIDIA H100 80GB HBM3   allocated   team/train
rack-1   gpu-2    NVIDIA H100 80GB HBM3   allocated   team/train
rack-1   gpu-3    NVIDIA H100 80GB HBM3   free        -
rack-2   gpu-0    NVIDIA H100 80GB HBM3   free        -
rack-2   gpu-1    NVIDIA H100 80GB HBM3   free        -
rack-2   gpu-2    NVIDIA H100 80GB HBM3   free        -
rack-2   gpu-3    NVIDIA H100 80GB HBM3   tainted     -

NVIDIA H100 80GB HBM3 (gpu.nvidia.com): 4 of 8 free; \
1 node with 3 of 4 free, 1 node with 1 of 4 free
"""
CLAIMS = """\
NAME    STATE      DEVICES               NODE     PODS     AGE
five    pending    -                     -        second   0s
four    pending    -                     -        waits    0s
three   reserved   gpu-0, gpu-1, gpu-2   rack-1   train    0s
two     pending    -                     -        first    0s
"""
GANGS = """\
NAMESPACE   NAME   KIND        MIN   PLACED   WAITING   STATUS    AGE   WHY
team        pair   pod group   2     0        2         waiting   0s   """


def test_devices_are_shown_with_who_has_them_and_what_is_free(kubeconfig: Path) -> None:
    """The table, and below it how fragmented the free ones are."""
    assert shown("devices", "--kubeconfig", kubeconfig) == DEVICES


def test_claims_and_gangs_are_those_of_a_namespace_or_of_all(kubeconfig: Path) -> None:
    """The namespace of the context has no objects."""
    assert shown("claims", "-n", "team", "--kubeconfig", kubeconfig) == CLAIMS
    gangs = shown("gangs", "-A", "--kubeconfig", kubeconfig)
    assert gangs.startswith(GANGS)
    assert "1 of 2 pods fit; pod team/second does not fit" in gangs
    for command in ("claims", "gangs"):
        done = dryrack(command, "--kubeconfig", kubeconfig)
        told = f"no {command} in this namespace; to show all namespaces, add -A\n"
        assert (done.returncode, done.stdout, done.stderr) == (0, "", told)


def test_programs_read_the_same(kubeconfig: Path) -> None:
    """JSON, YAML and names."""
    devices = json.loads(shown("devices", "--kubeconfig", kubeconfig, "-o", "json"))
    claims = yaml.safe_load(shown("claims", "-A", "--kubeconfig", kubeconfig, "-o", "yaml"))
    names = shown("gangs", "-n", "team", "--kubeconfig", kubeconfig, "-o", "name")

    assert devices["devices"][0]["claims"] == [{"claim": "team/three", "pods": ["team/train"]}]
    assert devices["summary"][0]["largestFreeOnOneNode"] == 3
    assert [each["state"] for each in claims["claims"]].count("pending") == 3
    assert names == "gang/pair\n"


def test_wide_tables_say_more(kubeconfig: Path) -> None:
    """Driver, pool and attributes of devices; what claims ask for; all of a reason."""
    assert "productName=NVIDIA H100" in shown("devices", "--kubeconfig", kubeconfig, "-o", "wide")
    claims = shown("claims", "-A", "--kubeconfig", kubeconfig, "-o", "wide")
    assert "gpu.nvidia.com/rack-1: gpu-0, gpu-1, gpu-2" in claims
    assert "gpu: 5 × gpu.nvidia.com" in claims
    assert "needs 5 devices" in shown("gangs", "-A", "--kubeconfig", kubeconfig, "-o", "wide")


def test_files_are_shown_likewise() -> None:
    """Files need no cluster, and all their namespaces are shown."""
    assert "rack-2   gpu-3    NVIDIA H100 80GB HBM3   tainted   -" in shown(
        "devices", "-f", "nodes.yaml", "--node", "rack-2"
    )
    assert "default     three-anywhere   pending" in shown("claims", "-f", "training.yaml")
    gang = str(example_path("gang-gpu/first-two.yaml"))
    assert "dra-gpu-test   gpu-gang   pod group   3" in shown("gangs", "-f", gang)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("devices", "-f", "nodes.yaml", "--context", "x"), 2, "-f reads files, not a cluster"),
        (("claims", "-n", "a", "-A"), 2, "-n and -A are mutually exclusive"),
        (("gangs", "-w", "-o", "json"), 2, "-w works only for a table of a cluster"),
        (("devices", "-f", "none.yaml"), 2, "none.yaml: no such file"),
        (("devices", "--kubeconfig", "none"), 1, 'kubeconfig "none" not found; start a'),
    ],
)
def test_mistakes_are_told_in_a_line(words: tuple[str, ...], code: int, told: str) -> None:
    """Each error has a fix, without a traceback."""
    done = dryrack(*words)

    assert done.returncode == code
    assert done.stderr.startswith(f"dryrack: {told}")
    assert done.stderr.count("\n") == 1


def test_a_cluster_that_does_not_answer_is_told(kubeconfig: Path, tmp_path: Path) -> None:
    """The error names what to check."""
    config = yaml.safe_load(kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:9"
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    done = dryrack("devices", "--kubeconfig", tmp_path / "config")

    assert done.returncode == 1
    assert "check that the cluster runs, and check --kubeconfig and --context" in done.stderr
    assert "Traceback" not in done.stderr


def test_every_node_with_free_devices_is_counted() -> None:
    """A summary names the groups with the most free devices and counts the nodes of the rest."""
    objects = [
        decode(
            {
                "metadata": {"name": f"n{count}"},
                "spec": {
                    "driver": "gpu.example.com",
                    "nodeName": f"n{count}",
                    "pool": {"name": f"n{count}", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": f"gpu-{number}"} for number in range(count)],
                },
            },
            ResourceSlice,
        )
        for count in range(1, 8)
    ]
    [line] = device_sheet(objects, Look(now=0)).footer
    assert line.endswith("more nodes with some free")


def test_many_free_devices_that_are_alike_are_one_line() -> None:
    """Partitions of several cards come in turns; wide tables and programs have each of them."""
    objects = [
        decode(
            {
                "metadata": {"name": "a"},
                "spec": {
                    "driver": "gpu.example.com",
                    "nodeName": "a",
                    "pool": {"name": "a", "generation": 1, "resourceSliceCount": 1},
                    "devices": [
                        {"name": f"gpu-{card}-{part}", "attributes": {"model": {"string": part}}}
                        for card in range(9)
                        for part in ("half", "quarter")
                    ],
                },
            },
            ResourceSlice,
        )
    ]
    table = device_sheet(objects, Look(now=0))
    wide = device_sheet(objects, Look(now=0, is_wide=True))

    assert [row.cells[1] for row in table.rows] == [
        "gpu-0-half and 8 like it",
        "gpu-0-quarter and 8 like it",
    ]
    assert len(wide.rows) == len(wide.document()["devices"]) == 18


@pytest.mark.parametrize(
    ("shares", "effect", "expected"),
    [
        (False, "NoSchedule", "allocated, tainted"),
        (True, "NoExecute", "shared, tainted"),
        (False, "None", "allocated"),
    ],
)
def test_a_device_that_is_tainted_and_in_use_has_both_states(
    shares: bool, effect: str, expected: str
) -> None:
    """Both tables show that the device is tainted and that a claim has it."""
    device = {
        "name": "gpu-0",
        "allowMultipleAllocations": shares,
        "taints": [{"key": "dryrack.dev/unhealthy", "effect": effect}],
    }
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "a", "pool": pool, "devices": [device]}
    result = {"request": "r", "driver": "gpu.example.com", "pool": "a", "device": "gpu-0"}
    objects = [
        decode({"metadata": {"name": "a"}, "spec": spec}, ResourceSlice),
        decode(
            {
                "metadata": {"name": "c", "namespace": "default"},
                "status": {"allocation": {"devices": {"results": [result]}}},
            },
            ResourceClaim,
        ),
    ]
    for is_wide in (False, True):
        [row] = device_sheet(objects, Look(now=0, is_wide=is_wide)).rows
        assert expected in row.cells


def sheet(*rows: tuple[str, str, str]) -> Sheet:
    made = tuple(Row(cells[0], cells) for cells in rows)
    return Sheet(("NAME", "STATE", "AGE"), made, dict, ())


def test_in_a_pipe_a_line_is_written_for_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    """A row is not printed again only because its age changed; a deleted row is."""
    lines = Lines()
    lines.show(sheet(("a", "pending", "1s"), ("b", "pending", "1s")))
    capsys.readouterr()
    lines.show(sheet(("a", "reserved", "2s"), ("b", "pending", "2s")))
    lines.show(sheet(("b", "pending", "3s")))

    told = capsys.readouterr().out.splitlines()
    assert told == ["a      reserved   2s", "a      reserved   2s    (deleted)"]


@pytest.mark.parametrize(
    "words",
    [("devices", "-w"), ("claims", "-A", "-w"), ("gangs", "-A", "-o", "name")],
    ids=" ".join,
)
def test_a_view_that_nobody_reads_ends_quietly(kubeconfig: Path, words: tuple[str, ...]) -> None:
    """Also one that goes on until it is interrupted: the next row that it writes ends it."""
    done = dryrack_without_reader(*words, "--kubeconfig", kubeconfig)

    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, "")
