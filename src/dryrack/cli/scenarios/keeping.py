"""
`--keep`: run a scenario on a virtual cluster that keeps running.

The cluster is another process, as after `dryrack up --detach`, so the scenario runs in real time
and kubectl shows its results.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.output import say
from dryrack.client.kubeconfig import load
from dryrack.cluster import SystemClock
from dryrack.cluster.process import state_of
from dryrack.scenario import ClusterRun, run_on_cluster

if TYPE_CHECKING:
    from dryrack.scenario import LoadedScenario, Observer, Outcome

CLUSTER = "scenario"
_START_SECONDS_MAX = 60.0
_COMMAND = (sys.executable, "-m", "dryrack")


def run_and_keep(loaded: LoadedScenario, observer: Observer) -> Outcome:
    """Start a virtual cluster, run a scenario there, and leave the cluster running."""
    _up(loaded)
    connection = load([state_of(CLUSTER).kubeconfig], SystemClock())
    outcome = run_on_cluster(
        loaded, ClusterRun(connection=connection, stays=True, observer=observer)
    )
    path = str(state_of(CLUSTER).kubeconfig)
    say(f"the cluster keeps running; try: export KUBECONFIG={shlex.quote(path)}")
    say("  kubectl get pods,resourceclaims -A -o wide")
    say(f"to stop it, run: dryrack down --name {CLUSTER}")
    return outcome


def _up(loaded: LoadedScenario) -> None:
    fleet = loaded.scenario.fleet
    by_type = fleet.catalogue or any(group.profile for group in fleet.nodes)
    devices = [word for each in fleet.devices for word in ("--devices", each)]
    words = ["up", "--detach", "--name", CLUSTER, *(["--catalogue"] if by_type else []), *devices]
    say(f"$ dryrack {' '.join(words)}")
    done = subprocess.run(
        [*_COMMAND, *words], capture_output=True, text=True, timeout=_START_SECONDS_MAX, check=False
    )
    if done.returncode != 0:
        raise ContentError(done.stderr.strip().removeprefix("dryrack: "))
