"""
`dryrack schedule`: the scheduler as a second one on somebody's cluster.

It takes the pods that name it by `schedulerName`, until it is told to stop.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from dryrack.cli.cluster_options import (
    Context,
    HealthAddress,
    Kubeconfig,
    LogFormat,
    MetricsAddress,
    PrintRights,
    instead_option,
    panel,
    run_option,
)
from dryrack.cli.files import UsageError
from dryrack.cli.views.connecting import connection_to

if TYPE_CHECKING:
    from dryrack.client.election import Terms
    from dryrack.client.informer import Name
    from dryrack.client.kubeconfig import Connection
    from dryrack.cluster import Attachment
    from dryrack.placement import LeaderElectionSettings
    from dryrack.scheduler import SchedulerSettings

AGENT = "dryrack-scheduler"
# What pods call it, where nobody says otherwise.
NAME = "dryrack"
NAMESPACE = "kube-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of the command, as they were given."""

    kubeconfig: str = ""
    context: str = ""
    names: tuple[str, ...] = ()
    config: str = ""
    namespace: str = ""
    leader_elect: bool | None = None
    lease_name: str = ""
    metrics_address: str = "127.0.0.1:10251"
    health_address: str = "127.0.0.1:10251"
    log_format: str = "text"
    prints_rights: bool = False
    prints_definitions: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What the options, and the configuration that they name, come to."""

    settings: SchedulerSettings
    lease: Name
    leader_elect: bool = True
    terms: Terms | None = None


def run(wish: Wish) -> bool:
    """Whether all went well."""
    from dryrack.cli.service import log_format_of, serve

    if wish.prints_definitions:
        print_definitions()
        return True
    decided = decide(wish)
    if wish.prints_rights:
        print_rights(decided)
        return True
    form = log_format_of(wish.log_format)
    attachment = attachment_of(wish, decided)
    connection = connection_to(kubeconfig=wish.kubeconfig, context=wish.context)
    return serve(form, lambda: _served(connection, decided.settings, attachment))


def decide(wish: Wish) -> Decided:
    """Options count more than the file."""
    from dryrack.client.informer import Name
    from dryrack.cluster.scheduling import account_of
    from dryrack.placement import LeaderElectionSettings
    from dryrack.scheduler import SchedulerSettings

    if "" in wish.names:
        raise UsageError("--name '': what pods have in schedulerName, for example dryrack")
    if wish.config:
        from dryrack.cli.scheduler_config import read_config, settings_of

        option = f"--name {wish.names[0]}" if wish.names else ""
        said = read_config(wish.config)
        settings = settings_of(said, wish.names or (NAME,), option)
        election = said.leader_election
    else:
        settings = SchedulerSettings.of(wish.names or (NAME,))
        election = LeaderElectionSettings()
    namespace = wish.namespace or election.resource_namespace or NAMESPACE
    lease_name = wish.lease_name or election.resource_name
    lease = Name(namespace, lease_name or account_of(settings))
    decided = Decided(
        settings=replace(settings, plans_lease=lease._replace(name=f"{lease.name}-gangs")),
        lease=lease,
        leader_elect=_first(wish.leader_elect, election.leader_elect),
        terms=_terms(election),
    )
    _check(decided, is_named=bool(lease_name))
    return decided


def _first(*said: bool | None) -> bool:
    return next((each for each in said if each is not None), True)


def _terms(election: LeaderElectionSettings) -> Terms:
    """What is not said is as usual."""
    from dryrack.base.durations import seconds_in
    from dryrack.client.election import Terms

    usual = Terms()
    return Terms(
        lease_seconds=seconds_in(election.lease_duration) or usual.lease_seconds,
        renew_seconds=seconds_in(election.renew_deadline) or usual.renew_seconds,
        retry_seconds=seconds_in(election.retry_period) or usual.retry_seconds,
    )


def _check(decided: Decided, *, is_named: bool) -> None:
    """Names that no cluster would take are told before one is asked."""
    from dryrack.kinds.validation.names import label, subdomain

    namespace, lease = decided.lease
    for complaint in label(namespace):
        raise UsageError(f"--namespace {namespace!r}: {complaint}")
    for complaint in subdomain(lease):
        if is_named:
            raise UsageError(f"--lease-name {lease!r}: {complaint}")
        name = next(iter(decided.settings.profiles))
        raise UsageError(f"--name {name!r}: {complaint}; name the lease with --lease-name")


def attachment_of(wish: Wish, decided: Decided) -> Attachment:
    from dryrack.cli.service import address_of
    from dryrack.cluster import Attachment, Candidacy, new_identity

    candidacy = Candidacy(decided.lease, new_identity(), decided.terms)
    return Attachment(
        agent=AGENT,
        candidacy=candidacy if decided.leader_elect else None,
        health=address_of("--health-address", wish.health_address),
        metrics=address_of("--metrics-address", wish.metrics_address),
    )


def print_rights(decided: Decided) -> None:
    """What an account needs, for `kubectl apply -f -`."""
    from dryrack.cluster.rights import scheduler
    from dryrack.cluster.scheduling import account_of

    sys.stdout.write(scheduler(account_of(decided.settings), decided.lease))


def print_definitions() -> None:
    """The kind of gangs that Kubernetes does not have, for `kubectl apply -f -`."""
    from dryrack.cluster.rights import POD_GROUPS, definitions

    sys.stdout.write(definitions(POD_GROUPS))


async def _served(
    connection: Connection, settings: SchedulerSettings, attachment: Attachment
) -> None:
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import Attached, check_needs, stopping_by_signal
    from dryrack.cluster.scheduling import COMMAND, NEEDS, engine

    async with connected(connection) as transport:
        await check_needs(Client(transport, agent=AGENT), NEEDS, COMMAND)
        attached = Attached(transport, lambda around: engine(around, settings), attachment)
        await attached.run(stopping_by_signal())


# What people decide about scheduling, in the groups in which it is shown.
_pods_option = panel("Which pods")
Names = Annotated[
    list[str] | None,
    _pods_option(
        "--name", metavar="NAME", help="Those with this schedulerName; repeatable; else dryrack."
    ),
]
Config = Annotated[
    str,
    _pods_option(
        metavar="FILE", help="A KubeSchedulerConfiguration: plugins, weights, profiles by name."
    ),
]
LeaderElect = Annotated[
    bool | None,
    run_option(
        "--leader-elect/--no-leader-elect",
        help="Work if no other does; it is so unless FILE says otherwise.",
    ),
]
Namespace = Annotated[
    str, run_option("-n", "--namespace", help="Of lease and account; else kube-system.")
]
LeaseName = Annotated[str, run_option(help="The lease's name; else by the first NAME.")]
PrintDefinitions = Annotated[
    bool, instead_option("--print-crds", help="Print PodGroup of scheduling.x-k8s.io; end.")
]


def schedule(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    name: Names = None,
    config: Config = "",
    namespace: Namespace = "",
    leader_elect: LeaderElect = None,
    lease_name: LeaseName = "",
    metrics_address: MetricsAddress = "127.0.0.1:10251",
    health_address: HealthAddress = "127.0.0.1:10251",
    log_format: LogFormat = "text",
    print_rbac: PrintRights = False,
    print_crds: PrintDefinitions = False,
) -> None:
    """Schedule the pods that ask for it, with their devices, beside a cluster's own scheduler."""
    wish = Wish(
        kubeconfig=kubeconfig,
        context=context,
        names=tuple(name or ()),
        config=config,
        namespace=namespace,
        leader_elect=leader_elect,
        lease_name=lease_name,
        metrics_address=metrics_address,
        health_address=health_address,
        log_format=log_format,
        prints_rights=print_rbac,
        prints_definitions=print_crds,
    )
    raise typer.Exit(0 if run(wish) else 1)
