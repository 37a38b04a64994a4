"""
Load scheduler plugins of other packages, by entry point.

A package that has

    [project.entry-points."dryrack.scheduler_plugins"]
    MyPlugin = "my_package:PLUGIN"

offers a `placement.Plugin` to every scheduler that runs in the same environment. It has no effect
until a KubeSchedulerConfiguration enables it.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.placement import IN_TREE, Plugin

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.metadata import EntryPoint

PLUGIN_GROUP = "dryrack.scheduler_plugins"


def installed_plugins(entries: Iterable[EntryPoint] | None = None) -> Mapping[str, Plugin]:
    """Return all plugins by name: those of dryrack and those of other packages."""
    found = dict(IN_TREE)
    for entry in entry_points(group=PLUGIN_GROUP) if entries is None else entries:
        try:
            plugin = entry.load()
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            raise _error(entry, why, "fix the package, or uninstall it") from error
        if not isinstance(plugin, Plugin):
            kind = type(plugin).__name__
            raise _error(
                entry,
                f"{entry.value} is of type {kind}",
                "use an instance of dryrack.placement.Plugin",
            )
        if plugin.name in found:
            raise _error(entry, f"another plugin has the name {plugin.name}", "rename one of them")
        found[plugin.name] = plugin
    return found


def _error(entry: EntryPoint, what: str, remedy: str) -> DryrackError:
    package = f" of package {entry.dist.name}" if entry.dist is not None else ""
    return DryrackError(f"plugin {entry.name}{package}: {what}; {remedy}")
