"""Mutating admission policies: how they change objects, and when they refuse a write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.apiserver.whole_plane import WholePlane

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{ADMISSION}/mutatingadmissionpolicies"
BINDINGS = f"{ADMISSION}/mutatingadmissionpolicybindings"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"


@pytest.fixture
def plane() -> WholePlane:
    return WholePlane()


def rule(*resources: str, group: str = "", **more: Any) -> Raw:
    about = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
    return {**about, "resources": list(resources), **more}


def apply(expression: str) -> Raw:
    return {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}


def patch(expression: str) -> Raw:
    return {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}


def policy(*mutations: Raw, name: str = "p", **spec: Any) -> Raw:
    """A policy about ConfigMaps, unless it says otherwise."""
    rules = {"resourceRules": [rule("configmaps")]}
    given = {"matchConstraints": rules, "reinvocationPolicy": "Never", **spec}
    return {"metadata": {"name": name}, "spec": {**given, "mutations": list(mutations)}}


def about(*resources: str, **more: Any) -> Raw:
    return {"resourceRules": [rule(*resources, **more)]}


def bind(plane: WholePlane, made: Raw, **spec: Any) -> None:
    name = made["metadata"]["name"]
    binding = {"metadata": {"name": name}, "spec": {"policyName": name, **spec}}
    for path, each in ((POLICIES, made), (BINDINGS, binding)):
        answer = plane.create(path, each)
        assert (answer.status, answer.warnings) == (201, ()), answer


def config_map(name: str = "m", **labels: str) -> Raw:
    return {"metadata": {"name": name, "labels": labels}, "data": {"a": "1"}}


def pod(**spec: Any) -> Raw:
    given = {"containers": [{"name": "main", "image": "app:1"}], **spec}
    return {"metadata": {"name": "p"}, "spec": given}


LABEL = apply('Object{metadata: Object.metadata{labels: {"environment": "test"}}}')


def test_a_policy_adds_a_label(plane: WholePlane) -> None:
    """Fields that the apply configuration does not name stay, also on an update."""
    bind(plane, policy(LABEL))
    made = plane.create(MAPS, config_map(app="web"))
    assert made.body["metadata"]["labels"] == {"app": "web", "environment": "test"}
    labels = {"metadata": {"labels": {"environment": "production"}}}
    changed = plane.ask("PATCH", f"{MAPS}/m", labels, content_type=MERGE)
    assert changed.body["metadata"]["labels"] == {"app": "web", "environment": "test"}
    assert changed.body["data"] == {"a": "1"}


def test_a_policy_without_a_binding_changes_nothing(plane: WholePlane) -> None:
    """A binding says where a policy applies."""
    assert plane.create(POLICIES, policy(LABEL)).status == 201
    assert plane.create(MAPS, config_map()).body["metadata"].get("labels") is None


SIDECAR = """
    Object{
      spec: Object.spec{
        initContainers: [
          Object.spec.initContainers{
            name: "mesh-proxy",
            image: params.data.image,
            env: [Object.spec.initContainers.env{name: "MODE", value: "sidecar"}],
            restartPolicy: "Always"
          }
        ]
      }
    }"""


def test_a_policy_adds_a_sidecar_unless_there_is_one(plane: WholePlane) -> None:
    """The item is merged into the list by its name, with parameters and a match condition."""
    plane.create(MAPS, {"metadata": {"name": "mesh"}, "data": {"image": "mesh/proxy:v1"}})
    absent = '!object.spec.?initContainers.orValue([]).exists(c, c.name == "mesh-proxy")'
    made = policy(
        apply(SIDECAR),
        matchConstraints=about("pods"),
        matchConditions=[{"name": "no-sidecar", "expression": absent}],
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
    )
    bind(plane, made, paramRef={"name": "mesh", "parameterNotFoundAction": "Deny"})
    found = plane.create(PODS, pod(initContainers=[{"name": "first", "image": "i"}])).body["spec"]
    assert [each["name"] for each in found["initContainers"]] == ["first", "mesh-proxy"]
    sidecar = found["initContainers"][1]
    assert sidecar["image"] == "mesh/proxy:v1"
    assert sidecar["env"] == [{"name": "MODE", "value": "sidecar"}]
    assert (sidecar["restartPolicy"], sidecar["imagePullPolicy"]) == ("Always", "IfNotPresent")
    assert sidecar["volumeMounts"] == found["containers"][0]["volumeMounts"]

    given = pod(initContainers=[{"name": "mesh-proxy", "image": "own"}])
    given["metadata"]["name"] = "q"
    found = plane.create(PODS, given).body["spec"]
    assert [each["image"] for each in found["initContainers"]] == ["own"]


PULL = """
    object.spec.containers.map(c,
      JSONPatch{
        op: "add",
        path: "/spec/containers/" + string(object.spec.containers.indexOf(c)) + "/imagePullPolicy",
        value: "Always"
      }
    )"""


def test_a_policy_sets_a_field_of_every_container_by_json_patch(plane: WholePlane) -> None:
    """An expression makes as many operations as there are containers."""
    bind(plane, policy(patch(PULL), matchConstraints=about("pods")))
    two = [{"name": each, "image": "i", "imagePullPolicy": "Never"} for each in "ab"]
    found = plane.create(PODS, pod(containers=two)).body["spec"]["containers"]
    assert [each["imagePullPolicy"] for each in found] == ["Always", "Always"]


def test_a_json_patch_has_escaped_keys_objects_and_tests(plane: WholePlane) -> None:
    """A value may be an object or a map; a patch whose test fails is not applied."""
    key = 'jsonpatch.escapeKey("example.com/a")'
    added = f"""[
        JSONPatch{{op: "test", path: "/data/a", value: "1"}},
        JSONPatch{{op: "add", path: "/metadata/labels/" + {key}, value: "yes"}},
        JSONPatch{{op: "copy", from: "/data/a", path: "/data/b"}},
        JSONPatch{{op: "replace", path: "/data/a", value: jsonpatch.escapeKey("~/")}}
    ]"""
    untrue = """[
        JSONPatch{op: "test", path: "/data/a", value: "no"},
        JSONPatch{op: "remove", path: "/data"}
    ]"""
    whole = """[JSONPatch{op: "add", path: "/metadata/annotations",
        value: Object.metadata.annotations{one: "1"}}]"""
    bind(plane, policy(patch(added), patch(untrue), patch(whole)))
    made = plane.create(MAPS, config_map(app="web")).body
    assert made["metadata"]["labels"] == {"app": "web", "example.com/a": "yes"}
    assert made["metadata"]["annotations"] == {"one": "1"}
    assert made["data"] == {"a": "~0~1", "b": "1"}


def test_mutations_see_the_object_as_those_before_leave_it(plane: WholePlane) -> None:
    """Also variables are evaluated anew, and policies apply in the order of their names."""
    variables = [{"name": "seen", "expression": 'object.data.?a.orValue("")'}]
    longer = apply('Object{data: Object.data{a: variables.seen + "x"}}')
    for name in ("second", "first"):
        mutations = [longer, longer] if name == "first" else [patch(_ENDED)]
        bind(plane, policy(*mutations, name=name, variables=variables))
    assert plane.create(MAPS, config_map()).body["data"] == {"a": "1xx."}


_ENDED = '[JSONPatch{op: "replace", path: "/data/a", value: variables.seen + "."}]'


def test_a_policy_is_invoked_again_if_it_asks_for_it(plane: WholePlane) -> None:
    """A policy with IfNeeded sees changes of later policies; one with Never does not."""
    seen = """has(object.data.late)
        ? [JSONPatch{op: "add", path: "/data/%s", value: "yes"}]
        : [JSONPatch{op: "add", path: "/data/first", value: "yes"}]"""
    bind(plane, policy(patch(seen % "again"), name="a", reinvocationPolicy="IfNeeded"))
    bind(plane, policy(patch(seen % "never"), name="b"))
    late = 'Object{data: Object.data{late: "yes"}}'
    bind(plane, policy(apply(late), name="c"))
    found = plane.create(MAPS, config_map()).body["data"]
    assert set(found) == {"a", "first", "late", "again"}


def test_a_binding_limits_where_a_policy_applies(plane: WholePlane) -> None:
    """Its selectors select objects and namespaces."""
    selected = {"objectSelector": {"matchLabels": {"app": "web"}}}
    bind(plane, policy(LABEL), matchResources=selected)
    assert plane.create(MAPS, config_map("n", app="db")).body["metadata"]["labels"] == {"app": "db"}
    made = plane.create(MAPS, config_map(app="web"))
    assert made.body["metadata"]["labels"]["environment"] == "test"


def test_optional_fields_are_left_out(plane: WholePlane) -> None:
    """CEL's optional field syntax makes a field only if there is a value."""
    expression = """
        Object{
          metadata: Object.metadata{
            ?labels: has(object.data.b) ? optional.of({"b": "yes"}) : optional.none()
          }
        }"""
    bind(plane, policy(apply(expression)))
    assert plane.create(MAPS, config_map(app="web")).body["metadata"]["labels"] == {"app": "web"}
    body = {"metadata": {"name": "n"}, "data": {"b": "1"}}
    assert plane.create(MAPS, body).body["metadata"]["labels"] == {"b": "yes"}


def test_a_container_that_a_policy_adds_is_completed(plane: WholePlane) -> None:
    """The plugins of the server look at the object again, as a LimitRange shows."""
    limits = [{"type": "Container", "default": {"cpu": "1"}}]
    ranges = "/api/v1/namespaces/default/limitranges"
    plane.create(ranges, {"metadata": {"name": "r"}, "spec": {"limits": limits}})
    added = 'Object.spec.containers{name: "log", image: "log:1"}'
    expression = f"Object{{spec: Object.spec{{containers: [{added}]}}}}"
    bind(plane, policy(apply(expression), matchConstraints=about("pods")))
    found = plane.create(PODS, pod()).body["spec"]["containers"]
    assert [each["resources"]["limits"] for each in found] == [{"cpu": "1"}, {"cpu": "1"}]
    assert [len(each["volumeMounts"]) for each in found] == [1, 1]


def test_what_a_policy_changes_is_owned_by_nobody(plane: WholePlane) -> None:
    """As on a real server, the writer's managedFields do not have it."""
    bind(plane, policy(LABEL))
    made = plane.create(f"{MAPS}?fieldManager=me", config_map(app="web")).body
    [entry] = made["metadata"]["managedFields"]
    assert set(entry["fieldsV1"]["f:metadata"]["f:labels"]) == {".", "f:app"}


def test_validation_sees_the_changed_object(plane: WholePlane) -> None:
    """Mutating policies run before validating ones and before the kind's own validation."""
    bind(plane, policy(LABEL))
    denies = {"expression": "!has(object.metadata.labels.environment)", "message": "no"}
    spec: Raw = {"matchConstraints": about("configmaps"), "validations": [denies]}
    validating = {"metadata": {"name": "v"}, "spec": spec}
    bound: Raw = {"policyName": "v", "validationActions": ["Deny"]}
    binding = {"metadata": {"name": "v"}, "spec": bound}
    plane.create(f"{ADMISSION}/validatingadmissionpolicies", validating)
    plane.create(f"{ADMISSION}/validatingadmissionpolicybindings", binding)
    refused = plane.create(MAPS, config_map())
    assert refused.status == 422
    assert "ValidatingAdmissionPolicy 'v' with binding 'v' denied request: no" in refused.message

    bad = apply('Object{metadata: Object.metadata{labels: {"environment": "not valid"}}}')
    plane = WholePlane()
    bind(plane, policy(bad))
    assert "metadata.labels: Invalid value" in plane.create(MAPS, config_map()).message


@pytest.mark.parametrize(
    ("mutation", "told"),
    [
        (
            apply("Object{data: Object.data{a: object.data.missing}}"),
            (
                "expression 'Object{data: Object.data{a: object.data.missing}}' resulted in error: "
                "no such key: missing"
            ),
        ),
        (
            apply("Object{metadata: Object.wrong{}}"),
            (
                'type mismatch: unexpected type name "Object.wrong", expected "Object.metadata", '
                "which matches field name path from root Object type"
            ),
        ),
        (
            apply("Object{spec: Object.spec{a: 1}}"),
            (
                "error applying patch: failed to convert patch object to typed object: .spec: "
                "field not declared in schema"
            ),
        ),
        (
            apply("Object{data: Object.data{a: 1}}"),
            (
                "error applying patch: failed to convert patch object to typed object: .data.a: "
                "expected string, got 1"
            ),
        ),
        (
            patch('[JSONPatch{op: "remove", path: "/data/none"}]'),
            "JSONPath: Unable to remove nonexistent key: none: missing value",
        ),
    ],
)
def test_a_mutation_that_fails_refuses_the_write(
    plane: WholePlane, mutation: Raw, told: str
) -> None:
    """An error denies under the policy Fail; under Ignore the object stays as it was."""
    bind(plane, policy(mutation))
    refused = plane.create(MAPS, config_map())
    assert (refused.status, refused.body["reason"]) == (403, "Invalid")
    assert refused.message == f"policy 'p' with binding 'p' denied request: {told}"
    assert refused.body["details"]["causes"] == [{"message": refused.message}]
    assert plane.ask("GET", f"{MAPS}/m").status == 404

    plane = WholePlane()
    bind(plane, policy(mutation, failurePolicy="Ignore"))
    assert plane.create(MAPS, config_map()).body["data"] == {"a": "1"}


def test_an_atomic_list_cannot_be_merged(plane: WholePlane) -> None:
    """An apply configuration that would replace a whole list is refused, as a real server does."""
    expression = """Object{spec: Object.spec{template: Object.spec.template{spec:
        Object.spec.template.spec{nodeSelector: {"a": "b"}}}}}"""
    bind(plane, policy(apply(expression), matchConstraints=about("deployments", group="apps")))
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    refused = plane.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    assert refused.message.endswith(
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or "
        "structs: .spec.template.spec.nodeSelector"
    )


def test_missing_parameters_refuse_the_write(plane: WholePlane) -> None:
    """A binding with Deny must find its parameters."""
    made = policy(LABEL, paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    bind(plane, made, paramRef={"name": "none", "parameterNotFoundAction": "Deny"})
    refused = plane.create(MAPS, config_map())
    assert (refused.status, refused.body["reason"]) == (403, "Forbidden")
    assert refused.message.endswith(
        "failed to configure binding: no params found for policy binding with `Deny` "
        "parameterNotFoundAction"
    )


def test_a_custom_kind_is_merged_by_its_schema(plane: WholePlane) -> None:
    """Lists of a custom kind are merged as their schema says."""
    item = {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}
    item["required"] = ["name"]
    items = {"type": "array", "items": item}
    items |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    spec = {"type": "object", "properties": {"items": items}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    definition = {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert plane.create(definitions, definition).status == 201
    expression = """Object{spec: Object.spec{items: [
        Object.spec.items{name: "b", n: 2}, Object.spec.items{name: "c", n: 3}]}}"""
    rules = {"resourceRules": [rule("things", group="example.com")]}
    bind(plane, policy(apply(expression), matchConstraints=rules))
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    thing["spec"] = {"items": [{"name": "a", "n": 1}, {"name": "b", "n": 1}]}
    made = plane.create("/apis/example.com/v1/things", thing).body
    assert [(each["name"], each["n"]) for each in made["spec"]["items"]] == [
        ("a", 1),
        ("b", 2),
        ("c", 3),
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"mutations": []},
            "spec.mutations: Required value: mutations must contain at least one item",
        ),
        ({"reinvocationPolicy": ""}, "spec.reinvocationPolicy: Required value"),
        (
            {"reinvocationPolicy": "Once"},
            (
                'spec.reinvocationPolicy: Unsupported value: "Once": supported values: "IfNeeded", '
                '"Never"'
            ),
        ),
        ({"mutations": [{}]}, "spec.mutations[0].patchType: Required value"),
        (
            {"mutations": [{"patchType": "Merge"}]},
            (
                'spec.mutations[0].patchType: Unsupported value: "Merge": supported values: '
                '"ApplyConfiguration", "JSONPatch"'
            ),
        ),
        (
            {"mutations": [{"patchType": "JSONPatch"}]},
            (
                "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is "
                "JSONPatch"
            ),
        ),
        (
            {"mutations": [{**LABEL, "jsonPatch": {"expression": "[]"}}]},
            (
                'spec.mutations[0].jsonPatch: Invalid value: "{jsonPatch}": must not be specified '
                "when patchType is ApplyConfiguration"
            ),
        ),
        (
            {"mutations": [apply(" ")]},
            "spec.mutations[0].applyConfiguration.expression: Required value",
        ),
        (
            {"mutations": [apply("1 + 1")]},
            (
                'spec.mutations[0].applyConfiguration.expression: Invalid value: "1 + 1": must '
                "evaluate to Object but got int"
            ),
        ),
        (
            {"mutations": [patch("Object{}")]},
            (
                'spec.mutations[0].jsonPatch.expression: Invalid value: "Object{}": must evaluate '
                "to list(JSONPatch) but got Object"
            ),
        ),
        (
            {"matchConstraints": about("configmaps", operations=["DELETE"])},
            (
                'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": '
                'supported values: "*", "CONNECT", "CREATE", "UPDATE"'
            ),
        ),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(plane: WholePlane, change: Raw, told: str) -> None:
    """The server refuses the same policies as kube-apiserver, with its texts."""
    made = policy(LABEL)
    made["spec"] |= change
    refused = plane.create(POLICIES, made)
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")
    assert refused.message.endswith(f"is invalid: {told}")


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("Object{spec: nothing}", "undeclared reference to 'nothing' (in container '')"),
        ("Thing{}", "undeclared reference to 'Thing' (in container '')"),
        ("Object{spec: }", "Syntax error"),
    ],
)
def test_an_expression_that_does_not_compile_is_refused(
    plane: WholePlane, expression: str, told: str
) -> None:
    """The message shows what the compiler says."""
    refused = plane.create(POLICIES, policy(apply(expression)))
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")
    assert "compilation failed: ERROR: <input>:1:" in refused.message
    assert told in refused.message


def test_variables_and_conditions_have_no_patch_types(plane: WholePlane) -> None:
    """Only mutations can make objects and patches."""
    variables = [{"name": "o", "expression": "Object{}"}]
    refused = plane.create(POLICIES, policy(LABEL, variables=variables))
    assert "spec.variables[0].expression" in refused.message
    assert "undeclared reference to 'Object'" in refused.message


def test_a_binding_names_a_policy(plane: WholePlane) -> None:
    """A binding without one is refused."""
    refused = plane.create(BINDINGS, {"metadata": {"name": "b"}, "spec": {}})
    assert refused.message.endswith("is invalid: spec.policyName: Required value")
