"""
Checks of a cluster and of this machine: what prevents devices from being published and allocated.

`observe_cluster` and `observe_machine` read; `examine` is a pure function of what they read. The
only requests that are not reads are dry runs and access reviews, which store nothing.
"""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.cluster.doctor.checks import CLUSTER_CHECKS, MACHINE_CHECKS, examine
    from dryrack.cluster.doctor.cluster_reader import observe_cluster
    from dryrack.cluster.doctor.machine_reader import MachineQuestion, observe_machine
    from dryrack.cluster.doctor.model import (
        ENGINES,
        ClusterFacts,
        Finding,
        MachineFacts,
        State,
        Subject,
        Unknown,
        Verdict,
        fail,
        skip,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "checks": "CLUSTER_CHECKS MACHINE_CHECKS examine",
            "model": (
                "ENGINES ClusterFacts Finding MachineFacts State Subject Unknown Verdict fail skip"
            ),
            "cluster_reader": "observe_cluster",
            "machine_reader": "MachineQuestion observe_machine",
        },
    )

__all__ = [
    "CLUSTER_CHECKS",
    "ENGINES",
    "MACHINE_CHECKS",
    "ClusterFacts",
    "Finding",
    "MachineFacts",
    "MachineQuestion",
    "State",
    "Subject",
    "Unknown",
    "Verdict",
    "examine",
    "fail",
    "observe_cluster",
    "observe_machine",
    "skip",
]
