"""
Profiles of a configuration: which plugins are asked, in which order, and with which weights.

As kube-scheduler resolves them: what `multiPoint` says is merged with what is on by default, and
holds at every extension point unless the point says otherwise. A plugin that a point enables itself
comes before those of `multiPoint` if it is one of them, else after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.placement.configuration.model import PluginEntry, PluginSet
from dryrack.placement.configuration.reading import EVERY, MULTI_POINT
from dryrack.placement.framework import Profile
from dryrack.placement.plugins import SCHEDULER_PLUGINS, profile_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.placement.configuration.reading import ProfileConfig
    from dryrack.placement.framework import Plugin

_NOTHING = PluginSet()


def profile_of(config: ProfileConfig, name: str, available: Mapping[str, Plugin]) -> Profile:
    """What a profile comes to, for the scheduler of this name, with the plugins that there are."""
    everywhere = _merged(_defaults(name), config.plugins.get(MULTI_POINT, _NOTHING))
    filters = _expanded(config.plugins.get("filter", _NOTHING), everywhere)
    scores = _expanded(config.plugins.get("score", _NOTHING), everywhere)
    return Profile(
        scheduler_name=name,
        filters=tuple(
            plugin
            for entry in filters
            if (plugin := available.get(entry.name)) and plugin.filter is not None
        ),
        scores=tuple(
            (plugin, entry.weight or 1)
            for entry in scores
            if (plugin := available.get(entry.name)) and plugin.score is not None
        ),
        args=config.args,
        scheduler_plugins=_scheduler_plugins(config, everywhere),
    )


def _defaults(name: str) -> tuple[PluginEntry, ...]:
    """What is on for a scheduler of this name where nobody says otherwise."""
    usual = profile_named(name)
    weights = {plugin.name: weight for plugin, weight in usual.scores}
    asked = dict.fromkeys((*(plugin.name for plugin in usual.filters), *weights))
    return (
        *(PluginEntry(name=each, weight=weights.get(each)) for each in asked),
        *(PluginEntry(name=each) for each in SCHEDULER_PLUGINS if each in usual.scheduler_plugins),
    )


def _merged(defaults: Sequence[PluginEntry], said: PluginSet) -> tuple[PluginEntry, ...]:
    """The defaults without those that are off, each as it is said again; then what is added."""
    again = {entry.name: entry for entry in said.enabled}
    kept = [again.get(entry.name, entry) for entry in defaults if not _is_off(entry, said)]
    names = {entry.name for entry in kept}
    return (*kept, *(entry for entry in said.enabled if entry.name not in names))


def _expanded(said: PluginSet, everywhere: Sequence[PluginEntry]) -> tuple[PluginEntry, ...]:
    """What is asked at one point."""
    if any(entry.name == EVERY for entry in said.disabled):
        return said.enabled
    common = [entry for entry in everywhere if not _is_off(entry, said)]
    names = {entry.name for entry in common}
    own = {entry.name for entry in said.enabled}
    return (
        *(entry for entry in said.enabled if entry.name in names),
        *(entry for entry in common if entry.name not in own),
        *(entry for entry in said.enabled if entry.name not in names),
    )


def _is_off(entry: PluginEntry, said: PluginSet) -> bool:
    return any(each.name in (entry.name, EVERY) for each in said.disabled)


def _scheduler_plugins(config: ProfileConfig, everywhere: Sequence[PluginEntry]) -> frozenset[str]:
    """Those that are on at the point where the scheduler does their work, or by name at another."""
    named = {entry.name for said in config.plugins.values() for entry in said.enabled}
    return frozenset(
        name
        for name, point in SCHEDULER_PLUGINS.items()
        if name in named
        or any(
            entry.name == name
            for entry in _expanded(config.plugins.get(point, _NOTHING), everywhere)
        )
    )
