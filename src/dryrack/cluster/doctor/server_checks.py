"""Checks of the API server: versions, APIs, feature gates, rights, webhooks, and policies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.client.endpoints import LEASES, NODES
from dryrack.client.timekeeping import seconds_of
from dryrack.cluster.doctor.model import (
    ENGINES,
    Unknown,
    UnknownFactError,
    fail,
    ok,
    require,
    several,
    skip,
    warn,
)
from dryrack.cluster.doctor.webhook_rules import (
    MUTATING_WEBHOOKS,
    POLICIES,
    POLICY_BINDINGS,
    VALIDATING_WEBHOOKS,
    applies_to,
    blocking_services,
)
from dryrack.cluster.process.component_status import describe_failure
from dryrack.controllers.slices import has_kubelet
from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from dryrack.cluster.doctor.model import Attempt, ClusterFacts, MachineFacts, Subject, Verdict
    from dryrack.kinds.raw import Raw

# resource.k8s.io/v1 is served from this minor release on.
MINOR_MIN = 34
# From this release on, the API server checks who writes allocations and the status of devices.
GRANULAR_MINOR_MIN = 36
KUBELET_SKEW_MAX = 3
_RESOURCE = "resource.k8s.io"
_SCHEDULING = "scheduling.k8s.io"
_NODE_NAME = "authentication.kubernetes.io/node-name"
_KUBE_SCHEDULER = ("kube-system", "kube-scheduler")
# What does not work without the gate. The keys are those of the dry runs.
GATES = {
    "DRAPartitionableDevices": "partitions of devices",
    "DRADeviceTaints": "taints of devices",
    "DRADeviceBindingConditions": "binding conditions",
    "DRAConsumableCapacity": "devices that several claims share",
}
_RELEASE = re.compile(r"v?([0-9]+)\.([0-9]+)")


def minor_of(version: str) -> int | None:
    """Return the minor release of a version such as v1.36.4; None for other texts."""
    match = _RELEASE.match(version)
    return int(match[2]) if match and match[1] == "1" else None


def _server_minor(cluster: ClusterFacts) -> int | None:
    """Return the release that the API server behaves as."""
    version = cluster.version
    emulated = str(version.get("emulationMinor") or "")
    minor = minor_of(str(version.get("gitVersion", "")))
    return int(emulated) if emulated.isdigit() and minor is not None else minor


def check_api_server(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    if not cluster.is_live:
        return fail(
            f"{cluster.server} is not healthy: /livez fails",
            "see: kubectl get --raw '/livez?verbose'",
        )
    user = cluster.user
    name = "an unknown user" if isinstance(user, Unknown) else f"user {user.name}"
    return ok(f"{cluster.server} answers {name}")


def check_version(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    text = str(cluster.version.get("gitVersion", ""))
    minor = _server_minor(cluster)
    if minor is None:
        raise UnknownFactError(Unknown(f"the API server reports the version {text!r}"))
    if minor < MINOR_MIN:
        return fail(
            f"the API server is Kubernetes 1.{minor}, which does not serve {_RESOURCE}/v1",
            f"upgrade the control plane to Kubernetes 1.{MINOR_MIN} or newer",
        )
    return ok(f"Kubernetes {text}")


def check_kubelets(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    server = _server_minor(cluster)
    wrong = []
    kubelets = [node for node in cluster.items(NODES) if has_kubelet(node)]
    if not kubelets or server is None:
        return skip("no node has a kubelet")
    for node in kubelets:
        version = get(node, "status.nodeInfo.kubeletVersion", "")
        minor = minor_of(version)
        name = node["metadata"]["name"]
        if minor is None or server - KUBELET_SKEW_MAX <= minor <= server:
            continue
        relation = (
            "newer than" if minor > server else f"more than {KUBELET_SKEW_MAX} releases older than"
        )
        wrong.append(f"the kubelet {version} of node {name} is {relation} the API server")
    if wrong:
        return fail(
            several(wrong), f"upgrade to kubelets from 1.{server - KUBELET_SKEW_MAX} to 1.{server}"
        )
    return ok(f"{len(kubelets)} kubelets are compatible with the API server")


def check_kubectl(cluster: ClusterFacts, machine: MachineFacts, _: Subject) -> Verdict:
    if machine.kubectl is None:
        return skip("kubectl is not installed")
    version = require(machine.kubectl)
    client, server = minor_of(version), _server_minor(cluster)
    if client is None or server is None:
        raise UnknownFactError(Unknown(f"kubectl reports the version {version!r}"))
    if abs(client - server) > 1:
        return warn(
            f"kubectl {version} is more than one release away from the API server 1.{server}",
            f"install kubectl 1.{server}",
        )
    return ok(f"kubectl {version}")


def check_clock(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    skew = cluster.clock_skew_seconds
    if skew is None:
        raise UnknownFactError(Unknown("the API server sends no time"))
    # The time in HTTP has whole seconds.
    if abs(skew) < 2:
        return ok("this machine and the API server have the same time")
    relation = "ahead of" if skew > 0 else "behind"
    message = f"the clock of this machine is {abs(skew):.0f} s {relation} that of the API server"
    fix = "synchronize the clocks, for example with chrony"
    return fail(message, fix) if abs(skew) >= 60 else warn(message, fix)


def check_dra_api(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    versions = require(cluster.versions)
    plurals = ("deviceclasses", "resourceslices", "resourceclaims", "resourceclaimtemplates")
    missing = [each for each in plurals if versions.get((_RESOURCE, each)) != "v1"]
    if missing:
        return fail(
            f"{_RESOURCE}/v1 does not serve {', '.join(missing)}",
            f"use Kubernetes 1.{MINOR_MIN} or newer, without --runtime-config that disables it",
        )
    return ok(f"{_RESOURCE}/v1 is served")


def check_optional_apis(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    versions = require(cluster.versions)
    rules = versions.get((_RESOURCE, "devicetaintrules"))
    groups = versions.get((_SCHEDULING, "podgroups"))
    missing, gates, configs = [], [], []
    if rules is None:
        missing.append("DeviceTaintRule")
        gates.append("DRADeviceTaintRules=true")
        configs.append("resource.k8s.io/v1beta2=true")
    if groups is None:
        missing.append("PodGroup of scheduling.k8s.io")
        gates.append("GenericWorkload=true")
        is_new = (_server_minor(cluster) or 0) > GRANULAR_MINOR_MIN
        configs.append(f"scheduling.k8s.io/{'v1beta1' if is_new else 'v1alpha2'}=true")
    if missing:
        server = "dryrack up" if cluster.is_virtual else "kube-apiserver"
        flags = f"--feature-gates={','.join(gates)} --runtime-config={','.join(configs)}"
        fix = f"if you need them, start {server} with {flags}"
        return warn(f"not served: {', '.join(missing)}", fix)
    return ok(f"DeviceTaintRule {rules} and PodGroup {groups} are served")


def check_feature_gates(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    """A gate is off if the API server drops the fields of the gate from a ResourceSlice."""
    plain = _is_accepted(cluster)
    off = []
    for gate, meaning in GATES.items():
        attempt = cluster.attempts[gate]
        if attempt.object is not None:
            kept = len(attempt.object["spec"]["devices"][0]) > len(plain["spec"]["devices"][0])
        else:
            # Validation sees a field only if the gate is on.
            kept = "spec.devices[0]" in attempt.refusal
            if not kept:
                raise UnknownFactError(Unknown(f"the dry run for {gate} fails: {attempt.refusal}"))
        if not kept:
            off.append(f"{gate} ({meaning})")
    if off:
        names = ",".join(f"{each.split()[0]}=true" for each in off)
        return warn(
            f"off on the API server: {', '.join(off)}",
            f"if you need them, start all components with --feature-gates={names}",
        )
    return ok(f"on: {', '.join(GATES)}")


def _is_accepted(cluster: ClusterFacts) -> Raw:
    """Return the ResourceSlice of the dry run without special fields; raise if it was refused."""
    attempt = _dry_run(cluster)
    if attempt.object is None:
        raise UnknownFactError(Unknown(f"the API server refuses a dry run: {attempt.refusal}"))
    return attempt.object


def _dry_run(cluster: ClusterFacts) -> Attempt:
    attempt = cluster.attempts.get("")
    if attempt is None:
        raise UnknownFactError(Unknown("resource.k8s.io/v1 is not served"))
    if not attempt.is_allowed:
        fix = "grant create on resourceslices, which a dry run needs, or check --feature-gates"
        raise UnknownFactError(Unknown(attempt.refusal, fix))
    return attempt


def check_policies(cluster: ClusterFacts, _: MachineFacts, subject: Subject) -> Verdict:
    denying = {
        get(each, "spec.policyName", "")
        for each in cluster.items(POLICY_BINDINGS)
        if "Deny" in get(each, "spec.validationActions", ())
    }
    names = [
        each["metadata"]["name"]
        for each in cluster.items(POLICIES)
        if each["metadata"]["name"] in denying
        and any(
            applies_to(rule, _RESOURCE, "resourceslices")
            for rule in get(each, "spec.matchConstraints.resourceRules", ())
        )
    ]
    if not names:
        return ok("no ValidatingAdmissionPolicy restricts ResourceSlices")
    attempt = _dry_run(cluster)
    if attempt.object is None and "ValidatingAdmissionPolicy" in attempt.refusal:
        is_needed = subject.engines & {"publish", "plugin"}
        verdict = fail if is_needed else warn
        return verdict(
            attempt.refusal,
            f"allow driver {subject.driver} in the policy, or name another one with --driver",
        )
    if attempt.object is None:
        raise UnknownFactError(Unknown(f"the API server refuses a dry run: {attempt.refusal}"))
    return ok(f"{', '.join(names)} allow a ResourceSlice of driver {subject.driver}")


def check_webhooks(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    configurations = [
        *cluster.items(VALIDATING_WEBHOOKS),
        *cluster.items(MUTATING_WEBHOOKS),
    ]
    broken = []
    services = list(blocking_services(configurations))
    for name, service in services:
        if cluster.services[service] is False:
            what = f"Service {'/'.join(service)} has no ready endpoint"
            broken.append(f"webhook {name} blocks Pods or claims: {what}")
    if broken:
        return fail(
            several(broken),
            "start the program behind the Service, or delete the webhook configuration",
        )
    for each in cluster.services.values():
        require(each)
    return ok("the Service of each webhook for Pods and claims has a ready endpoint")


def check_scheduler(cluster: ClusterFacts, _: MachineFacts, __: Subject) -> Verdict:
    if cluster.is_virtual:
        failures = require(cluster.component_failures)
        if failures:
            return fail(
                several([describe_failure(each) for each in failures]),
                "see the log that dryrack status names",
            )
        return ok("no component of the virtual cluster has failed")
    leases = [
        each
        for each in cluster.items(LEASES)
        if (each["metadata"]["namespace"], each["metadata"]["name"]) == _KUBE_SCHEDULER
    ]
    if not leases:
        return warn(
            "lease kube-system/kube-scheduler does not exist",
            "start kube-scheduler, or schedule your Pods with dryrack schedule",
        )
    age = expired_seconds(leases[0], cluster)
    if age is not None:
        return fail(
            f"kube-scheduler has not renewed its lease for {age:.0f} s",
            "restart kube-scheduler, and see its log",
        )
    return ok(f"kube-scheduler runs as {get(leases[0], 'spec.holderIdentity', '')}")


def expired_seconds(lease: Raw, cluster: ClusterFacts) -> float | None:
    """Return the age of a lease that has a holder and has expired; None for others."""
    renewed = get(lease, "spec.renewTime", "")
    if not get(lease, "spec.holderIdentity", "") or not renewed:
        return None
    if cluster.server_time is None:
        raise UnknownFactError(Unknown("the API server sends no time"))
    age = cluster.server_time - seconds_of(renewed)
    return age if age > max(15, get(lease, "spec.leaseDurationSeconds", 0)) else None


def check_rights(engine: str, cluster: ClusterFacts, subject: Subject) -> Verdict:
    """Check the rights that the manifest of a command grants."""
    assert engine in ENGINES
    denied = require(cluster.denied[engine])
    name = subject.account or ("" if isinstance(cluster.user, Unknown) else cluster.user.name)
    who = f"user {name}" if name else "the current user"
    if not denied:
        return ok(f"{who} has the permissions of dryrack {engine}")
    message = f"{who} may not: {several(denied)}"
    verdict = fail if engine in subject.engines else warn
    bind = "" if not subject.account else ", and bind the roles to the account"
    return verdict(message, f"dryrack {engine} --print-rbac | kubectl apply -f -{bind}")


def check_token_node(cluster: ClusterFacts, _: MachineFacts, subject: Subject) -> Verdict:
    minor = _server_minor(cluster)
    if "plugin" not in subject.engines:
        return skip("only for --for plugin")
    if subject.account:
        return skip("--as names an account, which has no token here")
    if minor is not None and minor < GRANULAR_MINOR_MIN:
        return skip(f"Kubernetes 1.{minor} does not check the node of a token")
    extra = require(cluster.user).extra
    nodes = extra.get(_NODE_NAME, ())
    if len(nodes) == 1:
        return ok(f"the token is bound to node {nodes[0]}")
    if require(cluster.may_write_for_any_node):
        return ok("the token is bound to no node, and arbitrary-node:patch is granted")
    return fail(
        "the token is bound to no node, so the API server refuses the device status of claims",
        "run the plugin in a Pod of the node, or grant arbitrary-node:patch on "
        "resourceclaims/driver",
    )
