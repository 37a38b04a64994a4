"""A sweep as an indexed Job on a real cluster: a real kubelet runs the image of dryrack."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.chart.helm import CHART, Helm
from tests.cli.command import dryrack
from tests.realcluster.cluster import Parts
from tests.realcluster.controlplane import Options
from tests.simulation.made_up import random_nodes, random_pods

from dryrack.base.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from tests.realcluster.fixtures import StartModuleCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]
ARGS = ["pods.csv", "--format=openb", "--nodes=nodes.csv", "--inflate=1.1", "--seeds=4"]


def test_the_logs_of_the_pods_are_the_output_of_one_process(
    start_module_cluster: StartModuleCluster, tmp_path: Path
) -> None:
    """Each Pod of the Job prints its part; the merged logs are equal byte by byte."""
    archive = tmp_path / "dryrack.tar"
    saved = dryrack("image", "save", archive)
    assert saved.returncode == 0, saved.stderr
    cluster = start_module_cluster(Options(), Parts(node=True))
    assert cluster.node is not None, "it was asked for"
    cluster.node.ctr("images", "import", str(archive))

    def must(*words: str) -> str:
        done = cluster.plane.kubectl(*words)
        assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}{done.stdout}"
        return done.stdout

    random = Random(2)
    files = {"pods.csv": random_pods(random), "nodes.csv": random_nodes(random)}
    for name, rows in files.items():
        (tmp_path / name).write_text("\n".join(rows))
    must("create", "namespace", "sweep")
    sources = [f"--from-file={tmp_path / name}" for name in files]
    must("create", "configmap", "trace", "-n", "sweep", *sources)
    others = {part: {"enabled": False} for part in ("publisher", "scheduler", "dashboard")}
    simulation = {"enabled": True, "pods": 2, "configMap": "trace", "args": ARGS}
    image = {"registry": "localhost", "tag": __version__}
    values = tmp_path / "sweep.yaml"
    values.write_text(yaml.safe_dump({**others, "simulation": simulation, "image": image}))
    Helm(tmp_path, cluster.plane.kubeconfig)(
        "install", "dryrack", CHART, "-n", "sweep", "-f", values
    )
    job = "job/dryrack-simulation"
    must("wait", job, "-n", "sweep", "--for=condition=Complete", "--timeout=300s")
    merge = []
    for index in range(2):
        label = f"batch.kubernetes.io/job-completion-index={index}"
        (tmp_path / f"{index}.json").write_text(
            must("logs", "-n", "sweep", "-l", label, "--tail=-1")
        )
        merge += ["--merge", f"{index}.json"]
    whole = ["simulate", *ARGS, "-o", "json"]
    merged, alone = (dryrack(*whole, *more, cwd=tmp_path) for more in (merge, ["-j", "1"]))

    assert merged.returncode == alone.returncode == 0, merged.stderr
    assert merged.stdout == alone.stdout
