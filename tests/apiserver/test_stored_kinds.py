"""Kinds that charts ship and nothing here acts on: kept, shown, and said to be so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import CountingChance
from tests.apiserver.whole_plane import Answer, WholePlane

from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import User
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.process.modes import AuthorizationMode

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"
NETWORK = "/apis/networking.k8s.io/v1"
SCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"

WEBHOOK = {
    "name": "jobs.example.com",
    "clientConfig": {"service": {"name": "hooks", "namespace": "kueue-system"}},
    "rules": [
        {
            "apiGroups": ["batch"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["jobs"],
        }
    ],
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
}


@pytest.fixture
def plane() -> WholePlane:
    return WholePlane()


def named(name: str, **more: Any) -> Raw:
    return {"metadata": {"name": name}, **more}


@pytest.mark.parametrize("kind", ["validating", "mutating"])
def test_webhooks_of_services_are_completed_kept_and_said_not_to_be_called(
    plane: WholePlane, kind: str
) -> None:
    """Whoever registers a webhook that runs in no pod learns at once that it does nothing."""
    path = f"{ADMISSION}/{kind}webhookconfigurations"
    made = plane.create(path, named("hooks", webhooks=[WEBHOOK]))

    assert made.status == 201
    [warning] = made.warnings
    assert warning == (
        "dryrack does not call webhooks of the Service kueue-system/hooks: no program runs in its "
        "pods; run it elsewhere, and annotate the Service with dryrack.dev/address=HOST:PORT"
    )
    webhook = made.body["webhooks"][0]
    assert webhook["failurePolicy"] == "Fail"
    assert webhook["timeoutSeconds"] == 10
    assert webhook["clientConfig"]["service"]["port"] == 443
    assert webhook["rules"][0]["scope"] == "*"
    assert webhook.get("reinvocationPolicy") == ("Never" if kind == "mutating" else None)
    assert made.body["metadata"]["generation"] == 1
    assert plane.rows(path)[0][:2] == ["hooks", 1]


def test_the_generation_of_webhooks_counts_their_changes(plane: WholePlane) -> None:
    """A program that writes its certificate into a webhook makes a new generation."""
    path = f"{ADMISSION}/validatingwebhookconfigurations"
    made = plane.create(path, named("hooks", webhooks=[WEBHOOK])).body
    labelled = {**made, "metadata": {**made["metadata"], "labels": {"a": "b"}}}
    assert plane.ask("PUT", f"{path}/hooks", labelled).body["metadata"]["generation"] == 1

    labelled["metadata"].pop("resourceVersion")
    labelled["webhooks"][0]["clientConfig"]["caBundle"] = "Zm9v"
    assert plane.ask("PUT", f"{path}/hooks", labelled).body["metadata"]["generation"] == 2


def test_an_api_service_of_another_server_is_kept_and_not_available(plane: WholePlane) -> None:
    """Nothing is forwarded, and whoever waits for the service can read why."""
    path = "/apis/apiregistration.k8s.io/v1/apiservices"
    service = {"name": "visibility", "namespace": "kueue-system"}
    spec = {
        "group": "visibility.kueue.x-k8s.io",
        "version": "v1beta1",
        "groupPriorityMinimum": 100,
        "versionPriority": 100,
        "service": service,
    }
    made = plane.create(path, named("v1beta1.visibility.kueue.x-k8s.io", spec=spec))

    assert made.status == 201
    assert "is never available" in made.warnings[0]
    assert plane.rows(path)[0][:3] == [
        "v1beta1.visibility.kueue.x-k8s.io",
        "kueue-system/visibility",
        "False (FailedDiscoveryCheck)",
    ]


def test_an_api_service_is_named_after_what_it_serves(plane: WholePlane) -> None:
    """The refusal has the words of a real server."""
    spec = {"group": "a.example", "version": "v1"}
    refused = plane.create("/apis/apiregistration.k8s.io/v1/apiservices", named("x", spec=spec))

    assert refused.status == 422
    assert 'must be `spec.version+"."+spec.group`: "v1.a.example"' in refused.message


def test_flow_control_is_kept_and_shown(plane: WholePlane) -> None:
    """As Kueue's chart has it."""
    limited = {
        "nominalConcurrencyShares": 1,
        "limitResponse": {
            "type": "Queue",
            "queuing": {"queues": 64, "handSize": 4, "queueLengthLimit": 50},
        },
    }
    level = plane.create(
        f"{FLOW}/prioritylevelconfigurations",
        named("visibility", spec={"type": "Limited", "limited": limited}),
    ).body
    reference = {"name": "visibility"}
    schema = {"priorityLevelConfiguration": reference, "matchingPrecedence": 9000}
    plane.create(f"{FLOW}/flowschemas", named("visibility", spec=schema))

    usual = plane.create(
        f"{FLOW}/flowschemas", named("usual", spec={"priorityLevelConfiguration": reference})
    ).body
    assert level["spec"]["limited"]["lendablePercent"] == 0
    assert usual["spec"]["matchingPrecedence"] == 1000
    assert [row[0] for row in plane.rows(f"{FLOW}/flowschemas")] == ["usual", "visibility"]


def test_ingresses_and_network_policies_are_kept_and_shown(plane: WholePlane) -> None:
    """With the columns that kubectl users know."""
    rules = [{"host": f"{name}.example.com"} for name in "abcd"]
    spec = {"ingressClassName": "nginx", "rules": rules, "tls": [{"secretName": "s"}]}
    plane.create(f"{NETWORK}/namespaces/default/ingresses", named("web", spec=spec))
    plane.create(f"{NETWORK}/ingressclasses", named("nginx", spec={"controller": "a.example/b"}))
    selector = {"podSelector": {"matchLabels": {"app": "web"}}}
    rule = {"ports": [{"port": 53}]}
    denied = named("deny", spec={**selector, "egress": [rule]})
    policy = plane.create(f"{NETWORK}/namespaces/default/networkpolicies", denied).body

    shown = plane.rows(f"{NETWORK}/namespaces/default/ingresses")[0]
    hosts = "a.example.com,b.example.com,c.example.com + 1 more..."
    assert shown[:5] == ["web", "nginx", hosts, "", "80, 443"]
    assert plane.rows(f"{NETWORK}/ingressclasses")[0][:3] == ["nginx", "a.example/b", "<none>"]
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert policy["spec"]["egress"][0]["ports"] == [{"port": 53, "protocol": "TCP"}]
    assert plane.rows(f"{NETWORK}/networkpolicies")[0][:2] == ["deny", "app=web"]


@pytest.mark.parametrize(
    ("path", "spec", "plurals"),
    [
        (
            SCALERS.format("v2"),
            {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}},
            ["horizontalpodautoscalers"],
        ),
        (
            f"{NETWORK}/namespaces/default/networkpolicies",
            {"podSelector": {}},
            ["networkpolicies"],
        ),
        (f"{NETWORK}/ingressclasses", {"controller": "a.example/b"}, []),
        ("/api/v1/namespaces/default/configmaps", None, []),
        ("/api/v1/namespaces/default/endpoints", None, []),
    ],
)
def test_a_kind_without_a_controller_is_created_with_a_warning(
    plane: WholePlane, path: str, spec: Raw | None, plurals: list[str]
) -> None:
    """Only its creation warns, and not that of kinds that need no controller."""
    made = plane.create(path, named("web", **({"spec": spec} if spec else {})))
    assert made.status == 201
    assert list(made.warnings) == [
        f"no controller of dryrack acts on {plural}; the object is only stored"
        for plural in plurals
    ]

    labelled = made.body | {"metadata": made.body["metadata"] | {"labels": {"a": "b"}}}
    assert not plane.ask("PUT", f"{path}/web", labelled).warnings


REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
REQUEST = named(
    "jane:dev",
    spec={
        "request": "LS0tLS1CRUdJTg==",
        "signerName": "example.com/people",
        "usages": ["client auth"],
        "username": "somebody else",
        "expirationSeconds": 7200,
    },
)
APPROVED = {"type": "Approved", "status": "True", "reason": "KubectlApprove"}
DENIED = {"type": "Denied", "status": "True", "reason": "KubectlDeny"}


def decided(plane: WholePlane, part: str, *conditions: Raw, **spec: Any) -> Answer:
    """The answer to a PUT of these conditions, as kubectl sends it."""
    found = plane.ask("GET", f"{REQUESTS}/jane:dev").body
    sent = {**found, "spec": {**found["spec"], **spec}, "status": {"conditions": conditions}}
    return plane.ask("PUT", f"{REQUESTS}/jane:dev{part}", sent)


def test_a_certificate_request_is_approved_by_its_own_part_alone(plane: WholePlane) -> None:
    """`kubectl certificate approve`: the condition has its times, and nothing else changes."""
    made = plane.create(REQUESTS, REQUEST).body
    assert made["spec"]["username"] == "system:admin"
    assert plane.rows(REQUESTS)[0][2:] == [
        *("example.com/people", "system:admin", "120m", "Pending"),
    ]
    assert decided(plane, "", APPROVED).body["status"] == {}
    by_status = decided(plane, "/status", APPROVED)
    assert by_status.status == 422
    assert 'status.conditions: Forbidden: updates may not add a condition of type "Approved"' in (
        by_status.message
    )
    approved = decided(plane, "/approval", APPROVED, signerName="example.com/others")
    assert approved.status == 200, approved.message
    [condition] = approved.body["status"]["conditions"]
    assert condition == {
        **APPROVED,
        "lastUpdateTime": condition["lastTransitionTime"],
        "lastTransitionTime": made["metadata"]["creationTimestamp"],
    }
    assert approved.body["spec"] == made["spec"]
    assert plane.rows(REQUESTS)[0][-1] == "Approved"
    signed = plane.ask(
        "PATCH",
        f"{REQUESTS}/jane:dev/status",
        {"status": {"certificate": "QQ=="}},
        content_type="application/merge-patch+json",
    )
    assert signed.body["status"] == {"certificate": "QQ==", "conditions": [condition]}


@pytest.mark.parametrize(
    ("conditions", "problem"),
    [
        ((APPROVED, DENIED), 'status.conditions: Invalid value: "Denied": Approved and Denied'),
        ((APPROVED, APPROVED), 'status.conditions[1].type: Duplicate value: "Approved"'),
        (
            ({**APPROVED, "status": "False"},),
            'Unsupported value: "False": supported values: "True"',
        ),
        (({"type": "Approved"},), "status.conditions[0].status: Required value"),
        ((), 'Forbidden: updates may not remove a condition of type "Approved"'),
    ],
)
def test_an_approval_that_makes_no_sense_is_refused(
    plane: WholePlane, conditions: tuple[Raw, ...], problem: str
) -> None:
    """It is one decision, it is true, and it stays."""
    plane.create(REQUESTS, REQUEST)
    if not conditions:
        decided(plane, "/approval", APPROVED)

    refused = decided(plane, "/approval", *conditions)
    assert refused.status == 422
    assert problem in refused.message


def test_who_approves_needs_the_right_for_the_signer() -> None:
    """To write the part is not enough: `approve` on the signer, or on all of its domain."""
    options = ControlPlaneOptions(
        clock=VirtualClock(), chance=CountingChance(), authorization=AuthorizationMode.RBAC
    )
    plane = WholePlane(options)
    jane = User("jane", ("system:authenticated",))
    plane.create(REQUESTS, REQUEST)
    group = ["certificates.k8s.io"]
    write: Raw = {"apiGroups": group, "resources": ["*"], "verbs": ["get", "update"]}
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    plane.create(roles, named("jane", rules=[write]))
    subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    plane.create(
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        named("jane", subjects=[subject], roleRef=role),
    )
    found = plane.ask("GET", f"{REQUESTS}/jane:dev", user=jane).body
    sent = {**found, "status": {"conditions": [APPROVED]}}
    denied = plane.ask("PUT", f"{REQUESTS}/jane:dev/approval", sent, user=jane)
    assert (denied.status, denied.message.partition("forbidden: ")[2]) == (
        403,
        'user not permitted to approve requests with signerName "example.com/people"',
    )
    approve = {"apiGroups": group, "resources": ["signers"], "verbs": ["approve"]}
    rules = [write, {**approve, "resourceNames": ["example.com/*"]}]
    plane.ask("PUT", f"{roles}/jane", named("jane", rules=rules))
    assert plane.ask("PUT", f"{REQUESTS}/jane:dev/approval", sent, user=jane).status == 200


def test_an_autoscaler_is_one_object_in_both_versions(plane: WholePlane) -> None:
    """What the first version cannot say survives an update in it."""
    target = {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}
    spec = {"scaleTargetRef": target, "maxReplicas": 5, "targetCPUUtilizationPercentage": 60}
    plane.create(SCALERS.format("v1"), named("web", spec=spec))
    newer = plane.ask("GET", SCALERS.format("v2") + "/web").body
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    assert newer["spec"]["metrics"] == [{"type": "Resource", "resource": cpu}]

    memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}
    newer["spec"]["metrics"].append({"type": "Resource", "resource": memory})
    plane.ask("PUT", SCALERS.format("v2") + "/web", newer)
    older = plane.ask("GET", SCALERS.format("v1") + "/web").body
    assert older["spec"] == {**spec, "minReplicas": 1}
    older["spec"]["maxReplicas"] = 6
    plane.ask("PUT", SCALERS.format("v1") + "/web", older)

    newer = plane.ask("GET", SCALERS.format("v2") + "/web").body
    assert [each["resource"]["name"] for each in newer["spec"]["metrics"]] == ["cpu", "memory"]
    assert newer["spec"]["maxReplicas"] == 6
    assert "annotations" not in newer["metadata"]
    shown = plane.rows(SCALERS.format("v2"))[0][:4]
    assert shown == [
        "web",
        "Deployment/web",
        "cpu: <unknown>/60%, memory: <unknown>/1Gi",
        "1",
    ]


def test_an_autoscaler_without_a_goal_has_the_usual_one(plane: WholePlane) -> None:
    """80 % of CPU, in whichever version it is written."""
    target = {"kind": "Deployment", "name": "web"}
    for version in ("v1", "v2"):
        spec = {"scaleTargetRef": target, "maxReplicas": 5}
        plane.create(SCALERS.format(version), named(version, spec=spec))

    assert [row[2] for row in plane.rows(SCALERS.format("v1"))] == ["cpu: <unknown>/80%"] * 2


def test_extension_servers_find_what_they_trust() -> None:
    """The ConfigMap is there as soon as the cluster has an authority."""
    options = ControlPlaneOptions(clock=VirtualClock(), chance=CountingChance(), authority="PEM")
    path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    found = WholePlane(options).ask("GET", path)

    assert found.status == 200
    assert found.body["data"]["client-ca-file"] == "PEM"
    assert found.body["data"]["requestheader-username-headers"] == '["X-Remote-User"]'
