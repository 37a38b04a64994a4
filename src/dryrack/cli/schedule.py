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
# The default schedulerName.
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
    """The settings from the options and the configuration file."""

    settings: SchedulerSettings
    lease: Name
    leader_elect: bool = True
    terms: Terms | None = None


def run(wish: Wish) -> bool:
    """Run the command; return whether it succeeded."""
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
    """Return the settings; options take precedence over the file."""
    from dryrack.client.informer import Name
    from dryrack.cluster.scheduling import account_of
    from dryrack.placement import LeaderElectionSettings
    from dryrack.scheduler import SchedulerSettings

    if "" in wish.names:
        fix = "use the schedulerName of the Pods, for example dryrack"
        raise UsageError(f"--name '': the name is empty; {fix}")
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
    """Return the times of leader election; missing values get the defaults."""
    from dryrack.base.durations import seconds_in
    from dryrack.client.election import Terms

    usual = Terms()
    return Terms(
        lease_seconds=seconds_in(election.lease_duration) or usual.lease_seconds,
        renew_seconds=seconds_in(election.renew_deadline) or usual.renew_seconds,
        retry_seconds=seconds_in(election.retry_period) or usual.retry_seconds,
    )


def _check(decided: Decided, *, is_named: bool) -> None:
    """Raise `UsageError` for names that are invalid in every cluster."""
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
    """Print the RBAC manifest for `kubectl apply -f -`."""
    from dryrack.cluster.rights import scheduler
    from dryrack.cluster.scheduling import account_of

    sys.stdout.write(scheduler(account_of(decided.settings), decided.lease))


def print_definitions() -> None:
    """Print the CustomResourceDefinition of the coscheduling PodGroup."""
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


# The options, in the groups of the help text.
_pods_option = panel("Pods and profiles")
Names = Annotated[
    list[str] | None,
    _pods_option(
        "--name",
        metavar="NAME",
        help="Schedule Pods with this schedulerName. Repeatable. Default: dryrack.",
    ),
]
Config = Annotated[
    str,
    _pods_option(
        metavar="FILE", help="KubeSchedulerConfiguration with profiles, plugins and weights."
    ),
]
LeaderElect = Annotated[
    bool | None,
    run_option(
        "--leader-elect/--no-leader-elect",
        help="Use leader election. Default: true, unless the --config file disables it.",
    ),
]
Namespace = Annotated[
    str,
    run_option(
        "-n",
        "--namespace",
        help="Namespace of the lease and the ServiceAccount. Default: kube-system.",
    ),
]
LeaseName = Annotated[
    str, run_option(help="Name of the lease. Default: derived from the first --name.")
]
PrintDefinitions = Annotated[
    bool,
    instead_option("--print-crds", help="Print the CRD of scheduling.x-k8s.io PodGroup and exit."),
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
    """Schedule Pods, their devices and gangs as a second scheduler of a cluster."""
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
