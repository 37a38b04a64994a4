"""
`dryrack publish`: publish ResourceSlices for nodes of a cluster that have no devices.

The command runs until a signal stops it. `--once` publishes once, for scripts. `--dry-run` prints
the slices, from a cluster or from files alone.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from dryrack.cli.command import seconds_of
from dryrack.cli.files import UsageError, read_sources
from dryrack.cli.output import many, say, shown
from dryrack.cli.service import address_of, log_format_of, serve
from dryrack.cli.views.sources import connection_to

if TYPE_CHECKING:
    from dryrack.cli.options import PublishOptions
    from dryrack.client.informer import Name
    from dryrack.cluster.publish_once import Outcome
    from dryrack.controllers.slices import DryRunInput, PublisherSettings, Shard
    from dryrack.kinds.core import NodeSelector

AGENT = "dryrack-publisher"


def run(options: PublishOptions) -> bool:
    """Run the command; return whether it succeeded."""
    if options.print_rbac:
        from dryrack.client.informer import Name
        from dryrack.cluster.rights import Publisher, publisher

        check_names(options)
        config_map = Name(options.namespace, options.config_map)
        lease = Name(lease_of(options).namespace, options.lease_name)
        shards = shard_of(options).count if options.shard else 0
        sys.stdout.write(publisher(Publisher(config_map=config_map, lease=lease, shards=shards)))
        return True
    if options.print_crds:
        from dryrack.cluster.rights import definitions

        sys.stdout.write(definitions())
        return True
    if options.once + options.dry_run + options.remove_slices > 1:
        names = "--once, --dry-run and --remove-slices"
        raise UsageError(f"{names} are mutually exclusive; use one of them")
    if options.files and not options.dry_run:
        raise UsageError("-f needs --dry-run; add --dry-run, or leave out -f")
    if options.dry_run:
        from dryrack.cli import dry_run

        settings = settings_of(options)
        if options.files:
            world = dry_run.world_of(options.files, settings)
        else:
            world = asyncio.run(_read_world(options, settings))
        return dry_run.show(world, settings, options.output)
    if options.remove_slices:
        return _remove_slices(options)
    return _publish_once(options) if options.once else _publish(options)


def lease_of(options: PublishOptions) -> Name:
    """Return the namespace and name of the lease of leader election."""
    from dryrack.client.informer import Name
    from dryrack.cluster.rights import shard_lease

    name = options.lease_name
    if options.shard:
        name = shard_lease(name, shard_of(options).index)
    return Name(options.lease_namespace or options.namespace, name)


def shard_of(options: PublishOptions) -> Shard:
    """Return the shard of the options; raise `UsageError` if it is invalid."""
    from dryrack.controllers.slices import ONLY_SHARD, parse_shard

    try:
        return parse_shard(options.shard) if options.shard else ONLY_SHARD
    except ValueError as error:
        raise UsageError(f"--shard {options.shard!r}: {error}") from None


def check_names(options: PublishOptions) -> None:
    """Raise `UsageError` for names that are invalid in every cluster."""
    from dryrack.kinds.validation.names import driver_name, label, subdomain

    names = (
        ("--namespace", options.namespace, label),
        ("--config-map", options.config_map, subdomain),
        ("--lease-namespace", lease_of(options).namespace, label),
        ("--lease-name", options.lease_name, subdomain),
    )
    for option, name, complaints in names:
        for complaint in complaints(name):
            raise UsageError(f"{option} {name!r}: {complaint}")
    if not options.key:
        raise UsageError("--key '': the key is empty; name a ConfigMap key, such as config.yaml")
    for problem in driver_name("--driver", options.driver) if options.driver else ():
        raise UsageError(f"{problem}; {problem.fix}" if problem.fix else str(problem))


def settings_of(options: PublishOptions) -> PublisherSettings:
    """Return the settings of the publisher; raise `UsageError` if an option is invalid."""
    from dryrack.controllers.slices import PublisherSettings

    check_names(options)
    catalogue = None
    if options.catalogue or options.catalogue_file:
        from dryrack.cluster import load_catalogue

        files = read_sources(options.catalogue_file) if options.catalogue_file else ()
        catalogue = load_catalogue({file.name: file.content for file in files}).assignments()
    nodes = None
    if options.all_nodes and options.node_selector:
        raise UsageError("--all-nodes and --node-selector are mutually exclusive; use one of them")
    if options.all_nodes:
        nodes = every_node()
    elif options.node_selector:
        nodes = selected_nodes(options.node_selector)
    return PublisherSettings(
        namespace=options.namespace,
        config_map=options.config_map,
        key=options.key,
        driver=options.driver,
        catalogue=catalogue,
        nodes=nodes,
        real_nodes=options.real_nodes,
        shard=shard_of(options),
        resync_seconds=seconds_of("--resync", options.resync),
    )


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


def config_hint(settings: PublisherSettings) -> str:
    """Return what to do if no device configuration exists."""
    name = settings.config_map
    namespace = settings.namespace
    make = f"kubectl create configmap {name} -n {namespace} --from-file={settings.key}=FILE"
    return (
        f"no node has devices: ConfigMap {namespace}/{name} does not exist, and there is no "
        f"NodeOverlay or DRAConfig; create the ConfigMap ({make}), name another one with -n and "
        "--config-map, or use the devices of instance types with --catalogue"
    )


def _remove_slices(options: PublishOptions) -> bool:
    """Delete the slices of the publisher, or those of --driver, and print their number."""
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster.publish_once import remove_slices

    check_names(options)
    log_format = log_format_of(options.log_format)
    connection = connection_to(kubeconfig=options.kubeconfig, context=options.context)

    async def remove() -> None:
        async with connected(connection) as transport:
            count = await remove_slices(Client(transport, agent=AGENT), options.driver)
        say(f"{many(count, 'slice')} deleted")

    return serve(log_format, remove)


async def _read_world(options: PublishOptions, settings: PublisherSettings) -> DryRunInput:
    """Return the nodes and the device configuration of the cluster."""
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import read_world

    connection = connection_to(kubeconfig=options.kubeconfig, context=options.context)
    async with connected(connection) as transport:
        return await read_world(Client(transport, agent=AGENT), settings)


def _publish(options: PublishOptions) -> bool:
    """Publish until a signal stops the process."""
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import (
        Attached,
        Attachment,
        Candidacy,
        check_needs,
        new_identity,
        publisher_needs,
        stopping_by_signal,
    )
    from dryrack.controllers import slices

    log_format = log_format_of(options.log_format)
    settings = settings_of(options)
    attachment = Attachment(
        agent=AGENT,
        candidacy=Candidacy(lease_of(options), new_identity()) if options.leader_elect else None,
        health=address_of("--health-address", options.health_address),
        metrics=address_of("--metrics-address", options.metrics_address),
    )
    connection = connection_to(kubeconfig=options.kubeconfig, context=options.context)

    async def publish() -> None:
        async with connected(connection) as transport:
            await check_needs(Client(transport, agent=AGENT), publisher_needs(settings))
            attached = Attached(
                transport, lambda context: slices.engine(context, settings), attachment
            )
            await attached.run(stopping_by_signal())

    return serve(log_format, publish)


def _publish_once(options: PublishOptions) -> bool:
    """Publish once, print what could not be published, and return whether all is published."""
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import SystemChance, SystemClock, check_needs, publisher_needs
    from dryrack.cluster.process import configure_logs
    from dryrack.cluster.publish_once import publish_once

    settings = settings_of(options)
    log_format = log_format_of(options.log_format)
    connection = connection_to(kubeconfig=options.kubeconfig, context=options.context)
    configure_logs(log_format)

    async def publish() -> Outcome:
        async with connected(connection) as transport:
            client = Client(transport, agent=AGENT)
            await check_needs(client, publisher_needs(settings))
            return await publish_once(client, settings, clock=SystemClock(), chance=SystemChance())

    outcome = asyncio.run(publish())
    for document in outcome.unread:
        say(shown(f"not applied: {document}"))
    for node, why in sorted(outcome.failing.items()):
        where = f"node {node}" if node else "the whole cluster"
        say(shown(f"{where}: ResourceSlices are not up to date: {why}"))
    if not outcome.sources and settings.catalogue is None:
        say(config_hint(settings))
    say(f"{many(outcome.slices, 'slice')} for {many(outcome.nodes, 'node')}")
    return outcome.is_as_desired
