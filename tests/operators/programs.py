"""Operators of other projects: their modules, charts, and what is checked with each."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.golang import GoBuildError, build, go_command

WORKLOADS = Path(__file__).parent / "workloads"


@dataclass(frozen=True, slots=True)
class Suite:
    """Tests of the operator's own project, against the API server alone."""

    package: str
    failing: tuple[str, ...] = ()
    """The tests that cannot pass in this suite on any API server, by the start of their names."""
    reason: str = ""
    """Why they cannot pass."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A program from its Go module, installed by its chart, run by `dryrack run`."""

    name: str
    module: str
    version: str
    package: str
    chart: str
    deployment: str
    """Namespace and name."""
    workload: str
    """The file with objects to create after the program is ready."""
    outcome: str
    """What happens to them, for the documentation."""
    waits: tuple[str, ...]
    """The arguments of `kubectl wait` that show it."""
    settings: str = ""
    """YAML to add to the program's settings in the chart."""
    suites: tuple[Suite, ...] = ()

    @property
    def source(self) -> Path:
        """The folder of the module; Go downloads it the first time."""
        go = go_command()
        if go is None:
            raise GoBuildError("go is not on the PATH; install Go 1.26 or newer")
        command = [go, "mod", "download", "-json", f"{self.module}@v{self.version}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise GoBuildError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return Path(json.loads(done.stdout)["Dir"])

    @property
    def program(self) -> Path:
        # `go build` names a program after its package, and the one of the root after the module.
        name = self.module if self.package == "." else self.package
        return build(self.source, (self.package,)).path(Path(name).name)

    def suite_program(self, suite: Suite) -> Path:
        name = f"{Path(suite.package).name}.test"
        return build(self.source, (suite.package,), verb=("test", "-c")).path(name)


OPERATORS = (
    Operator(
        name="JobSet",
        module="sigs.k8s.io/jobset",
        version="0.12.0",
        package=".",
        chart="charts/jobset",
        deployment="jobset-system/jobset-controller",
        workload="jobset.yaml",
        outcome="A JobSet whose Pods claim two H100s each completes",
        waits=("jobset/train --for=condition=Completed",),
        suites=(
            Suite(
                "./test/integration/controller",
                ("rejects updates to parallelism",),
                "the other test expects a webhook to refuse an update, and its suite runs none",
            ),
            Suite("./test/integration/webhook"),
        ),
    ),
    Operator(
        name="LeaderWorkerSet",
        module="sigs.k8s.io/lws",
        version="0.9.0",
        package="./cmd",
        chart="charts/lws",
        deployment="lws-system/lws-controller-manager",
        workload="leaderworkerset.yaml",
        outcome="Two groups whose Pods claim eight H100s each become available",
        waits=("leaderworkerset/serve --for=condition=Available",),
    ),
    Operator(
        name="Kueue",
        module="sigs.k8s.io/kueue",
        version="0.19.2",
        package="./cmd/kueue",
        chart="charts/kueue",
        deployment="kueue-system/kueue-controller-manager",
        workload="kueue.yaml",
        outcome="Two Jobs that claim eight H100s each run one after the other, because "
        "`deviceClassMappings` counts the devices against a quota of eight",
        waits=(
            "job/first --for=jsonpath={.status.active}=1",
            "job/second --for=jsonpath={.spec.suspend}=true",
            "job/first --for=condition=Complete",
            "job/second --for=condition=Complete",
        ),
        settings="resources:\n"
        "  deviceClassMappings:\n"
        "  - {name: h100s, deviceClassNames: [gpu.nvidia.com]}\n",
    ),
)
