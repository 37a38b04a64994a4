"""A plugin of another package, and the profile that enables it."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

from dryrack.cluster import installed_plugins
from dryrack.cluster.scheduler_plugins import PLUGIN_GROUP
from dryrack.placement import Plugin, profile_of, read_configuration

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {filter: {enabled: [{name: Mine}]}}
  pluginConfig: [{name: Mine, args: {anything: 1}}]
"""


def nothing(_: object, __: object, ___: object) -> None:
    """Has nothing to say about any pod."""


def test_a_plugin_of_another_package_is_asked_where_a_profile_enables_it() -> None:
    """It is there for profiles to name, with arguments that are its own affair."""
    module = ModuleType("somebodys")
    vars(module).update(mine=Plugin("Mine", filter=nothing))
    sys.modules["somebodys"] = module
    try:
        plugins = installed_plugins([EntryPoint("mine", "somebodys:mine", PLUGIN_GROUP)])
    finally:
        del sys.modules["somebodys"]
    reading = read_configuration(CONFIG, "scheduler.yaml", plugins)
    assert reading.configuration is not None
    profile = profile_of(reading.configuration.profiles[0], "dryrack", plugins)

    assert profile.filters[-1] is plugins["Mine"]
    assert profile.args_of(plugins["Mine"]) == {"anything": 1}
