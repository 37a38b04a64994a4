"""
Profiles of a configuration: the enabled plugins in their order, with their weights.

As in kube-scheduler, `multiPoint` is merged with the defaults, and holds at every extension point
unless the point overrides it. A plugin that a point enables itself comes before those of
`multiPoint` if it is one of them, else after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.placement.configuration.model import PluginEntry, PluginSet
from dryrack.placement.configuration.reading import EVERY, MULTI_POINT
from dryrack.placement.framework import Profile
from dryrack.placement.plugins import SCHEDULER_PLUGINS, profile_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.placement.configuration.reading import ProfileConfig
    from dryrack.placement.framework import Plugin

_NOTHING = PluginSet()


def profile_of(
    config: ProfileConfig,
    name: str,
    available: Mapping[str, Plugin],
    release: Release = DEFAULT_RELEASE,
) -> Profile:
    """Return the profile for the scheduler of this name, with the available plugins."""
    everywhere = _merge(_defaults(name, release), config.plugins.get(MULTI_POINT, _NOTHING))
    filters = _resolve(config.plugins.get("filter", _NOTHING), everywhere)
    scores = _resolve(config.plugins.get("score", _NOTHING), everywhere)
    enabled = {entry.name for each in config.plugins.values() for entry in each.enabled}
    # A plugin of the scheduler is on at the point of its work, or by name at another point.
    scheduler_plugins = frozenset(
        name
        for name, point in SCHEDULER_PLUGINS.items()
        if name in enabled
        or any(
            entry.name == name
            for entry in _resolve(config.plugins.get(point, _NOTHING), everywhere)
        )
    )

    def plugins_of(point: str, function: str) -> tuple[Plugin, ...]:
        entries = _resolve(config.plugins.get(point, _NOTHING), everywhere)
        plugins = (available.get(entry.name) for entry in entries)
        return tuple(it for it in plugins if it is not None and getattr(it, function) is not None)

    return Profile(
        scheduler_name=name,
        reserving=plugins_of("reserve", "reserve"),
        permitting=plugins_of("permit", "permit"),
        pre_binding=plugins_of("preBind", "pre_bind"),
        post_binding=plugins_of("postBind", "post_bind"),
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
        scheduler_plugins=scheduler_plugins,
    )


def _defaults(name: str, release: Release) -> tuple[PluginEntry, ...]:
    """Return the default plugins of a scheduler of this name."""
    usual = profile_named(name, release)
    weights = {plugin.name: weight for plugin, weight in usual.scores}
    asked = dict.fromkeys((*(plugin.name for plugin in usual.filters), *weights))
    return (
        *(PluginEntry(name=each, weight=weights.get(each)) for each in asked),
        *(PluginEntry(name=each) for each in SCHEDULER_PLUGINS if each in usual.scheduler_plugins),
    )


def _merge(defaults: Sequence[PluginEntry], plugins: PluginSet) -> tuple[PluginEntry, ...]:
    """Return the defaults that are not disabled, with new weights, then the additional plugins."""
    enabled = {entry.name: entry for entry in plugins.enabled}
    merged = [
        enabled.get(entry.name, entry) for entry in defaults if not _is_disabled(entry, plugins)
    ]
    names = {entry.name for entry in merged}
    return (*merged, *(entry for entry in plugins.enabled if entry.name not in names))


def _resolve(plugins: PluginSet, everywhere: Sequence[PluginEntry]) -> tuple[PluginEntry, ...]:
    """Return the plugins of one extension point."""
    if any(entry.name == EVERY for entry in plugins.disabled):
        return plugins.enabled
    common = [entry for entry in everywhere if not _is_disabled(entry, plugins)]
    names = {entry.name for entry in common}
    own = {entry.name for entry in plugins.enabled}
    return (
        *(entry for entry in plugins.enabled if entry.name in names),
        *(entry for entry in common if entry.name not in own),
        *(entry for entry in plugins.enabled if entry.name not in names),
    )


def _is_disabled(entry: PluginEntry, plugins: PluginSet) -> bool:
    return any(each.name in (entry.name, EVERY) for each in plugins.disabled)
