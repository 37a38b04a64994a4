"""Validating admission policies: what they deny, and what is denied of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.replay import AS_RECORDED, CountingChance
from tests.apiserver.whole_plane import WholePlane

from dryrack.client.timekeeping import VirtualClock
from dryrack.client.transport import User
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.process.modes import AuthorizationMode

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{ADMISSION}/validatingadmissionpolicies"
BINDINGS = f"{ADMISSION}/validatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
ANY_MAP = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["*"],
    "resources": ["configmaps"],
}


@pytest.fixture
def plane() -> WholePlane:
    return WholePlane()


def policy(*validations: Raw, **spec: Any) -> Raw:
    """A policy about ConfigMaps, unless it says otherwise."""
    given = {"matchConstraints": {"resourceRules": [ANY_MAP]}, **spec}
    return {"metadata": {"name": "p"}, "spec": {**given, "validations": list(validations)}}


def binding(*actions: str, **spec: Any) -> Raw:
    given = {"policyName": "p", "validationActions": list(actions or ("Deny",)), **spec}
    return {"metadata": {"name": "b"}, "spec": given}


def bind(plane: WholePlane, made: Raw, bound: Raw | None = None) -> None:
    for path, each in ((POLICIES, made), (BINDINGS, bound or binding())):
        answer = plane.create(path, each)
        assert answer.status == 201, answer.message


def config_map(name: str = "m", **labels: str) -> Raw:
    return {"metadata": {"name": name, "labels": labels}, "data": {"a": "1"}}


def slice_of(node: str) -> Raw:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": []}
    return {"metadata": {"name": f"{node}-gpus"}, "spec": spec}


def plugin_on(node: str) -> User:
    extra = {"authentication.kubernetes.io/node-name": (node,)} if node else {}
    return User("system:serviceaccount:dra:plugin", ("system:authenticated",), extra=extra)


OWN_NODE = {
    "metadata": {"name": "p"},
    "spec": {
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": ["resource.k8s.io"],
                    "apiVersions": ["v1", "v1beta1"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": ["resourceslices"],
                }
            ]
        },
        "matchConditions": [
            {
                "name": "isPlugin",
                "expression": 'request.userInfo.username == "system:serviceaccount:dra:plugin"',
            }
        ],
        "variables": [
            {
                "name": "user",
                "expression": (
                    "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0]"
                    ".orValue('')"
                ),
            },
            {
                "name": "node",
                "expression": (
                    '(request.operation == "DELETE" ? oldObject : object)'
                    '.spec.?nodeName.orValue("")'
                ),
            },
        ],
        "validations": [
            {"expression": 'variables.user != ""', "message": "no node is known for the user"},
            {
                "expression": "variables.user == variables.node",
                "messageExpression": (
                    '"the plugin on \'" + variables.user + "\' may not write slices of \'" + '
                    'variables.node + "\'"'
                ),
            },
        ],
    },
}


def test_a_plugin_writes_the_slices_of_its_own_node_alone(plane: WholePlane) -> None:
    """The policy that drivers' charts ship: create, update and delete, by node and user."""
    bind(plane, OWN_NODE)
    mine = plugin_on("node-1")
    theirs = plugin_on("node-2")

    assert plane.create(SLICES, slice_of("node-1"), user=mine).status == 201
    denied = plane.create(SLICES, slice_of("node-2"), user=mine)
    assert denied.status == 422
    assert denied.body["reason"] == "Invalid"
    message = (
        "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: "
        "the plugin on 'node-1' may not write slices of 'node-2'"
    )
    assert denied.message == (
        f'resourceslices.resource.k8s.io "node-2-gpus" is forbidden: {message}'
    )
    assert denied.body["details"]["causes"] == [{"message": message}]
    assert plane.ask("DELETE", f"{SLICES}/node-1-gpus", user=theirs).status == 422
    assert plane.ask("DELETE", f"{SLICES}/node-1-gpus", user=mine).status == 200
    assert plane.create(SLICES, slice_of("node-2")).status == 201


def test_a_user_without_extra_is_denied_by_an_error(plane: WholePlane) -> None:
    """Empty fields are absent, as on a real server; the failure policy decides."""
    bind(plane, OWN_NODE)
    denied = plane.create(SLICES, slice_of("node-1"), user=plugin_on(""))

    expression = 'variables.user != ""'
    assert denied.message.endswith(
        f"denied request: expression '{expression}' resulted in error: "
        'composited variable "user" fails to evaluate: no such key: extra'
    )


def test_the_same_objects_in_another_version_are_meant_too() -> None:
    """A rule for v1 holds for a claim in v1beta1, which the expression sees in v1."""
    options = ControlPlaneOptions(
        clock=VirtualClock(), chance=CountingChance(), runtime_config=AS_RECORDED
    )
    plane = WholePlane(options)
    rule = {
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["resourceclaims"],
    }
    expression = (
        "object.spec.devices.requests[0].exactly.count == 1 "
        "&& request.resource.version == 'v1' && request.requestResource.version == 'v1beta1'"
    )
    made = policy(
        {"expression": expression, "reason": "Forbidden"},
        matchConstraints={"resourceRules": [rule]},
    )
    bind(plane, made)
    path = "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims"

    def claim(count: int) -> Raw:
        request = {"name": "r", "deviceClassName": "c", "count": count}
        return {"metadata": {"name": f"c{count}"}, "spec": {"devices": {"requests": [request]}}}

    assert plane.create(path, claim(1)).status == 201
    denied = plane.create(path, claim(2))
    assert (denied.status, denied.body["reason"]) == (403, "Forbidden")


def test_a_warning_does_not_deny(plane: WholePlane) -> None:
    """A binding with Warn adds a warning; one with Audit adds nothing."""
    bind(plane, policy({"expression": "false", "message": "rather not"}), binding("Warn", "Audit"))
    made = plane.create(MAPS, config_map())

    assert made.status == 201
    assert made.warnings == (
        "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': rather not",
    )


@pytest.mark.parametrize(("action", "status"), [("Fail", 422), ("Ignore", 201)])
def test_the_failure_policy_decides_on_errors(plane: WholePlane, action: str, status: int) -> None:
    """An expression that cannot be evaluated is no verdict."""
    bind(plane, policy({"expression": "object.data.missing == ''"}, failurePolicy=action))

    assert plane.create(MAPS, config_map()).status == status


def test_what_is_said_falls_back_from_expression_to_message_to_expression(
    plane: WholePlane,
) -> None:
    """A message that cannot be made is not missed."""
    spoken = {"messageExpression": "object.data.missing"}
    plane.create(POLICIES, policy({"expression": " false ", "messageExpression": "'a' + 'b'"}))
    plane.create(BINDINGS, binding())
    told = [plane.create(MAPS, config_map()).message]
    for validation in ({"message": "plain"}, {}):
        changed = policy({"expression": " false ", **validation})
        plane.ask("PUT", f"{POLICIES}/p", changed)
        told.append(plane.create(MAPS, config_map()).message)
    refused = plane.ask("PUT", f"{POLICIES}/p", policy({"expression": "false", **spoken}))

    assert [each.rpartition("denied request: ")[2] for each in told] == [
        "ab",
        "plain",
        "failed expression: false",
    ]
    assert "must evaluate to string but got dyn" in refused.message


@pytest.mark.parametrize(
    ("constraints", "is_denied"),
    [
        ({"resourceRules": [ANY_MAP]}, True),
        ({"resourceRules": [{**ANY_MAP, "operations": ["UPDATE"]}]}, False),
        ({"resourceRules": [{**ANY_MAP, "resources": ["*"]}]}, True),
        ({"resourceRules": [{**ANY_MAP, "resources": ["configmaps/status"]}]}, False),
        ({"resourceRules": [{**ANY_MAP, "apiGroups": ["apps"]}]}, False),
        ({"resourceRules": [{**ANY_MAP, "scope": "Cluster"}]}, False),
        ({"resourceRules": [{**ANY_MAP, "resourceNames": ["other"]}]}, False),
        ({"resourceRules": [ANY_MAP], "excludeResourceRules": [ANY_MAP]}, False),
        (
            {"resourceRules": [ANY_MAP], "objectSelector": {"matchLabels": {"tier": "a"}}},
            True,
        ),
        (
            {"resourceRules": [ANY_MAP], "objectSelector": {"matchLabels": {"tier": "b"}}},
            False,
        ),
        (
            {
                "resourceRules": [ANY_MAP],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "x"}},
            },
            False,
        ),
    ],
)
def test_a_policy_is_about_what_its_rules_and_selectors_match(
    plane: WholePlane, constraints: Raw, is_denied: bool
) -> None:
    """By operation, resource, scope, name, and the labels of the object and its namespace."""
    bind(plane, policy({"expression": "false"}, matchConstraints=constraints))

    made = plane.create(MAPS, config_map(tier="a"))
    assert made.status == (422 if is_denied else 201)


def test_a_binding_may_be_about_less_than_its_policy(plane: WholePlane) -> None:
    """Here about one namespace."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "kube-public"}}
    bind(
        plane,
        policy({"expression": "false"}),
        binding(matchResources={"namespaceSelector": selector}),
    )

    assert plane.create(MAPS, config_map()).status == 201
    there = MAPS.replace("default", "kube-public")
    assert plane.create(there, config_map()).status == 422


def test_a_policy_sees_the_request_and_the_namespace(plane: WholePlane) -> None:
    """Each of these is what the documentation of Kubernetes says it is."""
    expressions = (
        "request.name == 'm' && request.namespace == 'default' && request.dryRun",
        "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'",
        "request.options.kind == 'CreateOptions' && request.options.fieldManager == 'me'",
        "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'default'",
        "oldObject == null && object.data.a == '1'",
        "'system:masters' in request.userInfo.groups && !has(request.subResource)",
    )
    bind(plane, policy(*({"expression": each} for each in expressions)))

    made = plane.ask("POST", f"{MAPS}?dryRun=All&fieldManager=me", config_map())
    assert made.status == 201, made.message


PODS = "/api/v1/namespaces/default/pods"
POD = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEPLOYMENT = {
    "metadata": {"name": "web", "labels": {"tier": "front"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]},
    },
}
PARTS: dict[str, tuple[str, str, Raw | None, tuple[str, ...]]] = {
    "deployments/scale": (
        "PUT",
        f"{DEPLOYMENTS}/web/scale",
        {"kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 5}},
        (
            "request.operation == 'UPDATE' && request.resource.resource == 'deployments'",
            "request.kind.group == 'autoscaling' && request.kind.kind == 'Scale'",
            "object.kind == 'Scale' && object.spec.replicas == 5 && oldObject.spec.replicas == 2",
            "!has(object.metadata.labels) && object.status.selector == 'app=web'",
        ),
    ),
    "pods/eviction": (
        "POST",
        f"{PODS}/web/eviction",
        {"metadata": {"name": "web"}, "deleteOptions": {"gracePeriodSeconds": 7}},
        (
            "request.operation == 'CREATE' && request.name == 'web' && oldObject == null",
            "request.kind.group == 'policy' && request.kind.kind == 'Eviction'",
            "object.deleteOptions.gracePeriodSeconds == 7",
        ),
    ),
    "pods/binding": (
        "POST",
        f"{PODS}/web/binding",
        {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n"}},
        (
            "request.operation == 'CREATE' && request.requestSubResource == 'binding'",
            "request.kind.group == '' && request.kind.kind == 'Binding'",
            "object.target.name == 'n'",
        ),
    ),
    "bindings": (
        "POST",
        "/api/v1/namespaces/default/bindings",
        {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n"}},
        ("object.target.name == 'n' && !has(request.subResource)",),
    ),
    "pods/exec": (
        "POST",
        f"{PODS}/web/exec?command=rm&command=-r&container=c&stdout=true",
        None,
        (
            "request.operation == 'CONNECT' && request.name == 'web' && !has(request.options)",
            "request.kind.kind == 'PodExecOptions' && object.command == ['rm', '-r']",
            "object.stdout && !has(object.tty) && object.container == 'c'",
        ),
    ),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_policy_is_about_parts_of_objects_as_well(plane: WholePlane, part: str) -> None:
    """It sees the kind that is spoken there, and what it denies is not done."""
    method, path, body, expressions = PARTS[part]
    assert plane.create(PODS, POD).status == plane.create(DEPLOYMENTS, DEPLOYMENT).status == 201
    rule = {"apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["*"]}
    about = {"matchConstraints": {"resourceRules": [{**rule, "resources": [part]}]}}
    sees_all = {"expression": " && ".join(f"({each})" for each in expressions)}
    bind(plane, policy(sees_all, {"expression": "false", "message": "seen"}, **about))

    before = plane.ask("GET", f"{PODS}/web").body, plane.ask("GET", f"{DEPLOYMENTS}/web").body
    denied = plane.ask(method, path, body)
    after = plane.ask("GET", f"{PODS}/web").body, plane.ask("GET", f"{DEPLOYMENTS}/web").body
    assert (denied.status, denied.message.partition("denied request: ")[2]) == (422, "seen")
    assert before == after
    assert plane.ask("DELETE", f"{POLICIES}/p").status == 200
    # Without the policy, `exec` is refused because the pod has no node yet.
    assert plane.ask(method, path, body).status in (200, 201, 400, 501)


def test_a_name_that_the_server_makes_is_not_in_the_request(plane: WholePlane) -> None:
    """It is in the object, and in the refusal."""
    expression = "has(request.name) || !object.metadata.name.startsWith('made-')"
    bind(plane, policy({"expression": expression, "message": "made up"}))

    assert plane.create(MAPS, config_map("made-by-hand")).status == 201
    made = plane.create(MAPS, {"metadata": {"generateName": "made-"}})
    assert made.message.startswith('configmaps "made-')
    assert made.message.endswith("denied request: made up")


def test_parameters_come_from_objects_by_name_or_by_label(plane: WholePlane) -> None:
    """A policy is tried with each of them, and what is missing is denied if the binding says so."""
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    rule = {**ANY_MAP, "resources": ["secrets"]}
    made = policy(
        {"expression": "object.metadata.name.startsWith(params.data.prefix)"},
        paramKind=kind,
        matchConstraints={"resourceRules": [rule]},
    )
    by_label = {
        "selector": {"matchLabels": {"role": "names"}},
        "namespace": "default",
        "parameterNotFoundAction": "Deny",
    }
    bind(plane, made, binding(paramRef=by_label))
    secrets = "/api/v1/namespaces/default/secrets"
    missing = plane.create(secrets, {"metadata": {"name": "team-a"}})
    plane.create(MAPS, {**config_map("names", role="names"), "data": {"prefix": "team-"}})

    assert missing.message.endswith(
        "denied request: failed to configure binding: no params found for policy binding with "
        "`Deny` parameterNotFoundAction"
    )
    assert plane.create(secrets, {"metadata": {"name": "team-a"}}).status == 201
    assert plane.create(secrets, {"metadata": {"name": "other"}}).status == 422


def test_a_policy_asks_the_authorizer() -> None:
    """Expressions can check permissions of the user and of service accounts."""
    options = ControlPlaneOptions(
        clock=VirtualClock(), chance=CountingChance(), authorization=AuthorizationMode.RBAC
    )
    plane = WholePlane(options)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]}
    plane.create(f"{rbac}/clusterroles", {"metadata": {"name": "maps"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maps"}
    subject = {"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}
    bound = {"metadata": {"name": "maps"}, "roleRef": reference, "subjects": [subject]}
    plane.create(f"{rbac}/clusterrolebindings", bound)
    questions = (
        "authorizer.requestResource.check('create').allowed()",
        "!authorizer.serviceAccount('default', 'x').path('/logs').check('get').allowed()",
        "authorizer.group('').resource('secrets').namespace('default').check('get').allowed()",
    )
    bind(plane, policy(*({"expression": each} for each in questions)))

    assert plane.create(MAPS, config_map("a")).status == 201
    denied = plane.create(MAPS, config_map("b"), user=User("jane", ("system:authenticated",)))
    assert denied.message.endswith(f"failed expression: {questions[2]}")


def test_policies_do_not_guard_policies(plane: WholePlane) -> None:
    """A policy that denies everything can still be deleted."""
    everything = {
        "apiGroups": ["*"],
        "apiVersions": ["*"],
        "operations": ["*"],
        "resources": ["*/*"],
    }
    bind(plane, policy({"expression": "false"}, matchConstraints={"resourceRules": [everything]}))

    assert plane.create(MAPS, config_map()).status == 422
    assert plane.ask("DELETE", f"{BINDINGS}/b").status == 200
    assert plane.create(MAPS, config_map()).status == 201


def test_a_changed_policy_holds_at_once(plane: WholePlane) -> None:
    """A changed or recreated policy is compiled again."""
    bind(plane, policy({"expression": "false"}))
    assert plane.create(MAPS, config_map()).status == 422
    changed = plane.ask("PUT", f"{POLICIES}/p", policy({"expression": "true"})).body

    assert plane.create(MAPS, config_map()).status == 201
    assert changed["metadata"]["generation"] == changed["status"]["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            policy({"expression": "object.a =="}),
            "spec.validations[0].expression: Invalid value",
        ),
        (
            policy({"expression": "request.nmae == ''"}),
            "undefined field 'nmae'",
        ),
        (
            policy({"expression": "object.metadata.name"}),
            "must evaluate to bool but got dyn",
        ),
        (
            policy({"expression": "variables.b"}, variables=[{"name": "a", "expression": "true"}]),
            "undefined field 'b'",
        ),
        (
            policy({"expression": "params.a == 1"}),
            "undeclared reference to 'params'",
        ),
        (
            policy({"expression": "true", "messageExpression": "string(authorizer)"}),
            "undeclared reference to 'authorizer'",
        ),
        (
            policy({"expression": "true"}, matchConstraints={"resourceRules": []}),
            "spec.matchConstraints.resourceRules: Required value",
        ),
        (policy(), "validations or auditAnnotations must contain at least one item"),
        (
            policy({"expression": "true", "reason": "Because"}),
            'spec.validations[0].reason: Unsupported value: "Because"',
        ),
        (
            policy({"expression": "true"}, variables=[{"name": "in", "expression": "true"}]),
            'spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier',
        ),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_with_the_place(
    plane: WholePlane, made: Raw, expected: str
) -> None:
    """Expressions are compiled when they are written, not when they are needed."""
    refused = plane.create(POLICIES, made)

    assert refused.status == 422
    assert expected in refused.message


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (binding("Deny", "Warn"), "must not contain both Deny and Warn"),
        (binding("Shout"), 'spec.validationActions[0]: Unsupported value: "Shout"'),
        (
            {"metadata": {"name": "b"}, "spec": {"validationActions": ["Deny"]}},
            "spec.policyName: Required value",
        ),
        (
            binding(paramRef={"name": "x"}),
            "spec.paramRef.parameterNotFoundAction: Required value",
        ),
    ],
)
def test_a_binding_that_makes_no_sense_is_refused_with_the_place(
    plane: WholePlane, made: Raw, expected: str
) -> None:
    """In the words of a real server."""
    refused = plane.create(BINDINGS, made)

    assert refused.status == 422
    assert expected in refused.message
