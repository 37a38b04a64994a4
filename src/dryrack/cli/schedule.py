"""
`dryrack schedule`: run the scheduler as a second scheduler of a cluster.

It schedules the pods that name it in `schedulerName`, until a signal stops it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from dryrack.cli.files import UsageError
from dryrack.cli.service import address_of, log_format_of, serve
from dryrack.cli.views.sources import connection_to
from dryrack.kinds.releases import DEFAULT_RELEASE

if TYPE_CHECKING:
    from dryrack.cli.options import ScheduleOptions
    from dryrack.client.election import Terms
    from dryrack.client.informer import Name
    from dryrack.kinds.releases import Release
    from dryrack.scheduler import SchedulerSettings

AGENT = "dryrack-scheduler"
# The default schedulerName.
NAME = "dryrack"
NAMESPACE = "kube-system"


class MakeSettings(Protocol):
    """Makes the settings for the release of a cluster."""

    def __call__(self, *, release: Release) -> SchedulerSettings: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The options and the configuration file; the settings depend on the cluster, too."""

    make_settings: MakeSettings
    plans_lease: Name
    lease: Name
    leader_elect: bool = True
    terms: Terms | None = None

    def settings(self, release: Release = DEFAULT_RELEASE) -> SchedulerSettings:
        """Return the settings that decide as kube-scheduler does in a release."""
        return replace(self.make_settings(release=release), plans_lease=self.plans_lease)


def run(options: ScheduleOptions) -> bool:
    """Run the command; return whether it succeeded."""
    from dryrack.cluster.rights import POD_GROUPS, definitions, scheduler

    if options.print_crds:
        sys.stdout.write(definitions(POD_GROUPS))
        return True
    decided = decide(options)
    if options.print_rbac:
        from dryrack.cluster.scheduling import account_of

        sys.stdout.write(scheduler(account_of(decided.settings()), decided.lease))
        return True
    from dryrack.client.client import Client
    from dryrack.client.discovery import release_of
    from dryrack.client.https import connected
    from dryrack.cluster import (
        Attached,
        Attachment,
        Candidacy,
        check_needs,
        new_identity,
        stopping_by_signal,
    )
    from dryrack.cluster.scheduling import COMMAND, NEEDS, engine

    log_format = log_format_of(options.log_format)
    candidacy = Candidacy(decided.lease, new_identity(), decided.terms)
    attachment = Attachment(
        agent=AGENT,
        candidacy=candidacy if decided.leader_elect else None,
        health=address_of("--health-address", options.health_address),
        metrics=address_of("--metrics-address", options.metrics_address),
    )
    connection = connection_to(kubeconfig=options.kubeconfig, context=options.context)

    async def schedule() -> None:
        async with connected(connection) as transport:
            client = Client(transport, agent=AGENT)
            await check_needs(client, NEEDS, COMMAND)
            settings = decided.settings(await release_of(client))
            attached = Attached(transport, lambda context: engine(context, settings), attachment)
            await attached.run(stopping_by_signal())

    return serve(log_format, schedule)


def decide(options: ScheduleOptions) -> Decided:
    """Return the settings; options take precedence over the file."""
    from dryrack.base.durations import seconds_in
    from dryrack.client.election import Terms
    from dryrack.client.informer import Name
    from dryrack.cluster.scheduling import account_of
    from dryrack.kinds.validation.names import label, subdomain
    from dryrack.placement import LeaderElectionSettings
    from dryrack.scheduler import SchedulerSettings

    names = options.name or (NAME,)
    if "" in names:
        fix = "use the schedulerName of the Pods, for example dryrack"
        raise UsageError(f"--name '': the name is empty; {fix}")
    make_settings: MakeSettings = partial(SchedulerSettings.of, names)
    election = LeaderElectionSettings()
    if options.config:
        from dryrack.cli.scheduler_config import read_config, settings_of

        configuration = read_config(options.config)
        option = f"--name {names[0]}" if options.name else ""
        make_settings = partial(settings_of, configuration, names, option=option)
        election = configuration.leader_election
    settings = make_settings(release=DEFAULT_RELEASE)
    namespace = options.namespace or election.resource_namespace or NAMESPACE
    lease_name = options.lease_name or election.resource_name
    lease = Name(namespace, lease_name or account_of(settings))
    for complaint in label(namespace):
        raise UsageError(f"--namespace {namespace!r}: {complaint}")
    for complaint in subdomain(lease.name):
        if lease_name:
            raise UsageError(f"--lease-name {lease.name!r}: {complaint}")
        name = next(iter(settings.profiles))
        raise UsageError(f"--name {name!r}: {complaint}; name the lease with --lease-name")
    leader_elect = options.leader_elect
    if leader_elect is None:
        leader_elect = election.leader_elect is not False
    defaults = Terms()
    return Decided(
        make_settings=make_settings,
        plans_lease=lease._replace(name=f"{lease.name}-gangs"),
        lease=lease,
        leader_elect=leader_elect,
        terms=Terms(
            lease_seconds=seconds_in(election.lease_duration) or defaults.lease_seconds,
            renew_seconds=seconds_in(election.renew_deadline) or defaults.renew_seconds,
            retry_seconds=seconds_in(election.retry_period) or defaults.retry_seconds,
        ),
    )
