"""
What brings a cluster from what it is to what it should be.

`<kind>/<reason>.py`: each has a pure `plan` that says what to write, and a thin loop around it.
No controller deletes anything on partial knowledge: it acts when every cache it reads is whole.
"""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.controllers.engines import ENGINES, Engine, compute_domains, publisher, run
    from dryrack.controllers.pods.drivers import Drivers
    from dryrack.controllers.pods.logs import log_of
    from dryrack.controllers.pods.virtual import is_played, is_virtual
    from dryrack.controllers.writes import Create, Delete, EngineContext, Write
else:
    __getattr__ = exports(
        __name__,
        {
            "engines": "ENGINES Engine compute_domains publisher run",
            "pods.drivers": "Drivers",
            "pods.logs": "log_of",
            "pods.virtual": "is_played is_virtual",
            "writes": "Create Delete EngineContext Write",
        },
    )

__all__ = [
    "ENGINES",
    "Create",
    "Delete",
    "Drivers",
    "Engine",
    "EngineContext",
    "Write",
    "compute_domains",
    "is_played",
    "is_virtual",
    "log_of",
    "publisher",
    "run",
]
