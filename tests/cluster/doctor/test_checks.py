"""Each check finds the problem that it looks for, and passes if there is no problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.doctor.facts import (
    HOURS_AGO,
    SOCKET,
    SPEC,
    attempts,
    cluster,
    lease,
    machine,
    named,
    node,
    slice_,
)

from dryrack.client.endpoints import (
    CLAIMS,
    DAEMON_SETS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    NODES,
    QUOTAS,
    SLICES,
    TEMPLATES,
    Endpoint,
)
from dryrack.client.transport import User
from dryrack.cluster.doctor import (
    CLUSTER_CHECKS,
    MACHINE_CHECKS,
    ClusterFacts,
    Finding,
    MachineFacts,
    State,
    Subject,
    Unknown,
    examine,
    fail,
)
from dryrack.cluster.doctor.model import Attempt, PluginSocket
from dryrack.cluster.doctor.webhook_rules import (
    POLICIES,
    POLICY_BINDINGS,
    VALIDATING_WEBHOOKS,
)
from dryrack.kinds.raw import Raw

OK, WARNING, FAILED = State.OK, State.WARNING, State.FAILED
SKIPPED, UNKNOWN = State.SKIPPED, State.UNKNOWN
Lists = dict[Endpoint, tuple[Raw, ...]]
NODE_NAME = "authentication.kubernetes.io/node-name"


def finding(name: str, changes: dict[str, Any]) -> Finding:
    """Return the finding of one check for healthy facts with changes."""
    of_cluster = {key: each for key, each in changes.items() if hasattr(ClusterFacts, key)}
    of_machine = {key: each for key, each in changes.items() if hasattr(MachineFacts, key)}
    subject = Subject(
        engines=frozenset(changes.get("engines", ())),
        account=changes.get("account", ""),
        namespace=changes.get("namespace", ""),
        node="n1",
    )
    findings = examine(cluster(**of_cluster), machine(**of_machine), subject)
    return next(each for each in findings if each.check == name)


def webhook(policy: str = "Fail") -> Lists:
    hook = {
        "name": "w.example.com",
        "failurePolicy": policy,
        "clientConfig": {"service": {"namespace": "hooks", "name": "w"}},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "operations": ["CREATE"]}],
    }
    return {VALIDATING_WEBHOOKS: (named("w", webhooks=[hook]),)}


RULE = {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"]}
POLICY = {
    POLICIES: (named("p", spec={"matchConstraints": {"resourceRules": [RULE]}}),),
    POLICY_BINDINGS: (named("p", spec={"policyName": "p", "validationActions": ["Deny"]}),),
}
REFUSED = attempts(**{"": Attempt(None, "ValidatingAdmissionPolicy 'p' denied request: no")})
FORBIDDEN = attempts(**{"": Attempt(None, "may not create", is_allowed=False)})
DROPPED = attempts(DRADeviceTaints=Attempt({"spec": {"devices": [{"name": "device-0"}]}}))
INVALID = attempts(DRADeviceTaints=Attempt(None, "spec.devices[0].taints: invalid"))
BROKEN = attempts(DRADeviceTaints=Attempt(None, "webhook w does not support dry run"))
DRIVER_SET = named(
    "plugin",
    "dra",
    spec={
        "template": {
            "spec": {
                "priorityClassName": "system-node-critical",
                "volumes": [{"hostPath": {"path": "/var/lib/kubelet/plugins_registry"}}],
            }
        }
    },
)
PUBLISHED = {"kwok.x-k8s.io/managed-by": "dra-kwok-driver"}
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
KWOK = node("k1", kwok=True, kubelet="kwok")


def quota(used: str, **spec: Any) -> dict[str, Any]:
    status = {"hard": {DEVICES: "4"}, "used": {DEVICES: used}}
    return named("q", "team", spec=spec, status=status)


CRITICAL = named(
    "critical",
    "kube-system",
    spec={
        "scopeSelector": {
            "matchExpressions": [
                {"scopeName": "PriorityClass", "values": ["system-node-critical"]},
            ]
        }
    },
)


def restricted(level: str) -> Lists:
    labels = {"pod-security.kubernetes.io/enforce": level}
    return {NAMESPACES: (named("dra", metadata={"labels": labels}),), DAEMON_SETS: (DRIVER_SET,)}


def admin_claim(label: str) -> Lists:
    request = {"name": "r", "exactly": {"deviceClassName": "c", "adminAccess": True}}
    claim = named("c", "team", kind="ResourceClaim", spec={"devices": {"requests": [request]}})
    labels = {"resource.kubernetes.io/admin-access": label}
    return {CLAIMS: (claim,), NAMESPACES: (named("team", metadata={"labels": labels}),)}


ADMIN_TEMPLATE = named(
    "t",
    "team",
    kind="ResourceClaimTemplate",
    spec={"spec": {"devices": {"requests": [{"name": "r", "exactly": {"adminAccess": True}}]}}},
)
BOUND = User("ann", extra={NODE_NAME: ("n1",)})
FAILURE = {"component": "scheduler", "error": "boom", "count": 1, "restartsAt": "x"}
VIRTUAL = {"gitVersion": "v1.36.4+dryrack"}

# The check, the changes of healthy facts, the state, and a part of the message.
CASES: list[tuple[str, dict[str, Any], State, str]] = [
    ("api-server", {}, OK, "answers user ann"),
    ("api-server", {"is_live": False}, FAILED, "/livez"),
    ("version", {}, OK, "v1.36.2"),
    ("version", {"version": {"gitVersion": "v1.33.9"}}, FAILED, "1.33"),
    ("version", {"version": {"gitVersion": "v1.36.0", "emulationMinor": "33"}}, FAILED, "1.33"),
    ("version", {"version": {}}, UNKNOWN, "version"),
    ("kubelet-versions", {}, OK, "1 kubelets"),
    ("kubelet-versions", {"lists": {NODES: (node(kubelet="v1.32.0"),)}}, FAILED, "node n1"),
    ("kubelet-versions", {"lists": {NODES: (node(kubelet="v1.37.0"),)}}, FAILED, "newer"),
    ("kubelet-versions", {"lists": {NODES: (KWOK,)}}, SKIPPED, "no node"),
    ("kubelet-versions", {"lists": {NODES: Unknown("forbidden")}}, UNKNOWN, "forbidden"),
    ("kubectl", {}, OK, "v1.36.0"),
    ("kubectl", {"kubectl": "v1.30.1"}, WARNING, "v1.30.1"),
    ("kubectl", {"kubectl": "dev"}, UNKNOWN, "'dev'"),
    ("kubectl", {"kubectl": None}, SKIPPED, "not installed"),
    ("clock", {}, OK, "same time"),
    ("clock", {"clock_skew_seconds": 7.0}, WARNING, "7 s ahead of"),
    ("clock", {"clock_skew_seconds": -90.0}, FAILED, "90 s behind"),
    ("clock", {"clock_skew_seconds": None}, UNKNOWN, "no time"),
    ("dra-api", {}, OK, "v1 is served"),
    ("dra-api", {"versions": {("resource.k8s.io", "deviceclasses"): "v1beta1"}}, FAILED, "slices"),
    ("dra-api", {"versions": Unknown("no discovery")}, UNKNOWN, "no discovery"),
    ("optional-apis", {}, OK, "v1beta2"),
    ("optional-apis", {"versions": {}}, WARNING, "DeviceTaintRule, PodGroup"),
    ("feature-gates", {}, OK, "DRADeviceTaints"),
    ("feature-gates", {"attempts": INVALID}, OK, "DRADeviceTaints"),
    ("feature-gates", {"attempts": DROPPED}, WARNING, "DRADeviceTaints (taints of devices)"),
    ("feature-gates", {"attempts": BROKEN}, UNKNOWN, "does not support dry run"),
    ("feature-gates", {"attempts": FORBIDDEN}, UNKNOWN, "may not create"),
    ("feature-gates", {"attempts": REFUSED}, UNKNOWN, "denied"),
    ("scheduler", {"lists": {LEASES: (lease("kube-scheduler", "kube-system"),)}}, OK, "pod-a"),
    ("scheduler", {"lists": {LEASES: ()}}, WARNING, "does not exist"),
    (
        "scheduler",
        {"lists": {LEASES: (lease("kube-scheduler", "kube-system", HOURS_AGO),)}},
        FAILED,
        "10800 s",
    ),
    ("scheduler", {"version": VIRTUAL}, OK, "virtual"),
    ("scheduler", {"version": VIRTUAL, "component_failures": (FAILURE,)}, FAILED, "boom"),
    *[(f"rights-{engine}", {}, OK, "ann") for engine in ("publish", "schedule", "plugin")],
    ("rights-dashboard", {"account": "bob"}, OK, "bob"),
    *[
        (
            f"rights-{engine}",
            {"denied": {**cluster().denied, engine: ("list nodes",)}, "engines": (engine,)},
            FAILED,
            "list nodes",
        )
        for engine in ("publish", "schedule", "plugin", "dashboard")
    ],
    ("rights-plugin", {"denied": {**cluster().denied, "plugin": ("a",)}}, WARNING, "a"),
    ("rights-plugin", {"denied": {**cluster().denied, "plugin": Unknown("no")}}, UNKNOWN, "no"),
    ("token-node", {"engines": ("plugin",), "user": BOUND}, OK, "node n1"),
    ("token-node", {"engines": ("plugin",)}, FAILED, "no node"),
    ("token-node", {"engines": ("plugin",), "may_write_for_any_node": True}, OK, "arbitrary"),
    (
        "token-node",
        {"engines": ("plugin",), "may_write_for_any_node": Unknown("hidden")},
        UNKNOWN,
        "hidden",
    ),
    ("token-node", {}, SKIPPED, "--for plugin"),
    ("token-node", {"engines": ("plugin",), "account": "bob"}, SKIPPED, "--as"),
    (
        "token-node",
        {"engines": ("plugin",), "version": {"gitVersion": "v1.35.0"}},
        SKIPPED,
        "1.35",
    ),
    ("policies", {}, OK, "no Validating"),
    ("policies", {"lists": POLICY}, OK, "p allow"),
    ("policies", {"lists": POLICY, "attempts": REFUSED}, WARNING, "'p' denied"),
    (
        "policies",
        {"lists": POLICY, "attempts": REFUSED, "engines": ("publish",)},
        FAILED,
        "'p' denied",
    ),
    ("policies", {"lists": POLICY, "attempts": FORBIDDEN}, UNKNOWN, "may not create"),
    ("webhooks", {}, OK, "ready"),
    ("webhooks", {"lists": webhook(), "services": {("hooks", "w"): True}}, OK, "ready"),
    ("webhooks", {"lists": webhook(), "services": {("hooks", "w"): False}}, FAILED, "hooks/w"),
    ("webhooks", {"lists": webhook(), "services": {("hooks", "w"): Unknown("u")}}, UNKNOWN, "u"),
    ("webhooks", {"lists": webhook("Ignore")}, OK, "ready"),
    ("kwok", {"lists": {NODES: (KWOK,)}}, OK, "1 KWOK"),
    (
        "kwok",
        {"lists": {NODES: (node("k1", kwok=True, ready="Unknown"),)}},
        FAILED,
        "kwok-controller does not exist: k1",
    ),
    (
        "kwok",
        {
            "lists": {
                NODES: (node("k1", kwok=True, ready="Unknown"),),
                DEPLOYMENTS: (named("kwok-controller"),),
            }
        },
        FAILED,
        "not Ready: k1",
    ),
    (
        "kwok",
        {"version": VIRTUAL, "lists": {NODES: (node("k1", kwok=True, ready="Unknown"),)}},
        FAILED,
        "1 of 1 KWOK nodes are not Ready: k1",
    ),
    ("kwok", {}, SKIPPED, "--node-selector"),
    (
        "publisher-nodes",
        {"lists": {NODES: (KWOK,), SLICES: (slice_(node_name="k1", labels=PUBLISHED),)}},
        OK,
        "without a kubelet",
    ),
    (
        "publisher-nodes",
        {"lists": {SLICES: (slice_(labels=PUBLISHED),)}},
        FAILED,
        "s1 on node n1",
    ),
    ("publisher-nodes", {}, SKIPPED, "no ResourceSlice"),
    ("container-runtimes", {}, OK, "1 nodes"),
    (
        "container-runtimes",
        {"lists": {NODES: (node(runtime="containerd://1.6.20"),)}},
        FAILED,
        "containerd://1.6.20 of node n1",
    ),
    ("container-runtimes", {"lists": {NODES: (node(runtime="cri-o://1.27.1"),)}}, FAILED, "cri-o"),
    ("container-runtimes", {"lists": {NODES: (node(runtime="containerd://1.7.2"),)}}, WARNING, "1"),
    ("container-runtimes", {"lists": {NODES: (node(runtime="docker://24.0.1"),)}}, UNKNOWN, "24"),
    ("container-runtimes", {"lists": {NODES: (KWOK,)}}, SKIPPED, "kubelet"),
    ("pools", {}, OK, "1 pools"),
    ("pools", {"lists": {SLICES: (slice_(count=3),)}}, FAILED, "gpu.example.com/n1 has 1 of 3"),
    ("slice-managers", {}, OK, "one program"),
    (
        "slice-managers",
        {"lists": {SLICES: (slice_("a", count=2), slice_("b", count=2, manager="other"))}},
        WARNING,
        "dryrack-plugin, other",
    ),
    ("leases", {"lists": {LEASES: (lease("a", "b"),)}}, OK, "renew"),
    ("leases", {"lists": {LEASES: (lease("a", "b", HOURS_AGO),)}}, WARNING, "b/a of pod-a"),
    ("leases", {"lists": {LEASES: (lease("n1", "kube-node-lease", HOURS_AGO),)}}, OK, "renew"),
    ("pod-security", {"lists": restricted("privileged")}, OK, "dra"),
    ("pod-security", {"lists": restricted("baseline")}, FAILED, "dra enforces baseline"),
    (
        "pod-security",
        {
            "lists": {**restricted("restricted"), DAEMON_SETS: ()},
            "engines": ("plugin",),
            "namespace": "dra",
        },
        FAILED,
        "restricted",
    ),
    ("pod-security", {}, SKIPPED, "no DaemonSet"),
    ("quota", {"lists": {QUOTAS: (quota("3"),)}}, OK, "used up"),
    ("quota", {"lists": {QUOTAS: (quota("4"),)}}, WARNING, "team/q"),
    ("quota", {"lists": {QUOTAS: (CRITICAL,), DAEMON_SETS: (DRIVER_SET,)}}, WARNING, ": dra"),
    ("admin-access", {"lists": admin_claim("true")}, OK, "allow"),
    ("admin-access", {"lists": admin_claim("false")}, FAILED, "ResourceClaim team/c"),
    ("admin-access", {"lists": {TEMPLATES: (ADMIN_TEMPLATE,)}}, FAILED, "Template team/t"),
    ("admin-access", {}, SKIPPED, "adminAccess"),
    ("plugin-slices", {}, OK, "node n1 has"),
    ("plugin-slices", {"lists": {SLICES: ()}}, FAILED, "no ResourceSlice of gpu.example.com"),
    ("plugin-slices", {"sockets": ()}, SKIPPED, "does not run"),
    ("python", {}, OK, "3.11"),
    ("python", {"python": (3, 10, 2)}, FAILED, "3.10.2"),
    ("packages", {}, OK, "imported"),
    ("packages", {"import_errors": {"msgspec": "no module"}}, FAILED, "msgspec: no module"),
    ("packages", {"import_errors": {"grpcio": "no module"}}, WARNING, "dryrack plugin does not"),
    ("ports", {}, OK, "free"),
    ("ports", {"used_ports": frozenset({8082})}, WARNING, "port 8082 of dryrack publish"),
    ("ports", {"used_ports": frozenset({8082}), "engines": ("schedule",)}, OK, "free"),
    ("state-directory", {}, OK, "written"),
    ("state-directory", {"state_problem": "you may not write to /"}, FAILED, "may not write"),
    ("open-files", {}, OK, "1024"),
    ("open-files", {"open_files_max": 256}, WARNING, "256"),
    ("kubelet-directories", {}, OK, "written"),
    (
        "kubelet-directories",
        {"kubelet_roots": ("/data/kubelet",)},
        FAILED,
        "no kubelet uses /var/lib/kubelet",
    ),
    (
        "kubelet-directories",
        {"directory_problems": {"/var/lib/kubelet/plugins": "you may not write to it"}},
        FAILED,
        "plugins: you may not",
    ),
    (
        "kubelet-directories",
        {"kubelet_roots": (), "directory_problems": {"/var/lib/kubelet/plugins": "missing"}},
        SKIPPED,
        "no kubelet runs here",
    ),
    ("plugin-sockets", {}, OK, "1 plugins"),
    ("plugin-sockets", {"sockets": (PluginSocket(SOCKET, False),)}, FAILED, "no program listens"),
    ("plugin-sockets", {"sockets": (PluginSocket(SOCKET, Unknown("eperm")),)}, UNKNOWN, "eperm"),
    ("plugin-sockets", {"sockets": ()}, SKIPPED, "no plugin"),
    ("cdi", {}, OK, "/var/run/cdi"),
    ("cdi", {"containerd_version": "1.6.20"}, FAILED, "1.6.20 does not support CDI"),
    ("cdi", {"containerd_version": "1.7.24", "containerd": {"version": 2}}, FAILED, "off"),
    (
        "cdi",
        {
            "containerd_version": "1.7.24",
            "containerd": {
                "version": 2,
                "plugins": {"io.containerd.grpc.v1.cri": {"enable_cdi": True}},
            },
        },
        OK,
        "/var/run/cdi",
    ),
    (
        "cdi",
        {
            "containerd": {
                "version": 3,
                "plugins": {"io.containerd.cri.v1.runtime": {"cdi_spec_dirs": ["/opt/cdi"]}},
            }
        },
        FAILED,
        "does not read /var/run/cdi; it reads /opt/cdi",
    ),
    ("cdi", {"containerd_version": "", "containerd": {}}, UNKNOWN, "version"),
    ("cdi", {"cdi_directory": Path("/run/cdi")}, OK, "/run/cdi"),
    ("cdi", {"containerd": None}, SKIPPED, "not installed"),
    ("cdi-specs", {}, OK, "1 CDI specs"),
    ("cdi-specs", {"specs": (SPEC._replace(problem="cut off"),)}, FAILED, "cut off"),
    ("cdi-specs", {"specs": (SPEC._replace(uid="uid-2"),)}, WARNING, "no prepared claim"),
    ("cdi-specs", {"specs": (SPEC._replace(version="9.0.0"),)}, WARNING, "9.0.0"),
    ("cdi-specs", {"drivers": ()}, SKIPPED, "has not run"),
]


@pytest.mark.parametrize(("check", "changes", "state", "part"), CASES)
def test_each_check_has_its_state(
    check: str, changes: dict[str, Any], state: State, part: str
) -> None:
    """A check has the state that follows from its facts, and a fix for each problem."""
    result = finding(check, changes)

    assert (result.state, part in result.message) == (state, True), result
    assert bool(result.fix) == (state in (WARNING, FAILED)) or state is UNKNOWN


def test_every_check_has_a_case_that_passes_and_one_that_does_not() -> None:
    """No check is without a test of a problem, and none reports a problem of a healthy cluster."""
    checks = {*CLUSTER_CHECKS, *MACHINE_CHECKS}

    assert {check for check, _, state, _ in CASES if state is OK} == checks
    assert {check for check, _, state, _ in CASES if state in (WARNING, FAILED)} == checks


def test_without_a_cluster_only_the_machine_is_checked() -> None:
    """The first finding has the reason, and no check of the cluster is ok."""
    findings = examine(fail("no answer", "start it"), machine(), Subject())
    of_cluster = findings[: len(CLUSTER_CHECKS)]

    assert of_cluster[0] == Finding("api-server", FAILED, "no answer", "start it")
    assert {each.state for each in of_cluster[1:]} == {SKIPPED}
    assert {each.check for each in findings[len(CLUSTER_CHECKS) :]} == {*MACHINE_CHECKS}


@pytest.mark.parametrize("name", sorted(CLUSTER_CHECKS))
def test_no_check_of_a_cluster_is_ok_if_nothing_can_be_read(name: str) -> None:
    """A user without permissions gets `unknown` or `skipped`, except for what anyone can read."""
    unknown = Unknown("forbidden")
    healthy = cluster()
    endpoints = {*healthy.lists, LEASES, CLAIMS, TEMPLATES, NAMESPACES, DAEMON_SETS, QUOTAS}
    endpoints |= {POLICIES, POLICY_BINDINGS, VALIDATING_WEBHOOKS}
    blind = replace(
        healthy,
        user=unknown,
        server_time=None,
        clock_skew_seconds=None,
        versions=unknown,
        lists=dict.fromkeys(endpoints, unknown),
        attempts={},
        denied=dict.fromkeys(healthy.denied, unknown),
    )
    findings = examine(blind, machine(), Subject(engines=frozenset({"plugin"}), namespace="dra"))
    result = next(each for each in findings if each.check == name)

    public = {"api-server", "version", "kubectl"}
    assert result.state is (OK if name in public else UNKNOWN)
