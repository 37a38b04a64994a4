"""Find the cluster that a command works on."""

from __future__ import annotations

import os
import shlex
from functools import cache
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cli.output import say, shown

if TYPE_CHECKING:
    from dryrack.client.kubeconfig import Connection


def connection_to(*, kubeconfig: str = "", context: str = "") -> Connection:
    """
    Return the cluster that the options select, or the one that kubectl would use.

    If neither exists and exactly one virtual cluster runs, return that one and print a note.
    """
    from dryrack.client.kubeconfig import NoContextError
    from dryrack.cluster import connection_of
    from dryrack.cluster.process import all_states

    try:
        return connection_of(os.environ, kubeconfig=kubeconfig, context=context)
    except NoContextError as error:
        running = [state for state in all_states() if state.running() is not None]
        if kubeconfig or context or not running:
            raise
        first = running[0].kubeconfig
        if len(running) > 1:
            names = ", ".join(state.name for state in running)
            raise DryrackError(
                f"{str(error).partition(';')[0]}; {len(running)} clusters are running ({names}): "
                f"choose one, for example --kubeconfig {shlex.quote(str(first))}"
            ) from None
    _note(running[0].name)
    return connection_of({}, kubeconfig=str(first))


@cache
def _note(name: str) -> None:
    """Print which cluster is used, once: a command may connect more than once."""
    say(shown(f'note: no kubeconfig found; using the running cluster "{name}"'))
