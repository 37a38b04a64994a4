"""Change the number of virtual nodes of a running cluster (`dryrack scale`)."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.files import UsageError
from dryrack.cli.output import say
from dryrack.cli.views.fleet_options import NODES_MAX
from dryrack.cli.views.sources import on_cluster
from dryrack.cli.virtual.clusters import find_running
from dryrack.cli.virtual.up import node_pattern
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.cli.virtual.options import ScaleOptions
    from dryrack.client.client import Client
    from dryrack.hardware.catalogue import InstanceType
    from dryrack.kinds.raw import Raw

_READY_SECONDS_MAX = 60.0
_LOOK_SECONDS = 0.05
_NUMBER = re.compile(r"[0-9]+(?=[^0-9]*$)")
_INSTANCE_TYPE = "node.kubernetes.io/instance-type"


def run(options: ScaleOptions) -> bool:
    """Create or delete virtual nodes; return whether all new nodes are Ready."""
    from dryrack.cluster import connection_of

    if not 0 <= options.nodes <= NODES_MAX:
        raise UsageError(f"--nodes {options.nodes}: must be a number from 0 to {NODES_MAX}")
    pattern = node_pattern(options.node_name) if options.node_name else ""
    state, running = find_running(options.name)

    async def scale(client: Client) -> bool:
        from dryrack.client.endpoints import NODES
        from dryrack.cluster import add_node, virtual_node

        listing = await client.list(NODES)
        nodes = [each for each in listing.items if _is_virtual(each)]
        if options.instance_type:
            nodes = [each for each in nodes if _type_of(each) == options.instance_type]
        nodes.sort(key=lambda each: _natural_order(_name(each)))
        change = options.nodes - len(nodes)
        if not change:
            say(f"Cluster {state.name} has {_text(len(nodes), options.instance_type)} already.")
            return True
        type_ = options.instance_type or _common_type(nodes)
        if change < 0:
            names = [_name(each) for each in nodes[change:]]
            for name in names:
                await client.delete(NODES, name)
            say(f"Deleted {_text(len(names), type_)}: {_range(names)}.")
            return True
        machine = _machine(type_, running.catalogue_files)
        taken = {_name(each) for each in listing.items}
        names = _new_names(pattern or _pattern_of(nodes), change, taken)
        for name in names:
            await add_node(client, virtual_node(name, machine))
        say(f"Created {_text(len(names), type_)}: {_range(names)}.")
        late = await _wait_until_ready(client, names)
        if late:
            say(f"{len(late)} of them are not Ready yet; see: kubectl get nodes")
        return not late

    return on_cluster(connection_of({}, kubeconfig=str(state.kubeconfig)), scale)


def _machine(type_: str, catalogue_files: Sequence[str] | None) -> InstanceType | None:
    """Return the instance type in the catalog of the cluster."""
    if not type_:
        return None
    from dryrack.cli.hardware import load, unknown_type

    option = f"--instance-type {type_}"
    if catalogue_files is None:
        raise ContentError(
            f"{option}: the cluster runs without the hardware catalog, so these nodes would have "
            "no devices; start the cluster with: dryrack up --catalogue"
        )
    catalogue = load(catalogue_files)
    if type_ not in catalogue.instance_types:
        raise UsageError(unknown_type(option, type_, catalogue))
    return catalogue.instance_types[type_]


def _common_type(nodes: Sequence[Raw]) -> str:
    """Return the instance type of all nodes, or an empty text."""
    types = sorted({_type_of(each) for each in nodes})
    if len(types) > 1:
        names = ", ".join(each or "none" for each in types)
        raise UsageError(
            f"the nodes have several instance types: {names}; add --instance-type TYPE"
        )
    return types[0] if types else ""


def _new_names(pattern: str, count: int, taken: set[str]) -> list[str]:
    """Return the first names of the pattern that no node has."""
    candidates = (pattern.replace("{}", str(n)) for n in range(1, count + len(taken) + 1))
    return [name for name in candidates if name not in taken][:count]


def _pattern_of(nodes: Sequence[Raw]) -> str:
    """Return the pattern of the name of the last node."""
    name = _name(nodes[-1]) if nodes else ""
    return _NUMBER.sub("{}", name, count=1) if _NUMBER.search(name) else "node-{}"


async def _wait_until_ready(client: Client, names: Sequence[str]) -> list[str]:
    """Wait for the nodes, and return those that are not Ready in time."""
    from dryrack.client.endpoints import NODES

    waiting = list(names)
    loop = asyncio.get_running_loop()
    latest = loop.time() + _READY_SECONDS_MAX
    while waiting and loop.time() < latest:
        conditions = get(await client.get(NODES, waiting[-1]), "status.conditions", ())
        if any((each["type"], each["status"]) == ("Ready", "True") for each in conditions):
            waiting.pop()
        else:
            await asyncio.sleep(_LOOK_SECONDS)
    return waiting


def _is_virtual(node: Raw) -> bool:
    return "kwok.x-k8s.io/node" in get(node, "metadata.annotations", {})


def _type_of(node: Raw) -> str:
    return str(get(node, "metadata.labels", {}).get(_INSTANCE_TYPE, ""))


def _name(node: Raw) -> str:
    return str(node["metadata"]["name"])


def _natural_order(name: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts node-10 after node-9."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((int(each), "") if each.isdecimal() else (0, each) for each in parts)


def _text(count: int, type_: str) -> str:
    which = f" of the instance type {type_}" if type_ else ""
    return f"{count} virtual node{'' if count == 1 else 's'}{which}"


def _range(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} … {names[-1]}"
