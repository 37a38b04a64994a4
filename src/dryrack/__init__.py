"""
Kubernetes Dynamic Resource Allocation without the hardware.

    import dryrack

    objects = dryrack.load("nodes.yaml", "training.yaml")
    answer = dryrack.allocate(objects)

The names are `load`, `allocate`, `explain`, `lint`, `embedded`, `connect`, `testing` and `errors`.
Each is imported when it is first used, so that a command starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dryrack.base.version import __version__

if TYPE_CHECKING:
    from dryrack import errors, testing
    from dryrack.cluster.embedded import embedded
    from dryrack.library import allocate, connect, explain, lint, load

__all__ = [
    "__version__",
    "allocate",
    "connect",
    "embedded",
    "errors",
    "explain",
    "lint",
    "load",
    "testing",
]

_MODULES = {"embedded": "dryrack.cluster.embedded", "errors": "", "testing": ""}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'dryrack' has no attribute {name!r}")
    module = _MODULES.get(name, "dryrack.library")
    return getattr(import_module(module), name) if module else import_module(f"dryrack.{name}")
