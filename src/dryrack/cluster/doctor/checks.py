"""All checks in the order of the output, as a pure function of the facts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dryrack.cluster.doctor import machine_checks as machines
from dryrack.cluster.doctor import object_checks as objects
from dryrack.cluster.doctor import server_checks as server
from dryrack.cluster.doctor.model import (
    ENGINES,
    ClusterFacts,
    Finding,
    State,
    UnknownFactError,
    Verdict,
    skip,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeAlias

    from dryrack.cluster.doctor.model import MachineFacts, Subject

    _ClusterCheck: TypeAlias = Callable[[ClusterFacts, MachineFacts, Subject], Verdict]


def _rights(engine: str) -> _ClusterCheck:
    def check(cluster: ClusterFacts, _: MachineFacts, subject: Subject) -> Verdict:
        return server.check_rights(engine, cluster, subject)

    return check


API_SERVER = "api-server"

# The names of checks never change: scripts select findings by them.
CLUSTER_CHECKS: Mapping[str, _ClusterCheck] = {
    API_SERVER: server.check_api_server,
    "version": server.check_version,
    "kubelet-versions": server.check_kubelets,
    "kubectl": server.check_kubectl,
    "clock": server.check_clock,
    "dra-api": server.check_dra_api,
    "optional-apis": server.check_optional_apis,
    "feature-gates": server.check_feature_gates,
    "scheduler": server.check_scheduler,
    **{f"rights-{engine}": _rights(engine) for engine in ENGINES},
    "token-node": server.check_token_node,
    "policies": server.check_policies,
    "webhooks": server.check_webhooks,
    "kwok": objects.check_kwok,
    "publisher-nodes": objects.check_publisher_nodes,
    "container-runtimes": objects.check_runtimes,
    "pools": objects.check_pools,
    "slice-managers": objects.check_managers,
    "leases": objects.check_leases,
    "pod-security": objects.check_pod_security,
    "quota": objects.check_quota,
    "admin-access": objects.check_admin_access,
    "plugin-slices": machines.check_plugin,
}
MACHINE_CHECKS: Mapping[str, Callable[[MachineFacts, Subject], Verdict]] = {
    "python": machines.check_python,
    "packages": machines.check_packages,
    "ports": machines.check_ports,
    "state-directory": machines.check_state_directory,
    "open-files": machines.check_open_files,
    "kubelet-directories": machines.check_kubelet_directories,
    "plugin-sockets": machines.check_sockets,
    "cdi": machines.check_cdi,
    "cdi-specs": machines.check_cdi_specs,
}


def examine(
    cluster: ClusterFacts | Verdict, machine: MachineFacts, subject: Subject
) -> tuple[Finding, ...]:
    """
    Return the finding of each check.

    `cluster` is a verdict if the cluster cannot be reached; the checks of it are skipped then.
    """
    return tuple(_findings(cluster, machine, subject))


def _findings(
    cluster: ClusterFacts | Verdict, machine: MachineFacts, subject: Subject
) -> Iterator[Finding]:
    for name, check in CLUSTER_CHECKS.items():
        if isinstance(cluster, Verdict):
            is_first = name == API_SERVER
            yield Finding(name, *(cluster if is_first else skip("no cluster was read")))
        else:
            yield Finding(name, *_verdict(partial(check, cluster, machine, subject)))
    for name, run in MACHINE_CHECKS.items():
        yield Finding(name, *_verdict(partial(run, machine, subject)))


def _verdict(check: Callable[[], Verdict]) -> Verdict:
    try:
        return check()
    except UnknownFactError as error:
        return Verdict(State.UNKNOWN, error.unknown.reason, error.unknown.fix)
