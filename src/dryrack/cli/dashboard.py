"""`dryrack dashboard`: the page about a cluster, for as long as the command runs."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from dryrack.cli.files import UsageError
from dryrack.cli.output import print_line, say

if TYPE_CHECKING:
    from dryrack.client.kubeconfig import Connection

AGENT = "dryrack-dashboard"
Kubeconfig = Annotated[
    str, typer.Option(metavar="FILE", help="Which cluster; else as kubectl, else this pod's.")
]
Context = Annotated[str, typer.Option(help="Which context of the kubeconfig.")]
Port = Annotated[int, typer.Option(help="The port to listen at; 0 is any that is free.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help="A name by which a proxy on this machine may ask, beside localhost; repeatable.",
    ),
]
PrintRights = Annotated[
    bool, typer.Option("--print-rbac", help="Print the rights that an account needs; end.")
]


def dashboard(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    port: Port = 0,
    allow_host: AllowHost = None,
    print_rbac: PrintRights = False,
) -> None:
    """
    Show a cluster in a browser: devices, claims, gangs, and why something waits.

    It listens on this machine alone, reads, and writes nothing.
    The address that it prints is all that somebody needs to look: it has a token.
    """
    if print_rbac:
        from dryrack.cluster.rights import dashboard as rights

        sys.stdout.write(rights())
        return
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port}: from 1 to 65535, or 0 for any that is free")
    import asyncio

    from dryrack.cli.views.sources import Source
    from dryrack.cluster.process import loop_factory

    connection = Source(kubeconfig=kubeconfig, context=context).connection()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_served(connection, port, tuple(allow_host or ())))


async def _served(connection: Connection, port: int, hosts: tuple[str, ...]) -> None:
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import SystemChance, SystemClock, stopping_by_signal
    from dryrack.cluster.process import Address, listen
    from dryrack.dashboard import Access, Live, address_of, check, new_token, serving

    token = new_token()
    async with connected(connection) as transport:
        client = Client(transport, agent=AGENT)
        await check(client)
        live = Live(client, clock=SystemClock(), chance=SystemChance())
        with closing(listen(Address(port=port))) as listening:
            async with serving(live, listening, Access(token, hosts)):
                print_line(f"dashboard: {address_of(listening, token)}")
                sys.stdout.flush()
                say("end it with Ctrl-C")
                await stopping_by_signal().wait()
