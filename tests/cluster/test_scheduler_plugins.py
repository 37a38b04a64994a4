"""Plugins that other packages bring to the scheduler."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from dryrack.base.errors import DryrackError
from dryrack.cluster import installed_plugins
from dryrack.cluster.scheduler_plugins import PLUGIN_GROUP
from dryrack.placement import IN_TREE, NodeScorer, Plugin

ALPHABETICAL = Plugin(
    "Alphabetical", score=lambda pod, fleet, args: NodeScorer(lambda node: node.name == "a")
)
SAME_NAME = Plugin("NodeAffinity")
NO_PLUGIN = "a word"
MISSING = "No module named 'no'"


def entry(value: str) -> EntryPoint:
    return EntryPoint("Mine", value, PLUGIN_GROUP)


def test_a_plugin_of_another_package_is_there_beside_the_others() -> None:
    """By its name; those that come with dryrack stay."""
    found = installed_plugins([entry(f"{__name__}:ALPHABETICAL")])

    assert found == {**IN_TREE, "Alphabetical": ALPHABETICAL}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            f"{__name__}:NO_PLUGIN",
            (
                f"plugin Mine: {__name__}:NO_PLUGIN is of type str; "
                "use an instance of dryrack.placement.Plugin"
            ),
        ),
        (
            f"{__name__}:SAME_NAME",
            "plugin Mine: another plugin has the name NodeAffinity; rename one of them",
        ),
        (
            "no.such.module:PLUGIN",
            f"plugin Mine: ModuleNotFoundError: {MISSING}; fix the package, or uninstall it",
        ),
    ],
)
def test_an_entry_that_is_no_plugin_is_named(value: str, message: str) -> None:
    """With what is wrong, and what to do."""
    with pytest.raises(DryrackError) as refused:
        installed_plugins([entry(value)])

    assert str(refused.value) == message
