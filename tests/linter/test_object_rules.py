"""lint says of pods, nodes and workloads what an API server would say."""

from __future__ import annotations

import copy
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.cli.command import EXAMPLES, dryrack
from tests.golang import build
from tests.kinds.validation import documents
from tests.kinds.validation.cases import ASKED, MODULE
from tests.kinds.validation.judgement import Answer, Cause, difference
from tests.oracle.oracles import Oracle

from dryrack.kinds.documents import Document, read
from dryrack.kinds.text.source_positions import Tree, spot
from dryrack.kinds.validation import Reason
from dryrack.linter import lint, object_problems

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUESTIONS = 3000
SEED = 3

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    image: i
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
      - name: c
        image: i
"""
MUTATION = """\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: m}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: "Object{}"}
  reinvocationPolicy: Never
"""


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (POD.replace("    image: i\n", ""), 6, "spec.containers[0].image: Required value"),
        (POD.replace("{name: p}", "{}"), 3, "metadata.name: Required value"),
        (POD.replace("name: p", "name: P_"), 3, "metadata.name: Invalid value"),
        (POD + "    volumeMounts: [{name: v, mountPath: /v}]\n", 8, "volumeMounts[0].name"),
        (POD + "    resources: {claims: [{name: gone}]}\n", 8, "claims[0]: Not found"),
        (POD + "    tty: 5\n", 8, "spec.containers[0].tty: "),
        (DEPLOYMENT.replace("labels: {app: a}", "labels: {app: b}"), 7, "labels: Invalid value"),
        (DEPLOYMENT + "        tty: maybe\n", 12, "spec.template.spec.containers[0].tty: "),
        (
            DEPLOYMENT + "        resources: {claims: [{name: gone}]}\n",
            12,
            "spec.template.spec.containers[0].resources.claims[0]: Not found",
        ),
        ("apiVersion: v1\nkind: Node\nmetadata: {name: R_1}\n", 3, "metadata.name: Invalid value"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: a.b}\n", 3, "must not contain dots"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {b c: d}\n",
            4,
            "a valid config key must consist of",
        ),
        (MUTATION.replace("Object{}", "Thing{}"), 9, "undeclared reference to 'Thing'"),
        (MUTATION.replace("Never", "Once"), 10, "spec.reinvocationPolicy: Unsupported value"),
    ],
)
def test_what_a_server_refuses_of_any_kind_is_an_error(
    text: str, line: int, words: str, tmp_path: Path
) -> None:
    """The server's words, at the line that they are about."""
    (tmp_path / "a.yaml").write_text(text)
    done = dryrack("lint", "a.yaml", cwd=tmp_path)

    assert [each for each in done.stdout.splitlines() if f"a.yaml:{line}: error" in each]
    assert words in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    "spec",
    [
        "{ipFamilyPolicy: RequireDualStack, ports: [{port: 80}]}",
        "{clusterIP: 99.0.0.1, ports: [{port: 80}]}",
        "{type: NodePort, ports: [{port: 80, nodePort: 5}]}",
        "{type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]}",
    ],
)
def test_what_depends_on_the_cluster_is_no_error(spec: str) -> None:
    """Which families, addresses and ports there are only the cluster of a service knows."""
    text = f"apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {spec}\n"

    assert lint([("a.yaml", text.encode())]) == ()


def test_a_schema_of_the_wrong_types_is_an_error_and_no_more() -> None:
    """A definition that cannot be decoded is reported as such."""
    text = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: as, kind: A}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, not: {additionalProperties: 5}}}
"""
    (finding,) = lint([("a.yaml", text.encode())])

    assert (finding.line, finding.field) == (8, "spec.versions")
    assert "boolean or JSON schema expected" in finding.message


def test_what_a_server_takes_is_no_error() -> None:
    """All objects of the examples are accepted."""
    for path in sorted(EXAMPLES.glob("*.yaml")):
        for document in read(path.read_bytes(), path.name).documents:
            assert not object_problems(document), f"{path.name}:{document.line}"


PODS: tuple[dict[str, Any], ...] = (
    documents.PODS[0],
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"a": "b"}, "annotations": {"x/y": "z"}},
        "spec": {
            "nodeSelector": {"a": "b"},
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": documents.NODE_SELECTOR
                }
            },
            "volumes": [
                {"name": "v", "emptyDir": {"sizeLimit": "1Gi"}},
                {"name": "w", "configMap": {"name": "x"}},
            ],
            "schedulingGates": [{"name": "a/b"}],
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "env": [{"name": "A", "value": "b"}],
                    "ports": [{"containerPort": 80, "name": "http"}],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
                    "resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": 1}},
                }
            ],
        },
    },
)
VALUES: tuple[Any, ...] = (
    *(None, [], {}, "", "a", "A_", 0, 1, -1, True, 1.5, 2**31, 2**63 - 1, "1Gi", "-1", "x" * 64),
    *([None], [{}], {"a": None}, [""], ["a", "a"], "a/b", "/a/../b", "a.b", "NoSchedule", "In"),
)


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from spots(value[key])


def spoiled(chance: Random) -> dict[str, Any]:
    """A pod with up to three things replaced, removed or said twice."""
    pod = copy.deepcopy(chance.choice(PODS))
    for _ in range(chance.randint(1, 3)):
        places = [(c, k) for c, k in spots(pod) if k not in ("apiVersion", "kind")]
        if not places:
            break
        container, key = chance.choice(places)
        match chance.randrange(4):
            case 0:
                del container[key]
            case 1 if isinstance(container, list):
                container.insert(key, copy.deepcopy(container[key]))
            case _:
                container[key] = copy.deepcopy(chance.choice(VALUES))
    return pod


def ours(pod: dict[str, Any]) -> Answer:
    problems = object_problems(Document("f", pod, Tree(spot(1, 1))), release=ASKED) or ()
    if any(each.reason is Reason.TYPE_INVALID for each in problems):
        return Answer(bad_request=problems[0].message)
    return Answer(causes=tuple(Cause(p.reason.value, p.field, p.message) for p in problems))


@pytest.mark.real
@pytest.mark.timeout(600)
def test_every_cause_is_the_servers() -> None:
    """Reasons, fields and messages for random pods are those of Kubernetes."""
    chance = Random(SEED)
    asked = [{"object": spoiled(chance)} for _ in range(QUESTIONS)]
    found = []
    with Oracle(build(MODULE).path("validate"), Answer) as server:
        for question, theirs in server.ask(asked):
            differs = difference(theirs, ours(question["object"]))
            if differs:
                found.append(f"{yaml.safe_dump(question)}\n{differs}")

    assert not found, f"{len(found)} of {QUESTIONS} differ (seed {SEED}):\n" + "\n".join(found[:3])
