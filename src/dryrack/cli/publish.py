"""
`dryrack publish`: ResourceSlices for nodes that have no devices, on somebody's cluster.

It runs until it is told to stop; or once (`--once`), for scripts; or it says what it would publish
(`--dry-run`), from a cluster or from files alone.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.cli.durations import seconds_of
from dryrack.cli.files import UsageError, read_sources
from dryrack.cli.output import Format, many, say, shown
from dryrack.cli.service import address_of, log_format_of, serve
from dryrack.cli.views.connecting import connection_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.client.informer import Name
    from dryrack.client.kubeconfig import Connection
    from dryrack.cluster import Attachment
    from dryrack.cluster.publish_once import Outcome
    from dryrack.controllers.slices import PublisherSettings, World
    from dryrack.hardware import Assignment
    from dryrack.kinds.core import NodeSelector

AGENT = "dryrack-publisher"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of the command, as they were given."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = "karpenter"
    config_map: str = "dra-kwok-configmap"
    key: str = "config.yaml"
    driver: str = ""
    catalogue: bool = False
    catalogue_files: tuple[str, ...] = ()
    node_selector: str = ""
    all_nodes: bool = False
    real_nodes: bool = False
    resync: str = "30s"
    leader_elect: bool = True
    lease_namespace: str = ""
    lease_name: str = "dryrack-publisher"
    metrics_address: str = "127.0.0.1:8082"
    health_address: str = "127.0.0.1:8083"
    log_format: str = "text"
    once: bool = False
    dry_run: bool = False
    output: Format = Format.YAML
    files: tuple[str, ...] = ()
    prints_rights: bool = False
    prints_definitions: bool = False

    @property
    def lease(self) -> Name:
        from dryrack.client.informer import Name

        return Name(self.lease_namespace or self.namespace, self.lease_name)


def print_rights(wish: Wish) -> None:
    """Print the RBAC manifest for `kubectl apply -f -`."""
    from dryrack.client.informer import Name
    from dryrack.cluster.rights import Publisher, publisher

    where = Publisher(config_map=Name(wish.namespace, wish.config_map), lease=wish.lease)
    sys.stdout.write(publisher(where))


def print_definitions() -> None:
    """Print the CustomResourceDefinitions for `kubectl apply -f -`."""
    from dryrack.cluster.rights import definitions

    sys.stdout.write(definitions())


def check_names(wish: Wish) -> None:
    """Raise `UsageError` for names that are invalid in every cluster."""
    from dryrack.kinds.validation.names import driver_name, label, subdomain

    names = (
        ("--namespace", wish.namespace, label),
        ("--config-map", wish.config_map, subdomain),
        ("--lease-namespace", wish.lease.namespace, label),
        ("--lease-name", wish.lease_name, subdomain),
    )
    for option, name, complaints in names:
        for complaint in complaints(name):
            raise UsageError(f"{option} {name!r}: {complaint}")
    if not wish.key:
        raise UsageError("--key '': the key is empty; name a ConfigMap key, such as config.yaml")
    for problem in driver_name("--driver", wish.driver) if wish.driver else ():
        raise UsageError(f"{problem}; {problem.fix}" if problem.fix else str(problem))


def options_of(wish: Wish) -> PublisherSettings:
    from dryrack.controllers.slices import PublisherSettings

    check_names(wish)
    return PublisherSettings(
        namespace=wish.namespace,
        config_map=wish.config_map,
        key=wish.key,
        driver=wish.driver,
        catalogue=_catalogue(wish),
        nodes=_nodes(wish),
        real_nodes=wish.real_nodes,
        resync_seconds=seconds_of("--resync", wish.resync),
    )


def _catalogue(wish: Wish) -> Mapping[str, Assignment] | None:
    if not wish.catalogue and not wish.catalogue_files:
        return None
    from dryrack.cluster import load_catalogue

    own = read_sources(wish.catalogue_files) if wish.catalogue_files else ()
    return load_catalogue({source.name: source.content for source in own}).assignments()


def _nodes(wish: Wish) -> NodeSelector | None:
    if wish.all_nodes and wish.node_selector:
        raise UsageError("--all-nodes and --node-selector are mutually exclusive; use one of them")
    if wish.all_nodes:
        return every_node()
    return selected_nodes(wish.node_selector) if wish.node_selector else None


def every_node() -> NodeSelector:
    """Return a selector of all node names; a selector without terms would select no node."""
    from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

    named = NodeSelectorRequirement(key="metadata.name", operator="NotIn", values=("",))
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(named,)),))


def selected_nodes(text: str) -> NodeSelector:
    """Return a node selector for a label selector in the syntax of kubectl's -l."""
    from dryrack.apiserver.verbs.label_selectors import Operator, SelectorError, parse
    from dryrack.kinds.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm

    operators = {
        Operator.IN: "In",
        Operator.NOT_IN: "NotIn",
        Operator.EXISTS: "Exists",
        Operator.DOES_NOT_EXIST: "DoesNotExist",
        Operator.GREATER: "Gt",
        Operator.LESS: "Lt",
    }
    try:
        requirements = parse(text).requirements
    except SelectorError as error:
        raise UsageError(f"--node-selector {text!r}: {error}") from None
    if not requirements:
        fix = "to select all nodes, use --all-nodes"
        raise UsageError(f"--node-selector {text!r}: the selector is empty; {fix}")
    expressions = tuple(
        NodeSelectorRequirement(key=each.key, operator=operators[each.operator], values=each.values)
        for each in requirements
    )
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=expressions),))


def attachment_of(wish: Wish) -> Attachment:
    from dryrack.cluster import Attachment, Candidacy, new_identity

    return Attachment(
        agent=AGENT,
        candidacy=Candidacy(wish.lease, new_identity()) if wish.leader_elect else None,
        health=address_of("--health-address", wish.health_address),
        metrics=address_of("--metrics-address", wish.metrics_address),
    )


def run(wish: Wish) -> bool:
    """Run the command; return whether it succeeded."""
    if wish.prints_rights:
        check_names(wish)
        print_rights(wish)
        return True
    if wish.prints_definitions:
        print_definitions()
        return True
    _check(wish)
    if wish.dry_run:
        return _dry_run(wish)
    return _once(wish) if wish.once else _serve(wish)


def _check(wish: Wish) -> None:
    if wish.once and wish.dry_run:
        raise UsageError("--once and --dry-run are mutually exclusive; use one of them")
    if wish.files and not wish.dry_run:
        raise UsageError("-f needs --dry-run; add --dry-run, or leave out -f")


def _serve(wish: Wish) -> bool:
    """Publish until a signal stops the process."""
    form = log_format_of(wish.log_format)
    options = options_of(wish)
    attachment = attachment_of(wish)
    connection = connection_to(kubeconfig=wish.kubeconfig, context=wish.context)
    return serve(form, lambda: _served(connection, options, attachment))


def config_hint(options: PublisherSettings) -> str:
    """Return what to do if no device configuration exists."""
    name = options.config_map
    namespace = options.namespace
    make = f"kubectl create configmap {name} -n {namespace} --from-file={options.key}=FILE"
    return (
        f"no node has devices: ConfigMap {namespace}/{name} does not exist, and there is no "
        f"NodeOverlay or DRAConfig; create the ConfigMap ({make}), name another one with -n and "
        "--config-map, or use the devices of instance types with --catalogue"
    )


async def _served(
    connection: Connection, options: PublisherSettings, attachment: Attachment
) -> None:
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import Attached, check_needs, publisher_needs, stopping_by_signal
    from dryrack.controllers import slices

    async with connected(connection) as transport:
        await check_needs(Client(transport, agent=AGENT), publisher_needs(options))
        attached = Attached(transport, lambda around: slices.engine(around, options), attachment)
        await attached.run(stopping_by_signal())


def _dry_run(wish: Wish) -> bool:
    from dryrack.cli import dry_run

    options = options_of(wish)
    if wish.files:
        return dry_run.show(dry_run.world_of(wish.files, options), options, wish.output)
    world = asyncio.run(
        _world(connection_to(kubeconfig=wish.kubeconfig, context=wish.context), options)
    )
    return dry_run.show(world, options, wish.output)


async def _world(connection: Connection, options: PublisherSettings) -> World:
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import read_world

    async with connected(connection) as transport:
        return await read_world(Client(transport, agent=AGENT), options)


def _once(wish: Wish) -> bool:
    """Publish once, print what could not be published, and return whether all is published."""
    from dryrack.cluster.process import configure_logs

    options = options_of(wish)
    form = log_format_of(wish.log_format)
    connection = connection_to(kubeconfig=wish.kubeconfig, context=wish.context)
    configure_logs(form)
    outcome = asyncio.run(_published(connection, options))
    for document in outcome.unread:
        say(shown(f"not applied: {document}"))
    for node, why in sorted(outcome.failing.items()):
        where = f"node {node}" if node else "the whole cluster"
        say(shown(f"{where}: ResourceSlices are not up to date: {why}"))
    if not outcome.sources and options.catalogue is None:
        say(config_hint(options))
    say(f"{many(outcome.slices, 'slice')} for {many(outcome.nodes, 'node')}")
    return outcome.is_as_desired


async def _published(connection: Connection, options: PublisherSettings) -> Outcome:
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import SystemChance, SystemClock, check_needs, publisher_needs
    from dryrack.cluster.publish_once import publish_once

    async with connected(connection) as transport:
        client = Client(transport, agent=AGENT)
        await check_needs(client, publisher_needs(options))
        return await publish_once(client, options, clock=SystemClock(), chance=SystemChance())
