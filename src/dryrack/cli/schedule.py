"""
`dryrack schedule`: the scheduler as a second one on somebody's cluster.

It takes the pods that name it by `schedulerName`, until it is told to stop.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dryrack.cli.files import UsageError

if TYPE_CHECKING:
    from dryrack.client.informer import Name
    from dryrack.client.kubeconfig import Connection
    from dryrack.cluster import Attachment
    from dryrack.cluster.scheduling import ScheduleOptions

AGENT = "dryrack-scheduler"
# What pods call it, where nobody says otherwise.
NAME = "dryrack"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The options of the command, as they were given."""

    kubeconfig: str = ""
    context: str = ""
    names: tuple[str, ...] = ()
    namespace: str = "kube-system"
    leader_elect: bool = True
    lease_name: str = ""
    metrics_address: str = "127.0.0.1:10251"
    health_address: str = "127.0.0.1:10251"
    log_format: str = "text"
    prints_rights: bool = False


def run(wish: Wish) -> bool:
    """Whether all went well."""
    from dryrack.cli.service import log_format_of, serve

    options = options_of(wish)
    if wish.prints_rights:
        print_rights(wish, options)
        return True
    form = log_format_of(wish.log_format)
    attachment = attachment_of(wish, options)
    connection = _connection(wish)
    return serve(form, lambda: _served(connection, options, attachment))


def options_of(wish: Wish) -> ScheduleOptions:
    from dryrack.cluster.scheduling import ScheduleOptions
    from dryrack.placement import DEFAULT_PROFILE

    if "" in wish.names:
        raise UsageError("--name '': what pods have in schedulerName, for example dryrack")
    options = ScheduleOptions(profiles=dict.fromkeys(wish.names or (NAME,), DEFAULT_PROFILE))
    _check(wish, options)
    return options


def _check(wish: Wish, options: ScheduleOptions) -> None:
    """Names that no cluster would take are told before one is asked."""
    from dryrack.kinds.validation.names import label, subdomain

    for complaint in label(wish.namespace):
        raise UsageError(f"--namespace {wish.namespace!r}: {complaint}")
    lease = lease_of(wish, options).name
    for complaint in subdomain(lease):
        fix = "" if wish.lease_name else "; name the lease with --lease-name"
        name = next(iter(options.profiles))
        option = f"--lease-name {lease!r}" if wish.lease_name else f"--name {name!r}"
        raise UsageError(f"{option}: {complaint}{fix}")


def lease_of(wish: Wish, options: ScheduleOptions) -> Name:
    from dryrack.client.informer import Name

    return Name(wish.namespace, wish.lease_name or options.account)


def attachment_of(wish: Wish, options: ScheduleOptions) -> Attachment:
    from dryrack.cli.service import address_of
    from dryrack.cluster import Attachment, Candidacy, new_identity

    lease = lease_of(wish, options)
    return Attachment(
        agent=AGENT,
        candidacy=Candidacy(lease, new_identity()) if wish.leader_elect else None,
        health=address_of("--health-address", wish.health_address),
        metrics=address_of("--metrics-address", wish.metrics_address),
    )


def print_rights(wish: Wish, options: ScheduleOptions) -> None:
    """What an account needs, for `kubectl apply -f -`."""
    from dryrack.cluster.rights import scheduler

    sys.stdout.write(scheduler(options.account, lease_of(wish, options)))


def _connection(wish: Wish) -> Connection:
    from dryrack.cluster import connection_of

    return connection_of(os.environ, kubeconfig=wish.kubeconfig, context=wish.context)


async def _served(connection: Connection, options: ScheduleOptions, attachment: Attachment) -> None:
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import Attached, check_needs, stopping_by_signal
    from dryrack.cluster.scheduling import COMMAND, NEEDS, engine

    async with connected(connection) as transport:
        await check_needs(Client(transport, agent=AGENT), NEEDS, COMMAND)
        attached = Attached(transport, lambda around: engine(around, options), attachment)
        await attached.run(stopping_by_signal())


# What people decide about scheduling, in the groups in which it is shown.
_CLUSTER = "Which cluster"
_PODS = "Which pods"
_RUN = "How it runs"
_INSTEAD = "Instead of running"
Kubeconfig = Annotated[
    str,
    typer.Option(
        metavar="FILE",
        help="Which cluster; else as kubectl, else this pod's.",
        rich_help_panel=_CLUSTER,
    ),
]
Context = Annotated[
    str, typer.Option(help="Which context of the kubeconfig.", rich_help_panel=_CLUSTER)
]
Names = Annotated[
    list[str] | None,
    typer.Option(
        "--name",
        metavar="NAME",
        help="Those with this schedulerName; repeatable; else dryrack.",
        rich_help_panel=_PODS,
    ),
]
LeaderElect = Annotated[
    bool,
    typer.Option(
        "--leader-elect/--no-leader-elect", help="Work if no other does.", rich_help_panel=_RUN
    ),
]
Namespace = Annotated[
    str,
    typer.Option("-n", "--namespace", help="Where lease and account are.", rich_help_panel=_RUN),
]
LeaseName = Annotated[
    str, typer.Option(help="The lease's name; else by the first NAME.", rich_help_panel=_RUN)
]
MetricsAddress = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT", help="Where /metrics is; 0 for nowhere.", rich_help_panel=_RUN
    ),
]
HealthAddress = Annotated[
    str,
    typer.Option(metavar="HOST:PORT", help="Where /healthz and /readyz are.", rich_help_panel=_RUN),
]
LogFormat = Annotated[
    str, typer.Option(metavar="text|json", help="How log lines look.", rich_help_panel=_RUN)
]
PrintRights = Annotated[
    bool,
    typer.Option(
        "--print-rbac",
        help="Print the rights that an account needs; end.",
        rich_help_panel=_INSTEAD,
    ),
]


def schedule(
    kubeconfig: Kubeconfig = "",
    context: Context = "",
    name: Names = None,
    namespace: Namespace = "kube-system",
    leader_elect: LeaderElect = True,
    lease_name: LeaseName = "",
    metrics_address: MetricsAddress = "127.0.0.1:10251",
    health_address: HealthAddress = "127.0.0.1:10251",
    log_format: LogFormat = "text",
    print_rbac: PrintRights = False,
) -> None:
    """Schedule the pods that ask for it, with their devices, beside a cluster's own scheduler."""
    wish = Wish(
        kubeconfig=kubeconfig,
        context=context,
        names=tuple(name or ()),
        namespace=namespace,
        leader_elect=leader_elect,
        lease_name=lease_name,
        metrics_address=metrics_address,
        health_address=health_address,
        log_format=log_format,
        prints_rights=print_rbac,
    )
    raise typer.Exit(0 if run(wish) else 1)
