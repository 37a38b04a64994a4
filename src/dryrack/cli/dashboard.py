"""`dryrack dashboard`: serve the dashboard of a cluster until the command stops."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dryrack.cli.files import UsageError
from dryrack.cli.output import print_line, say

if TYPE_CHECKING:
    from dryrack.client.kubeconfig import Connection
    from dryrack.cluster.process import Address
    from dryrack.dashboard import Live

AGENT = "dryrack-dashboard"
Kubeconfig = Annotated[
    str,
    typer.Option(
        metavar="FILE", help="Kubeconfig file. Default: as kubectl, or the Pod's ServiceAccount."
    ),
]
Context = Annotated[
    str, typer.Option(help="Context in the kubeconfig. Default: the current context.")
]
Port = Annotated[int, typer.Option(help="Port to listen on. 0 selects a free port.")]
Host = Annotated[str, typer.Option(help="IP address to listen on.")]
Expose = Annotated[
    bool, typer.Option("--expose", help="Allow a --host that other machines can reach.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="Additional host name that requests through a proxy may use. Repeatable.",
    ),
]
Scenario = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="Run a scenario in virtual time and show it instead of a cluster.",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers of --scenario.")]
PrintRights = Annotated[
    bool, typer.Option("--print-rbac", help="Print the RBAC manifest and exit.")
]


def dashboard(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    port: Port = 0,
    host: Host = "127.0.0.1",
    expose: Expose = False,
    allow_host: AllowHost = None,
    scenario: Scenario = "",
    seed: Seed = 0,
    print_rbac: PrintRights = False,
) -> None:
    """
    Show the devices, claims, gangs and pending Pods of a cluster in the browser.

    By default, the dashboard listens only on this machine. It never writes to the cluster.
    Anyone who has the URL that the command prints can view the cluster: it contains a token.
    """
    if print_rbac:
        from dryrack.cluster.rights import dashboard as rights

        sys.stdout.write(rights())
        return
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port}: must be from 1 to 65535, or 0 for a free port")
    if scenario and (kubeconfig or context):
        fix = "leave out --kubeconfig and --context"
        raise UsageError(f"--scenario cannot show a cluster; {fix}")
    if seed and not scenario:
        raise UsageError("--seed needs --scenario; add --scenario, or leave out --seed")
    import asyncio

    from dryrack.cli.service import listening_address
    from dryrack.cli.views.sources import Source
    from dryrack.cluster.process import loop_factory

    risk = "anyone who has the URL can view the cluster, and the connection is not encrypted"
    address = listening_address(host, port, exposes=expose, risk=risk)
    page = _Page(address, (f"[{host}]" if ":" in host else host, *(allow_host or ())))
    if scenario:
        work = page.serve(_recorded(scenario, seed))
    else:
        work = page.serve_cluster(Source(kubeconfig=kubeconfig, context=context).connection())
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(work)


def _recorded(name: str, seed: int) -> Live:
    """Run a scenario, print its result and return its recorded states."""
    from dryrack.cli.scenarios.running import load, quiet
    from dryrack.cli.scenarios.showing import print_verdict
    from dryrack.dashboard import recorded
    from dryrack.scenario import EmbeddedRun

    began = time.monotonic()
    with quiet():
        outcome, live = recorded(load(name), EmbeddedRun(seed=seed))
    print_verdict(outcome, time.monotonic() - began)
    return live


@dataclass(frozen=True, slots=True)
class _Page:
    """The address of the dashboard, and the host names that requests may use."""

    address: Address
    hosts: tuple[str, ...]

    async def serve_cluster(self, connection: Connection) -> None:
        from dryrack.client.client import Client
        from dryrack.client.https import connected
        from dryrack.cluster import SystemChance, SystemClock
        from dryrack.dashboard import Live, check

        async with connected(connection) as transport:
            client = Client(transport, agent=AGENT)
            await check(client)
            await self.serve(Live(client, clock=SystemClock(), chance=SystemChance()))

    async def serve(self, live: Live) -> None:
        """Serve the dashboard until a signal stops the process."""
        from dryrack.cluster import stopping_by_signal
        from dryrack.cluster.process import listen
        from dryrack.dashboard import Access, address_of, new_token, serving

        token = new_token()
        with closing(listen(self.address)) as listening:
            async with serving(live, listening, Access(token, self.hosts)):
                print_line(f"dashboard: {address_of(listening, token)}")
                sys.stdout.flush()
                say("press Ctrl-C to stop")
                await stopping_by_signal().wait()
