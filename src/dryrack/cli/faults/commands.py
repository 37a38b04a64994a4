"""
`dryrack fault`: what fails when it is told to, on a cluster.

Words are those of scenarios, read by the same code and brought about by it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dryrack.cli.durations import seconds_of
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, print_data, print_table, say, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dryrack.cli.faults.targets import Changes, Cluster
    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw

app = typer.Typer(
    help="Let devices, nodes and the control plane fail, for a while or until told otherwise.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Kubeconfig = Annotated[
    str, typer.Option(metavar="FILE", help="Which cluster; else as kubectl, else this pod's.")
]
Context = Annotated[str, typer.Option(help="Which context of the kubeconfig.")]
Output = Annotated[Format, typer.Option("-o", "--output", help="How to print the faults.")]
For = Annotated[
    str, typer.Option("--for", metavar="30s", help="How long; else until it is told otherwise.")
]


@app.command()
def device(
    target: Annotated[
        str, typer.Argument(metavar="NODE/DEVICE", help="Which; patterns as of a shell will do.")
    ],
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FAULT [share=0.1]",
            help="unhealthy[=MESSAGE], unknown, lost, taint=KEY[=VALUE]:EFFECT, or ok; "
            "with a share, to so many of those that match.",
        ),
    ],
    for_: For = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    output: Output = Format.TABLE,
) -> None:
    """
    Let devices fail, or be well again.

    Their ResourceSlices and the pods that have them show it, on virtual nodes and on nodes with
    the plugin. What was wrong with a device before is forgotten.
    """
    from dryrack.cli.faults.targets import OK, healed_devices

    where, fault = (kubeconfig, context), " ".join(words)
    if fault == OK:
        _print(_write(lambda cluster: healed_devices(cluster, target), where), output)
    else:
        _print(_fail(f"device {target} {fault}", for_, where, shows=target), output)


@app.command()
def node(
    name: Annotated[
        str, typer.Argument(metavar="NODE", help="Which; patterns as of a shell will do.")
    ],
    fault: Annotated[
        str,
        typer.Argument(
            metavar="FAULT",
            help="prepare=fail[=MESSAGE], prepare=slow=5s, prepare=hang, driver=gone, "
            "ready=false, reboot; prepare=ok and so on, or ok for all.",
        ),
    ],
    for_: For = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    output: Output = Format.TABLE,
) -> None:
    """
    Let nodes fail, or be well again.

    prepare: what comes of claims that are to be prepared. driver=gone: slices stay as they are.
    ready=false: a virtual node is not Ready. reboot, once: what a virtual node has prepared is
    forgotten, and its containers start again.
    """
    from dryrack.cli.faults.targets import NODE_OK, healed_nodes

    where = (kubeconfig, context)
    if fault in NODE_OK:
        _print(_write(lambda cluster: healed_nodes(cluster, name, fault), where), output)
        return
    nodes = _fail(f"node {name} {fault}", for_, where, shows=name)
    if fault == "reboot":
        say(f"node {name}: {fault}")
    else:
        _print(nodes, output)


@app.command()
def pool(
    target: Annotated[
        str, typer.Argument(metavar="NODE[/DRIVER]", help="Whose; patterns as of a shell will do.")
    ],
    fault: Annotated[str, typer.Argument(metavar="FAULT", help="half.")],
    kubeconfig: Kubeconfig = "",
    context: Context = "",
) -> None:
    """
    Let pools of a node begin a generation whose other slices never come, once.

    Nobody gets a device of such a pool until its driver publishes it anew.
    """
    _fail(f"pool {target} {fault}", "", (kubeconfig, context))
    say(f"pool {target}: {fault}")


@app.command()
def claim(
    target: Annotated[
        str, typer.Argument(metavar="NAMESPACE/NAME", help="The claim that is to be made.")
    ],
    fault: Annotated[str, typer.Argument(metavar="FAULT", help="leaked.")],
    kubeconfig: Kubeconfig = "",
    context: Context = "",
) -> None:
    """
    Make a claim that has a device for a pod that there is not, once.

    Controllers that do their work take the device from it; the claim stays until it is deleted.
    """
    _fail(f"claim {target} {fault}", "", (kubeconfig, context))
    say(f"claim {target}: {fault}")


@app.command()
def api(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FAULT...",
            help="conflicts=0.1, too-many=0.1, errors=0.1, lost-answers=0.1, latency=20ms, "
            "watch-latency=2s, engine=NAME; or ok.",
        ),
    ],
    for_: For = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
) -> None:
    """
    Let requests of the engines of a dryrack control plane fail: a share of them, or by a delay.

    Of other clients none fails. What was said of the same engine before is forgotten.
    """
    _tell_plane("api", words, for_, (kubeconfig, context))


@app.command()
def engine(
    name: Annotated[
        str, typer.Argument(metavar="ENGINE", help="scheduler, controllers or plugin.")
    ],
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FAULT...",
            help="crash, crash=before or crash=after with write=N; or ok, to start it again.",
        ),
    ],
    for_: For = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
) -> None:
    """
    Let an engine of a dryrack control plane die without any clean-up.

    It starts again after a second, or when --for is over, and has forgotten everything.
    """
    _tell_plane("engine", [name, *words], for_, (kubeconfig, context))


@app.command()
def watches(
    end: Annotated[
        str, typer.Argument(metavar="[END]", help="broken, or expired: all is listed again.")
    ] = "broken",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
) -> None:
    """End all watches of the engines of a dryrack control plane, once."""
    _tell_plane("watches", [end], "", (kubeconfig, context))


@app.command("list")
def list_(
    kubeconfig: Kubeconfig = "", context: Context = "", output: Output = Format.TABLE
) -> None:
    """List all faults of nodes, of devices and of the control plane, and when they end."""
    from dryrack.cli.faults.plane_faults import entries
    from dryrack.client.endpoints import NODES

    plane: dict[str, str] = {}

    async def nodes(client: Client) -> Sequence[Raw]:
        plane.update(await entries(client))
        return (await client.list(NODES)).items

    _print(_on_cluster((kubeconfig, context), nodes), output, plane)


@app.command()
def clear(
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NODE|NODE/DEVICE]...", help="Which; all if none is named."),
    ] = None,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
) -> None:
    """End faults: all, also of the control plane; or those of nodes or of devices alone."""
    from dryrack.cli.faults.targets import cleared

    count = 0

    def changes(cluster: Cluster) -> Changes:
        nonlocal count
        found = cleared(cluster, targets or ())
        count = sum(map(len, found.values()))
        return found

    where = (kubeconfig, context)
    _write(changes, where)
    if not targets:
        from dryrack.cli.faults.plane_faults import clear_all

        count += len(_on_cluster(where, clear_all))
    say(f"{count} faults ended" if count != 1 else "1 fault ended")


def _tell_plane(kind: str, words: Sequence[str], length: str, where: tuple[str, str]) -> None:
    """Writes a fault of a plane, or ends it."""
    from dryrack.cli.faults.plane_faults import PlaneFault, tell

    fault = PlaneFault.of(kind, words, seconds_of("--for", length) if length else None, time.time())
    _on_cluster(where, lambda client: tell(client, fault))
    say(f"{fault.key}: {fault.value or 'ok'}")


def _fail(words: str, length: str, where: tuple[str, str], *, shows: str = "") -> Sequence[Raw]:
    """Brings a fault about; the nodes of a target, `NODE` or `NODE/DEVICE`, as they are then."""
    from dryrack.cli.faults.targets import Cluster, others_slices
    from dryrack.client.endpoints import NODES, SLICES
    from dryrack.cluster import SystemChance, SystemClock
    from dryrack.cluster.faults import (
        FaultInjector,
        FaultTargetError,
        FaultWordsError,
        injection_of,
    )

    seconds = seconds_of("--for", length) if length else None
    try:
        injection = injection_of(words, seconds)
    except FaultWordsError as error:
        raise UsageError(str(error)) from None
    node, _, device = shows.partition("/")

    async def work(client: Client) -> Sequence[Raw]:
        try:
            await FaultInjector(client, SystemClock(), SystemChance()).begin(injection)
        except FaultTargetError as error:
            raise UsageError(str(error)) from None
        if not node:
            return ()
        slices = (await client.list(SLICES)).items if device else ()
        nodes = Cluster((await client.list(NODES)).items).nodes_like(node)
        for driver in others_slices(Cluster(nodes, slices), device):
            say(f"driver {shown(driver)}: its slices are not dryrack's, and stay as they are")
        return nodes

    return _on_cluster(where, work)


def _write(changes: Callable[[Cluster], Changes], where: tuple[str, str]) -> Sequence[Raw]:
    """Writes annotations; the nodes that have other ones then."""
    from dryrack.cli.faults.targets import Cluster
    from dryrack.client.endpoints import NODES

    async def work(client: Client) -> Sequence[Raw]:
        cluster = Cluster((await client.list(NODES)).items)
        return [
            await client.patch(NODES, name, {"metadata": {"annotations": annotations}})
            for name, annotations in changes(cluster).items()
        ]

    return _on_cluster(where, work)


def _on_cluster(where: tuple[str, str], work: Callable[[Client], Any]) -> Sequence[Raw]:
    from dryrack.cli.views.sources import Source, on_cluster

    kubeconfig, context = where
    nodes: Sequence[Raw] = on_cluster(
        Source(kubeconfig=kubeconfig, context=context).connection(), work
    )
    return nodes


def _print(nodes: Sequence[Raw], output: Format, plane: Mapping[str, str] | None = None) -> None:
    from dryrack.cli.faults.plane_faults import cells
    from dryrack.cli.faults.targets import fault_rows

    now = time.time()
    rows, entries = fault_rows(nodes, now), sorted((plane or {}).items())
    if output is not Format.TABLE:
        documents = [row.document() for row in rows]
        print_data({"faults": documents, **({"plane": dict(entries)} if plane else {})}, output)
    elif rows or entries:
        lines = [*(row.cells(now) for row in rows), *(cells(value, now) for _, value in entries)]
        print_table(("NODE", "DEVICE", "FAULT", "ENDS"), lines)
    else:
        say("no faults")
