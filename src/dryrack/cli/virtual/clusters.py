"""Stop, list, and connect to virtual clusters: `dryrack down`, `status`, `kubeconfig`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, print_data, print_table, say
from dryrack.cluster import describe_failure, write_private
from dryrack.cluster import kubeconfig as kubeconfigs
from dryrack.cluster.process import ClusterState, ClusterStateError, all_states, state_of

if TYPE_CHECKING:
    from dryrack.cli.virtual.options import DownOptions, KubeconfigOptions, StatusOptions
    from dryrack.cluster.process import Running
    from dryrack.kinds.raw import Raw


class NotUpError(DryrackError):
    """The cluster does not exist, or does not run."""


@dataclass(frozen=True, slots=True)
class Row:
    """One cluster in the output of `status`."""

    name: str
    state: str
    """up, down, or degraded: a component has failed and does not work at the moment."""
    server: str
    pid: int | None
    data_directory: str
    failures: tuple[Raw, ...] = ()
    """The components that have failed, as the cluster reports them."""

    def as_data(self) -> Raw:
        return {
            "name": self.name,
            "state": self.state,
            "server": self.server,
            "pid": self.pid,
            "dataDirectory": self.data_directory,
            "failures": list(self.failures),
        }

    def cells(self) -> tuple[str, ...]:
        pid = str(self.pid) if self.pid is not None else "-"
        return (self.name, self.state, self.server or "-", pid, self.data_directory or "-")


def down(options: DownOptions) -> None:
    """Stop clusters and delete their state, except the data directory."""
    for name in [each.name for each in all_states()] if options.all_ else [options.name]:
        state = _state(name)
        running = state.running()
        if running is None and not state.directory.exists():
            raise NotUpError(
                f"cluster {name} does not exist; list the clusters with: dryrack status"
            )
        if running is not None:
            running.process.stop()
            _unmerge(running, name)
        state.forget()
        data = running.data_directory if running else ""
        say(f"Stopped cluster {name}{f'; its data is still in {data}' if data else ''}.")


def _unmerge(running: Running, name: str) -> None:
    """Remove a cluster that was killed from the kubeconfig of the user."""
    from pathlib import Path

    path = Path(running.merged_into)
    if running.merged_into and path.exists():
        theirs = kubeconfigs.read(path)
        rest = kubeconfigs.without(theirs, name)
        if rest != theirs:
            write_private(path, kubeconfigs.text(rest).encode())


def status(options: StatusOptions) -> bool:
    """Show one cluster or all; return whether there is at least one and all of them are up."""
    states = all_states() if options.name is None else (_state(options.name),)
    rows = [_row(state) for state in states]
    if options.output is Format.TABLE:
        _print(rows)
    else:
        print_data([row.as_data() for row in rows], options.output)
    return bool(rows) and all(row.state == "up" for row in rows)


def _print(rows: list[Row]) -> None:
    if not rows:
        say("no clusters; start one with: dryrack up --detach --merge --nodes 3")
        return
    columns = ("NAME", "STATE", "SERVER", "PROCESS", "DATA")
    print_table(columns, [row.cells() for row in rows])
    for row in rows:
        log = state_of(row.name).log
        # A cluster that was started without --detach logs to its terminal.
        where = f"see {log}" if log.exists() else "see the terminal in which dryrack up runs"
        for failure in row.failures:
            say(f"cluster {row.name}: {describe_failure(failure)}; {where}")
        if row.state == "down" and log.exists():
            say(f"cluster {row.name} stopped with an error; see {log}")


def _row(state: ClusterState) -> Row:
    running = state.running()
    if running is None:
        return Row(state.name, "down", "", None, "")
    failures = _failures(state)
    is_degraded = any("restartsAt" in each or "object" in each for each in failures)
    return Row(
        state.name,
        "degraded" if is_degraded else "up",
        running.server,
        running.process.pid,
        running.data_directory,
        failures,
    )


def _failures(state: ClusterState) -> tuple[Raw, ...]:
    """Return what the cluster reports about its components."""
    from dryrack.cli.views.sources import on_cluster
    from dryrack.client.endpoints import CONFIG_MAPS
    from dryrack.client.errors import ApiError, NotFoundError
    from dryrack.cluster import COMPONENTS, component_failures, connection_of

    connection = connection_of({}, kubeconfig=str(state.kubeconfig))
    namespace, name = COMPONENTS
    try:
        return component_failures(
            on_cluster(connection, lambda client: client.get(CONFIG_MAPS, name, namespace))
        )
    except NotFoundError:
        return ()
    except (ApiError, DryrackError) as error:
        return ({"component": "API server", "object": "requests", "error": str(error)},)


def kubeconfig(options: KubeconfigOptions) -> None:
    """Print the kubeconfig of a running cluster, or the path of that file."""
    state, _ = find_running(options.name)
    sys.stdout.write(f"{state.kubeconfig}\n" if options.path else state.kubeconfig.read_text())


def find_running(name: str) -> tuple[ClusterState, Running]:
    """Return a cluster that runs, and its record."""
    state = _state(name)
    running = state.running()
    if running is None:
        why = f"see why in {state.log}; " if state.log.exists() else ""
        raise NotUpError(
            f"cluster {name} is not running; {why}start it with: dryrack up --name {name}"
        )
    return state, running


def _state(name: str) -> ClusterState:
    try:
        return state_of(name)
    except ClusterStateError as error:
        raise UsageError(str(error)) from None
