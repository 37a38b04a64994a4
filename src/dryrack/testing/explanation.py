"""Explain why a pod or a gang has its node, or has none, as `dryrack explain` does."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError

if TYPE_CHECKING:
    from dryrack.placement import World


def explain(
    world: World, kind: str, name: str, *, scheduler_config: str, release: str, now: float
) -> str:
    """Return the output of the command, without colors."""
    # Only a test that fails, or asks for reasons, waits for the code that finds them.
    from dryrack.cli.allocate import Settings
    from dryrack.cli.explain import Subject
    from dryrack.cli.output import NamedFormat
    from dryrack.cli.views.explaining import Case

    settings = Settings.of(release, scheduler_config=scheduler_config)
    subject = Subject.of(kind, name, "default")
    words = io.StringIO()
    try:
        with redirect_stdout(words), redirect_stderr(words):
            settings = replace(settings, assumes_nodes=False)
            Case(world, subject, settings, NamedFormat.TABLE, now=now).run()
    except DryrackError as error:
        return str(error)
    return words.getvalue().rstrip()
