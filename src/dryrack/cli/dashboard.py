"""`dryrack dashboard`: serve the dashboard of a cluster until the command stops."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from dryrack.cli.files import UsageError, read_sources
from dryrack.cli.output import print_line, say

if TYPE_CHECKING:
    from dryrack.cli.dashboard_options import DashboardOptions
    from dryrack.client.kubeconfig import Connection
    from dryrack.cluster.process import Address
    from dryrack.dashboard import Live

AGENT = "dryrack-dashboard"
_TOKEN = re.compile("[-_0-9A-Za-z]{16,}")


def run(options: DashboardOptions) -> None:
    """Serve the dashboard of a cluster, a scenario or results until a signal stops the process."""
    if options.print_rbac:
        from dryrack.cluster.rights import dashboard as rights

        sys.stdout.write(rights())
        return
    host = options.host
    if not 0 <= options.port <= 65535:
        raise UsageError(f"--port {options.port}: must be from 1 to 65535, or 0 for a free port")
    token = _read_token(options.token_file) if options.token_file else ""
    if options.scenario and (options.kubeconfig or options.context or options.cluster):
        fix = "leave out --kubeconfig, --context and --name"
        raise UsageError(f"--scenario cannot show a cluster; {fix}")
    is_file = bool(options.plan or options.simulation)
    if is_file and (options.kubeconfig or options.context or options.cluster or options.scenario):
        fix = "leave out --kubeconfig, --context, --name and --scenario"
        raise UsageError(f"--plan and --simulation show results, not a cluster; {fix}")
    if options.catalogue_file and not options.plan:
        raise UsageError("--catalogue-file describes the nodes of --plan; add --plan FILE")
    if options.seed and not options.scenario:
        raise UsageError("--seed needs --scenario; add --scenario, or leave out --seed")
    from dryrack.cli.service import listening_address
    from dryrack.cli.views.sources import Source
    from dryrack.cluster.process import loop_factory

    risk = "anyone who has the URL can view the cluster, and the connection is not encrypted"
    address = listening_address(host, options.port, expose=options.expose, risk=risk)
    hosts = (f"[{host}]" if ":" in host else host, *options.allow_host)
    if options.scenario:
        work = _serve(_run_scenario(options.scenario, options.seed), address, hosts, token)
    elif is_file:
        live, results = _open_results(options)
        work = _serve(live, address, hosts, token, results)
    else:
        source = Source(
            kubeconfig=options.kubeconfig, context=options.context, cluster=options.cluster
        )
        work = _serve_cluster(source.connection(), address, hosts, token)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(work)


def _read_token(name: str) -> str:
    """Return the token in a file; raise `UsageError` if a URL cannot contain it."""
    content = read_sources([name])[0].content.decode(errors="replace").strip()
    if not _TOKEN.fullmatch(content):
        raise UsageError(
            f"--token-file {name}: the token must have at least 16 letters, digits, - and _; "
            "create one with: openssl rand -hex 24"
        )
    return content


def _run_scenario(name: str, seed: int) -> Live:
    """Run a scenario, print its result and return its recorded states."""
    from dryrack.cli.scenarios.running import load, quiet
    from dryrack.cli.scenarios.showing import print_verdict
    from dryrack.dashboard import run_recorded
    from dryrack.scenario import EmbeddedRun

    began = time.monotonic()
    with quiet():
        outcome, live = run_recorded(load(name), EmbeddedRun(seed=seed))
    print_verdict(outcome, time.monotonic() - began)
    return live


def _open_results(options: DashboardOptions) -> tuple[Live, dict[str, Any]]:
    """Return the state with the plan, and the results that the dashboard shows."""
    from dryrack.cli.hardware import load
    from dryrack.dashboard import live_of_results, plan_document, read_plan, read_runs

    sources = read_sources(options.simulation) if options.simulation else ()
    runs = {each.name: each.content for each in sources}
    results: dict[str, Any] = {"runs": read_runs(runs), "plan": None}
    plan = None
    if options.plan:
        [source] = read_sources([options.plan])
        plan = read_plan(source.content, source.name)
        results["plan"] = plan_document(plan)
    return live_of_results(plan, load(options.catalogue_file)), results


async def _serve_cluster(
    connection: Connection, address: Address, hosts: tuple[str, ...], token: str
) -> None:
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import SystemChance, SystemClock
    from dryrack.dashboard import Live, check

    async with connected(connection) as transport:
        client = Client(transport, agent=AGENT)
        await check(client)
        await _serve(
            Live(client, clock=SystemClock(), chance=SystemChance()), address, hosts, token
        )


async def _serve(
    live: Live,
    address: Address,
    hosts: tuple[str, ...],
    fixed_token: str = "",
    results: dict[str, Any] | None = None,
) -> None:
    """
    Serve the dashboard until a signal stops the process; requests may use these host names.

    Without a fixed token, the process generates one and prints it.
    """
    from dryrack.cluster import stopping_by_signal
    from dryrack.cluster.process import listen
    from dryrack.dashboard import Access, address_of, new_token, serve

    token = fixed_token or new_token()
    with closing(listen(address)) as listening:
        async with serve(live, listening, Access(token, hosts), results):
            url = address_of(listening, "TOKEN" if fixed_token else token)
            print_line(f"dashboard: {url}")
            sys.stdout.flush()
            say("press Ctrl-C to stop")
            await stopping_by_signal().wait()
