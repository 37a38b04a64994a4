"""`dryrack dashboard`: the page about a cluster, for as long as the command runs."""

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
    str, typer.Option(metavar="FILE", help="Which cluster; else as kubectl, else this pod's.")
]
Context = Annotated[str, typer.Option(help="Which context of the kubeconfig.")]
Port = Annotated[int, typer.Option(help="The port to listen at; 0 is any that is free.")]
Host = Annotated[str, typer.Option(help="The address to listen at.")]
Expose = Annotated[
    bool, typer.Option("--expose", help="Allow a --host that other machines can reach.")
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A name by which a proxy may ask, beside localhost and --host; repeatable.",
    ),
]
Scenario = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="Instead of a cluster: run a scenario in virtual time, and show all of it.",
    ),
]
Seed = Annotated[int, typer.Option(help="With --scenario: chance.")]
PrintRights = Annotated[
    bool, typer.Option("--print-rbac", help="Print the rights that an account needs; end.")
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
    Show a cluster in a browser: devices, claims, gangs, and why something waits.

    It listens on this machine alone, unless told otherwise, reads, and writes nothing.
    The address that it prints is all that somebody needs to look: it has a token.
    """
    if print_rbac:
        from dryrack.cluster.rights import dashboard as rights

        sys.stdout.write(rights())
        return
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port}: from 1 to 65535, or 0 for any that is free")
    if scenario and (kubeconfig or context):
        raise UsageError("--scenario: a cluster of its own; leave out --kubeconfig and --context")
    if seed and not scenario:
        raise UsageError("--seed: only with --scenario")
    import asyncio

    from dryrack.cli.service import listening_address
    from dryrack.cli.views.sources import Source
    from dryrack.cluster.process import loop_factory

    risk = "whoever learns the address with its token can look, and nothing is encrypted"
    address = listening_address(host, port, exposes=expose, risk=risk)
    page = _Page(address, (f"[{host}]" if ":" in host else host, *(allow_host or ())))
    if scenario:
        work = page.serve(_recorded(scenario, seed))
    else:
        work = page.serve_cluster(Source(kubeconfig=kubeconfig, context=context).connection())
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(work)


def _recorded(name: str, seed: int) -> Live:
    """What a scenario left behind; how it ended is told."""
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
    """Where it is served, and by which names beside this machine's."""

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
        """Until somebody interrupts it."""
        from dryrack.cluster import stopping_by_signal
        from dryrack.cluster.process import listen
        from dryrack.dashboard import Access, address_of, new_token, serving

        token = new_token()
        with closing(listen(self.address)) as listening:
            async with serving(live, listening, Access(token, self.hosts)):
                print_line(f"dashboard: {address_of(listening, token)}")
                sys.stdout.flush()
                say("end it with Ctrl-C")
                await stopping_by_signal().wait()
