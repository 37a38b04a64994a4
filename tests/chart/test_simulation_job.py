"""The indexed Job of the chart: its Pods together give the output of one process."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.made_up import random_nodes, random_pods
from typer.testing import CliRunner

from dryrack.cli.main import app
from dryrack.cluster.chart import Release, render
from dryrack.kinds.documents import read

if TYPE_CHECKING:
    import pytest

ARGS = [
    *("pods.csv", "--format", "openb", "--nodes", "nodes.csv", "--inflate", "1.1"),
    *("--policy", "fgd,best-fit", "--seeds", "2"),
]


def output(args: list[str]) -> str:
    result = CliRunner().invoke(app, args)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_pods_of_the_job_give_the_output_of_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each Pod gets its index from Kubernetes; the merged logs are equal byte by byte."""
    random = Random(2)
    monkeypatch.chdir(tmp_path)
    Path("pods.csv").write_text(os.linesep.join(random_pods(random)))
    Path("nodes.csv").write_text(os.linesep.join(random_nodes(random)))
    values = {"simulation": {"enabled": True, "pods": 3, "configMap": "trace", "args": ARGS}}

    text = render(Release("dryrack", "dryrack-system"), values, "simulation")
    documents = read(text.encode(), "chart").documents
    [job] = [each.raw for each in documents if each.kind == "Job"]
    spec = job["spec"]
    [container] = spec["template"]["spec"]["containers"]
    assert (spec["completionMode"], spec["completions"]) == ("Indexed", 3)
    [variable] = container["env"]
    assert "job-completion-index" in variable["valueFrom"]["fieldRef"]["fieldPath"]
    merge = []
    for index in range(3):
        args = [each.replace(f"$({variable['name']})", str(index)) for each in container["args"]]
        Path(f"{index}.json").write_text(output(args))
        merge += ["--merge", f"{index}.json"]

    whole = ["simulate", *ARGS, "-o", "json"]
    assert output([*whole, *merge]) == output([*whole, "-j", "1"])
