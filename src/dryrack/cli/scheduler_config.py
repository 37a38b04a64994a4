"""Read a KubeSchedulerConfiguration: its profiles, by scheduler name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.files import UsageError, read_source
from dryrack.cli.output import say, shown
from dryrack.cluster import installed_plugins
from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.placement import profile_of, read_configuration
from dryrack.scheduler import NAMES, SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.placement import Configuration


def read_config(file: str) -> Configuration:
    """Read the file; print a note for each setting that has no effect."""
    source = read_source(file)
    reading = read_configuration(source.content, source.name, installed_plugins())
    for note in reading.notes:
        say(shown(f"note: {note}"))
    if reading.configuration is None:
        raise ContentError("\n".join(str(problem) for problem in reading.problems))
    return reading.configuration


def settings_of(
    configuration: Configuration, names: Sequence[str], *, release: Release, option: str = ""
) -> SchedulerSettings:
    """
    Return the settings of the file.

    A single profile without a name is used for all `names`. If the profiles have names, the
    `option` that sets other names is an error.
    """
    plugins = installed_plugins()
    profiles = configuration.profiles
    if not profiles[0].scheduler_name:
        by_name = {name: profile_of(profiles[0], name, plugins, release) for name in names}
    elif option:
        named = ", ".join(each.scheduler_name for each in profiles)
        problem = f"the profiles of the configuration have names already ({named})"
        raise UsageError(f"{option}: {problem}; leave out the option")
    else:
        by_name = {
            each.scheduler_name: profile_of(each, each.scheduler_name, plugins, release)
            for each in profiles
        }
    return SchedulerSettings(
        profiles=by_name, release=release, backoff_seconds=configuration.backoff_seconds
    )


def settings_of_plane(
    configuration: Configuration, release: Release = DEFAULT_RELEASE
) -> SchedulerSettings:
    """Return the settings for an embedded control plane: unnamed schedulers get the defaults."""
    settings = settings_of(configuration, NAMES, release=release)
    defaults = SchedulerSettings.of(release=release).profiles
    return replace(settings, profiles={**defaults, **settings.profiles})
