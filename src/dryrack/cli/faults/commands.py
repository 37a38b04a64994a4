"""
`dryrack fault`: inject faults into a cluster.

The syntax and the code are those of the faults of scenarios.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dryrack.cli.command import (
    Context,
    Kubeconfig,
    Output,
    SelectedCluster,
    argument,
    option,
    seconds_of,
)
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, print_data, print_table, say, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dryrack.cli.faults.targets import Changes, Cluster
    from dryrack.client.client import Client
    from dryrack.kinds.raw import Raw

app = typer.Typer(
    help="Make devices, nodes and control plane components fail, and end these faults.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Kubeconfig, context, and name of the cluster.
_Where = tuple[str, str, str]

For = Annotated[
    str,
    option("--for", metavar="30s", help="Duration of the fault. Default: until you end it."),
]


@app.command()
def device(
    target: Annotated[
        str,
        argument(metavar="NODE/DEVICE", help="Devices to change. Accepts shell patterns."),
    ],
    words: Annotated[
        list[str],
        argument(
            metavar="FAULT [share=0.1]",
            help="unhealthy[=MESSAGE], unknown, lost, taint=KEY[=VALUE]:EFFECT, or ok to end all "
            "faults. share=0.1 affects only this share of the matching devices.",
        ),
    ],
    for_: For = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    cluster: SelectedCluster = "",
    output: Output = Format.TABLE,
) -> None:
    """
    Make devices fail, or end their faults.

    The ResourceSlices and the Pods of the devices show the fault, on virtual nodes and on nodes
    with dryrack plugin. On virtual nodes, DeviceTaintRules taint devices of other drivers. A new
    fault replaces the earlier faults of a device.
    """
    from dryrack.cli.faults.targets import OK, heal_devices

    where = (kubeconfig, context, cluster)
    fault = " ".join(words)
    if fault == OK:
        _print(_write(lambda cluster: heal_devices(cluster, target), where), output)
    else:
        _print(_fail(f"device {target} {fault}", for_, where, shows=target), output)


@app.command()
def node(
    name: Annotated[str, argument(metavar="NODE", help="Nodes to change. Accepts shell patterns.")],
    fault: Annotated[
        str,
        argument(
            metavar="FAULT",
            help="prepare=fail[=MESSAGE], prepare=slow=5s, prepare=hang, driver=gone, "
            "ready=false, reboot, or kubelet-restart. prepare=ok, driver=ok or ready=ok ends one "
            "fault; ok ends all.",
        ),
    ],
    for_: For = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    cluster: SelectedCluster = "",
    output: Output = Format.TABLE,
) -> None:
    """
    Make nodes fail, or end their faults.

    prepare: the result of preparing claims. driver=gone: the driver stops, its ResourceSlices
    stay. ready=false: a virtual node is not Ready. reboot, once: a virtual node loses its prepared
    claims and restarts its containers. kubelet-restart, once: driver programs register again.
    """
    from dryrack.cli.faults.targets import NODE_OK, heal_nodes

    where = (kubeconfig, context, cluster)
    if fault in NODE_OK:
        _print(_write(lambda cluster: heal_nodes(cluster, name, fault), where), output)
        return
    nodes = _fail(f"node {name} {fault}", for_, where, shows=name)
    if fault in ("reboot", "kubelet-restart"):
        say(f"node {name}: {fault}")
    else:
        _print(nodes, output)


@app.command()
def pool(
    target: Annotated[
        str,
        argument(
            metavar="NODE[/DRIVER]", help="Nodes and drivers of the pools. Accepts shell patterns."
        ),
    ],
    fault: Annotated[str, argument(metavar="FAULT", help="The only value is half.")],
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    cluster: SelectedCluster = "",
) -> None:
    """
    Make the resource pools of a node incomplete, once.

    Each pool starts a generation that lacks ResourceSlices. The scheduler allocates no device of
    the pool until the driver publishes the pool again.
    """
    _fail(
        f"pool {target} {fault}",
        "",
        (kubeconfig, context, cluster),
    )
    say(f"pool {target}: {fault}")


@app.command()
def claim(
    target: Annotated[str, argument(metavar="NAMESPACE/NAME", help="Name of the new claim.")],
    fault: Annotated[str, argument(metavar="FAULT", help="The only value is leaked.")],
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    cluster: SelectedCluster = "",
) -> None:
    """
    Create a leaked claim: allocated for a Pod that does not exist.

    Controllers that work correctly deallocate the claim. The claim stays until you delete it.
    """
    _fail(
        f"claim {target} {fault}",
        "",
        (kubeconfig, context, cluster),
    )
    say(f"claim {target}: {fault}")


@app.command()
def api(
    words: Annotated[
        list[str],
        argument(
            metavar="FAULT...",
            help="conflicts=0.1, too-many=0.1, errors=0.1, lost-answers=0.1, latency=20ms, "
            "watch-latency=2s, engine=NAME, or ok to end the faults.",
        ),
    ],
    for_: For = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    cluster: SelectedCluster = "",
) -> None:
    """
    Make API requests of control plane components fail or slow.

    Requests of all other clients succeed. A new fault replaces the earlier faults of a component.
    """
    _tell_plane("api", words, for_, (kubeconfig, context, cluster))


@app.command()
def engine(
    name: Annotated[
        str, argument(metavar="ENGINE", help="Component: scheduler, controllers or plugin.")
    ],
    words: Annotated[
        list[str],
        argument(
            metavar="FAULT...",
            help="crash, crash=before or crash=after with write=N, or ok to restart the component.",
        ),
    ],
    for_: For = "",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    cluster: SelectedCluster = "",
) -> None:
    """
    Crash a control plane component without clean-up.

    The component restarts after one second, or after the duration of --for, with empty memory.
    """
    _tell_plane(
        "engine",
        [name, *words],
        for_,
        (kubeconfig, context, cluster),
    )


@app.command()
def watches(
    end: Annotated[
        str,
        argument(
            metavar="[END]", help="broken, or expired, after which components list all objects."
        ),
    ] = "broken",
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    cluster: SelectedCluster = "",
) -> None:
    """Close all watches of the control plane components, once."""
    _tell_plane("watches", [end], "", (kubeconfig, context, cluster))


@app.command("list")
def list_(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    cluster: SelectedCluster = "",
    output: Output = Format.TABLE,
) -> None:
    """List the faults of nodes, devices and the control plane, with their ends."""
    from dryrack.cli.faults.plane_faults import entries
    from dryrack.client.endpoints import NODES

    plane: dict[str, str] = {}

    async def nodes(client: Client) -> Sequence[Raw]:
        plane.update(await entries(client))
        return (await client.list(NODES)).items

    _print(
        _on_cluster((kubeconfig, context, cluster), nodes),
        output,
        plane,
    )


@app.command()
def clear(
    targets: Annotated[
        list[str] | None,
        argument(
            metavar="[NODE|NODE/DEVICE]...",
            help="Nodes or devices. Default: all, and the control plane.",
        ),
    ] = None,
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    cluster: SelectedCluster = "",
) -> None:
    """End all faults, or the faults of some nodes or devices."""
    from dryrack.cli.faults.targets import clear_faults

    count = 0

    def changes(cluster: Cluster) -> Changes:
        nonlocal count
        removed = clear_faults(cluster, targets or ())
        count = sum(map(len, removed.values()))
        return removed

    where = (kubeconfig, context, cluster)
    _write(changes, where)
    if not targets:
        from dryrack.cli.faults.plane_faults import clear_all

        count += len(_on_cluster(where, clear_all))
        from dryrack.cli.faults.device_rules import delete_rules

        _on_cluster(where, delete_rules)
    say(f"{count} faults ended" if count != 1 else "1 fault ended")


def _tell_plane(kind: str, words: Sequence[str], length: str, where: _Where) -> None:
    """Write or end a fault of a control plane."""
    from dryrack.cli.faults.plane_faults import PlaneFault, tell

    fault = PlaneFault.of(kind, words, seconds_of("--for", length) if length else None, time.time())
    _on_cluster(where, lambda client: tell(client, fault))
    say(f"{fault.key}: {fault.value or 'ok'}")


def _fail(words: str, length: str, where: _Where, *, shows: str = "") -> Sequence[Raw]:
    """Inject a fault; return the nodes of the target, `NODE` or `NODE/DEVICE`, afterwards."""
    from dryrack.cli.faults.device_rules import find_tainted_drivers
    from dryrack.cli.faults.targets import Cluster, find_foreign_drivers
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
        foreign = find_foreign_drivers(Cluster(nodes, slices), device)
        tainted = await find_tainted_drivers(client, foreign)
        for driver in foreign:
            what = f"driver {shown(driver)}: dryrack does not manage its slices"
            if driver in tainted:
                say(f"{what}; DeviceTaintRules taint its devices until the fault ends")
            else:
                say(f"{what} and leaves them as is")
        return nodes

    return _on_cluster(where, work)


def _write(changes: Callable[[Cluster], Changes], where: _Where) -> Sequence[Raw]:
    """Write annotations; return the changed nodes."""
    from dryrack.cli.faults.targets import Cluster
    from dryrack.client.endpoints import NODES

    async def work(client: Client) -> Sequence[Raw]:
        cluster = Cluster((await client.list(NODES)).items)
        return [
            await client.patch(NODES, name, {"metadata": {"annotations": annotations}})
            for name, annotations in changes(cluster).items()
        ]

    return _on_cluster(where, work)


def _on_cluster(where: _Where, work: Callable[[Client], Any]) -> Sequence[Raw]:
    from dryrack.cli.views.sources import Source, on_cluster

    kubeconfig, context, cluster = where
    source = Source(kubeconfig=kubeconfig, context=context, cluster=cluster)
    nodes: Sequence[Raw] = on_cluster(source.connection(), work)
    return nodes


def _print(nodes: Sequence[Raw], output: Format, plane: Mapping[str, str] | None = None) -> None:
    from dryrack.cli.faults.plane_faults import cells
    from dryrack.cli.faults.targets import fault_rows

    now = time.time()
    rows = fault_rows(nodes, now)
    entries = sorted((plane or {}).items())
    if output is not Format.TABLE:
        documents = [row.document() for row in rows]
        print_data({"faults": documents, **({"plane": dict(entries)} if plane else {})}, output)
    elif rows or entries:
        lines = [*(row.cells(now) for row in rows), *(cells(value, now) for _, value in entries)]
        print_table(("NODE", "DEVICE", "FAULT", "ENDS"), lines)
    else:
        say("no faults")
