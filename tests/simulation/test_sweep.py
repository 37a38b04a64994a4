"""A sweep gives the same document wherever its runs are."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.simulation.made_up import PODS, random_nodes, random_pods
from typer.testing import CliRunner

from dryrack.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Sequence

OPTIONS = ("--format", "openb", "--inflate", "1.2", "--policy", "fgd,random", "--seeds", "3")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trace and a list of nodes in the current folder."""
    random = Random(1)
    monkeypatch.chdir(tmp_path)
    Path("pods.csv").write_text("\n".join(random_pods(random)))
    Path("nodes.csv").write_text("\n".join(random_nodes(random)))
    return tmp_path


def simulate(*options: str, trace: str = "pods.csv", status: int = 0) -> str:
    """Run the command, and return its standard output or, if it fails, its error."""
    result = CliRunner().invoke(app, ["simulate", trace, *options])
    if status and result.exception is not None:
        return str(result.exception)
    assert result.exit_code == status, result.output
    return result.stdout


def test_processes_and_shards_give_equal_bytes(files: Path) -> None:
    """One process, a pool, and three shards that are merged."""
    del files
    options = ("--nodes", "nodes.csv", *OPTIONS, "-o", "json")

    alone = simulate(*options, "-j", "1")
    for index in range(3):
        text = simulate(*options, "--shard", f"{index}/3", "-j", "1")
        Path(f"{index}.json").write_text(text)
    parts = [each for index in (2, 0, 1) for each in ("--merge", f"{index}.json")]

    assert simulate(*options, "-j", "2") == alone
    assert simulate(*options, *parts) == alone
    document = json.loads(alone)
    assert [(run["policy"], run["seed"]) for run in document["runs"]] == [
        *(("fgd", seed) for seed in (42, 43, 44)),
        *(("random", seed) for seed in (42, 43, 44)),
    ]
    assert all(0 < run["allocationRatio"] <= 1 for run in document["runs"])
    assert [each["runs"] for each in document["summary"]] == [3, 3]
    assert document["check"]["rows"] == 80


def test_a_missing_shard_is_named(files: Path) -> None:
    """The shards of a sweep are complete, or there is no result."""
    del files
    options = ("--nodes", "nodes.csv", *OPTIONS, "-o", "json")
    Path("0.json").write_text(simulate(*options, "--shard", "0/3", "-j", "1"))

    assert "2 of 6 runs" in simulate(*options, "--merge", "0.json", status=1)


def test_dask_gives_equal_bytes(files: Path) -> None:
    """A real scheduler with two worker processes."""
    distributed: Any = pytest.importorskip("distributed")
    del files
    options = ("--nodes", "nodes.csv", *OPTIONS, "-o", "json")

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, worker_dashboard_address=None
    ) as cluster:
        on_dask = simulate(*options, "--dask", cluster.scheduler_address)

    assert on_dask == simulate(*options, "-j", "1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--policy", "fdg"), "unknown policy 'fdg'; did you mean 'fgd'?"),
        (("--format", "opnb"), "unknown format; did you mean 'openb'?"),
        (("--ties", "fixd"), "unknown rule; did you mean 'fixed'?"),
        (("--seeds", "0"), "--seeds 0: must be from 1"),
        (("--inflate", "-1"), "--inflate -1.0: must be above 0"),
        (("--shard", "3/3", "-o", "json"), "--shard '3/3'"),
        (("--until", "soon"), "--until 'soon': not a duration"),
        (("--fleet", "p5.48xlarg:3"), "did you mean 'p5.48xlarge'?"),
        (("--dask", "tcp://127.0.0.1:1"), "no scheduler answers"),
    ],
)
def test_wrong_usage_names_the_remedy(files: Path, options: Sequence[str], message: str) -> None:
    """Each error names the option, and the nearest known name."""
    del files
    if "--dask" in options:
        pytest.importorskip("distributed")
    others: tuple[str, ...] = (
        () if options[0] in ("--format", "--inflate") else ("--format", "openb")
    )
    others += () if "--inflate" in options else ("--inflate", "1.1")

    assert message in simulate("--nodes", "nodes.csv", *others, *options, status=1)


def test_a_run_that_fails_is_a_result(files: Path) -> None:
    """The other runs of the sweep have their results."""
    del files
    Path("jobs.csv").write_text("arrival,duration,devices\n0,1000000,gpu:1\n")
    options = ("--nodes", "nodes.csv", "-o", "json", "--node-mtbf", "1s", "--node-repair", "1ms")

    result = CliRunner().invoke(app, ["simulate", "jobs.csv", *options])

    assert result.exit_code == 1
    [run] = json.loads(result.stdout)["runs"]
    assert "interrupted faster than they end" in run["error"]


def test_a_table_and_csv_show_the_same_runs(files: Path) -> None:
    """The table has one row for each policy; CSV has one for each run."""
    del files
    options = ("--nodes", "nodes.csv", *OPTIONS, "-j", "1")

    table = simulate(*options)
    rows = simulate(*options, "-o", "csv").splitlines()

    assert table.count("\nfgd  ") == 1
    assert "fixed" in table
    assert len(rows) == 7
    assert rows[0].startswith("policy,fleet,seed,ties,pods")


def test_an_unknown_column_is_reported_with_its_line(files: Path) -> None:
    """The nearest known name helps."""
    del files
    Path("bad.csv").write_text(PODS.replace("gpu_milli", "gpu_mili") + "\n")

    error = simulate("--nodes", "nodes.csv", *OPTIONS, trace="bad.csv", status=1)

    assert error == "bad.csv:1: unknown column 'gpu_mili'; did you mean 'gpu_milli'?"
