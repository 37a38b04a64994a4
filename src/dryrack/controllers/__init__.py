"""
Controllers: they bring the state of a cluster to the desired one.

Each has a pure `plan` that returns what to write, and a `Reconciler` that calls it. No controller
deletes anything on partial knowledge: it decides when every cache that it reads is complete.
"""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.controllers.containers.sandboxes import Sandboxes
    from dryrack.controllers.engines import (
        ENGINES,
        Engine,
        compute_domains,
        provisioner,
        publisher,
        run,
    )
    from dryrack.controllers.pods.drivers import DriverProcesses, Drivers
    from dryrack.controllers.pods.logs import log_of
    from dryrack.controllers.pods.virtual import RUN_BY, is_played, is_virtual
    from dryrack.controllers.writes import Create, Delete, EngineContext, Write
else:
    __getattr__ = exports(
        __name__,
        {
            "containers.sandboxes": "Sandboxes",
            "engines": "ENGINES Engine compute_domains provisioner publisher run",
            "pods.drivers": "DriverProcesses Drivers",
            "pods.logs": "log_of",
            "pods.virtual": "RUN_BY is_played is_virtual",
            "writes": "Create Delete EngineContext Write",
        },
    )

__all__ = [
    "ENGINES",
    "RUN_BY",
    "Create",
    "Delete",
    "DriverProcesses",
    "Drivers",
    "Engine",
    "EngineContext",
    "Sandboxes",
    "Write",
    "compute_domains",
    "is_played",
    "is_virtual",
    "log_of",
    "provisioner",
    "publisher",
    "run",
]
