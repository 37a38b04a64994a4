"""
`dryrack provision`: create nodes of KWOK for pods that fit on no node of a cluster.

The command runs until a signal stops it. `dryrack publish --catalogue` publishes the devices of the
nodes. With `--karpenter`, Karpenter creates and removes the nodes.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.cli.files import UsageError, parse_release, read_sources
from dryrack.cli.service import address_of, log_format_of, serve
from dryrack.cli.views.sources import connection_to

if TYPE_CHECKING:
    from dryrack.cli.options import ProvisionOptions
    from dryrack.client.informer import Name
    from dryrack.controllers.provisioning import ProvisionerSettings

AGENT = "dryrack-provisioner"
COMMAND = "dryrack provision"


def run(options: ProvisionOptions) -> bool:
    """Run the command; return whether it succeeded."""
    from dryrack.cluster.rights import NODE_POOLS, definitions, provisioner

    _check_names(options)
    if options.print_rbac:
        from dryrack.client.informer import Name

        config_map = Name(options.namespace, options.config_map)
        rights = provisioner(config_map, _lease_of(options), karpenter=options.karpenter)
        sys.stdout.write(rights)
        return True
    if options.print_instance_types:
        from dryrack.controllers.provisioning import write_instance_types

        # Karpenter itself keeps a part of these nodes for the system.
        settings = _settings_of(replace(options, karpenter=False, instance_types=""))
        sys.stdout.write(write_instance_types(settings.machines))
        return True
    if options.print_crds:
        sys.stdout.write(definitions(NODE_POOLS))
        return True
    return _provision(options)


def _lease_of(options: ProvisionOptions) -> Name:
    from dryrack.client.informer import Name

    return Name(options.lease_namespace, options.lease_name)


def _check_names(options: ProvisionOptions) -> None:
    """Raise `UsageError` for names that are invalid in every cluster."""
    from dryrack.kinds.validation.names import label, subdomain

    if options.karpenter and options.ignore_dra_requests:
        raise UsageError(
            "--karpenter creates nodes for Pods with claims; omit --ignore-dra-requests"
        )
    if options.instance_types and not options.karpenter:
        raise UsageError("--instance-types needs --karpenter; for more types, use --catalogue-file")
    for option, name, complaints in (
        ("--namespace", options.namespace, label),
        ("--config-map", options.config_map, subdomain),
        ("--lease-namespace", options.lease_namespace, label),
        ("--lease-name", options.lease_name, subdomain),
    ):
        for complaint in complaints(name):
            raise UsageError(f"{option} {name!r}: {complaint}")


def _settings_of(options: ProvisionOptions) -> ProvisionerSettings:
    from dryrack.cluster import karpenter_settings, load_catalogue, provisioner_settings
    from dryrack.controllers.provisioning import InstanceTypesError
    from dryrack.controllers.slices import PublisherSettings

    files = read_sources(options.catalogue_file) if options.catalogue_file else ()
    catalogue = load_catalogue({file.name: file.content for file in files})
    publisher = PublisherSettings(
        namespace=options.namespace,
        config_map=options.config_map,
        key=options.key,
        driver=options.driver,
    )
    release = parse_release(options.release)
    if options.karpenter:
        types = read_sources((options.instance_types,)) if options.instance_types else ()
        text = b"".join(each.content for each in types).decode(errors="replace")
        try:
            return karpenter_settings(catalogue, text, publisher=publisher, release=release)
        except InstanceTypesError as error:
            raise UsageError(f"--instance-types {options.instance_types}: {error}") from None
    return provisioner_settings(
        catalogue,
        ignores_claims=options.ignore_dra_requests,
        publisher=publisher,
        release=release,
    )


def _provision(options: ProvisionOptions) -> bool:
    """Provision until a signal stops the process."""
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import (
        Attached,
        Attachment,
        Candidacy,
        check_needs,
        new_identity,
        provisioner_needs,
        stopping_by_signal,
    )
    from dryrack.controllers import provisioning

    log_format = log_format_of(options.log_format)
    settings = _settings_of(options)
    attachment = Attachment(
        agent=AGENT,
        candidacy=Candidacy(_lease_of(options), new_identity()) if options.leader_elect else None,
        health=address_of("--health-address", options.health_address),
        metrics=address_of("--metrics-address", options.metrics_address),
    )
    connection = connection_to(kubeconfig=options.kubeconfig, context=options.context)

    async def provision() -> None:
        async with connected(connection) as transport:
            client = Client(transport, agent=AGENT)
            await check_needs(client, provisioner_needs(settings), COMMAND)
            attached = Attached(
                transport, lambda context: provisioning.engine(context, settings), attachment
            )
            await attached.run(stopping_by_signal())

    return serve(log_format, provision)
