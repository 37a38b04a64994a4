"""
A cluster for tests: its fixtures, its clock, and expectations.

pytest finds the fixtures by itself (see `plugin`); their types are here, for type checkers and for
tests of other frameworks. Everything is loaded when it is first used, because every start of pytest
loads this module.
"""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.testing.async_cluster import AsyncCluster
    from dryrack.testing.driver import (
        DRIVER_REQUIREMENTS,
        Driver,
        DriverCallError,
        Drivers,
        RequirementError,
    )
    from dryrack.testing.engines import Setup
    from dryrack.testing.expectation import ExpectationError, Scheduled, ScheduledPod
    from dryrack.testing.fixture_types import Apply, ExpectPending, ExpectScheduled, Fleet
    from dryrack.testing.sync_cluster import Cluster, ClusterClock
    from dryrack.testing.time_and_chance import (
        ControlPlaneOptions,
        PlaneOptions,
        SeededChance,
        VirtualClock,
        run_virtual,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "async_cluster": "AsyncCluster",
            "driver": "DRIVER_REQUIREMENTS Driver DriverCallError Drivers RequirementError",
            "expectation": "ExpectationError Scheduled ScheduledPod",
            "fixture_types": "Apply ExpectPending ExpectScheduled Fleet",
            "engines": "Setup",
            "sync_cluster": "Cluster ClusterClock",
            "time_and_chance": (
                "ControlPlaneOptions PlaneOptions SeededChance VirtualClock run_virtual"
            ),
        },
    )

__all__ = [
    "DRIVER_REQUIREMENTS",
    "Apply",
    "AsyncCluster",
    "Cluster",
    "ClusterClock",
    "ControlPlaneOptions",
    "Driver",
    "DriverCallError",
    "Drivers",
    "ExpectPending",
    "ExpectScheduled",
    "ExpectationError",
    "Fleet",
    "PlaneOptions",
    "RequirementError",
    "Scheduled",
    "ScheduledPod",
    "SeededChance",
    "Setup",
    "VirtualClock",
    "run_virtual",
]
