"""Objects of a file that a cluster starts with: what is wrong with them has its line."""

from __future__ import annotations

import asyncio

import pytest

from dryrack.cluster.control_plane import ControlPlaneOptions, build_control_plane
from dryrack.cluster.initial_objects import InhabitantError, add_objects
from dryrack.kinds.documents import read

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: one}
spec:
"""


def added(text: str) -> int:
    """How many objects of a file a new cluster takes."""
    reading = read(text, "start.yaml")
    assert reading.problems == ()
    return asyncio.run(add_objects(build_control_plane(ControlPlaneOptions()), reading.documents))


def refused(text: str) -> list[str]:
    """The lines that tell what a new cluster does not take."""
    with pytest.raises(InhabitantError) as caught:
        added(text)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  lables: {a: b}\n",
            "start.yaml:5: ConfigMap a has no field 'lables' at this place; did you mean 'labels'?",
        ),
        (
            "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec:\n  containers:\n  - resurces:\n",
            "start.yaml:6: Pod a has no field 'resurces' at this place; did you mean 'resources'?",
        ),
        (
            "apiVersion: v1\nkind: Nod\nmetadata: {name: a}\n",
            "start.yaml:2: the cluster has no kind 'Nod'; did you mean 'Node'?",
        ),
        (
            "apiVersion: apps/v7\nkind: Deployment\nmetadata: {name: a}\n",
            "start.yaml:1: the cluster has no Deployment of 'apps/v7'; write apiVersion: apps/v1",
        ),
        (
            "apiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {name: a}\n",
            (
                "start.yaml:1: the cluster has no DeviceTaintRule of 'resource.k8s.io/v1beta2';"
                " run:"
                " dryrack convert -i start.yaml; or write {apiVersion: resource.k8s.io/v1, kind:"
                " DeviceTaintRule, metadata: {name: a}}; or enable the version with"
                " --runtime-config resource.k8s.io/v1beta2=true"
            ),
        ),
        (
            "\nkind: Pod\nmetadata: {name: a}\n",
            "start.yaml:2: an object without apiVersion; add apiVersion",
        ),
        (
            "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: a}\n",
            (
                "start.yaml:2: the cluster has no kind 'Widget'; "
                "put its CustomResourceDefinition before it"
            ),
        ),
        (
            "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}\n",
            (
                "start.yaml:2: the cluster has no kind 'RayCluster'; "
                "put its CustomResourceDefinition before it"
            ),
        ),
        (
            "apiVersion: resource.k8s.io/v1alpha2\nkind: PodSchedulingContext\n",
            (
                "start.yaml:2: the cluster has no PodSchedulingContext of "
                "'resource.k8s.io/v1alpha2'; run: dryrack convert -i start.yaml"
            ),
        ),
        (
            (
                "apiVersion: resource.k8s.io/v1alpha3\nkind: ResourceClaim\nmetadata: {name: c}\n"
                "spec: {devices: {requests: [{name: a, deviceClassName: b}]}}\n"
            ),
            (
                "start.yaml:1: the cluster has no ResourceClaim of 'resource.k8s.io/v1alpha3'; run:"
                " dryrack convert -i start.yaml; or write {apiVersion: resource.k8s.io/v1, kind:"
                " ResourceClaim, metadata: {name: c}, spec: {devices: {requests: [{name: a,"
                " exactly: {deviceClassName: b}}]}}}"
            ),
        ),
        (
            f"{DEFINITION}  sise: 1\n",
            "start.yaml:23: Widget one has no field 'sise' at this place; did you mean 'size'?",
        ),
    ],
)
def test_what_is_refused_has_its_line_and_what_was_meant(text: str, told: str) -> None:
    """Fields and kinds that there are not, of built-in and of custom kinds."""
    assert refused(text) == [told]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("apiVersion: v1\nkind: Service\nmetadata:\n  name: a_b\nspec: {}\n", 4),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: 1\n", 5),
        ("apiVersion: v1\nkind: Secret\nmetadata:\n  namespace: nowhere\n  name: a\n", 1),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  nodeName: 5\n", 5),
    ],
)
def test_what_the_server_says_is_told_with_the_line(text: str, line: int) -> None:
    """Values that are wrong, values of the wrong type, and what is missing in the cluster."""
    assert refused(text)[0].startswith(f"start.yaml:{line}: ")


def test_all_that_is_wrong_is_told_at_once() -> None:
    """One run tells of every object."""
    wrong = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a_b}\n"
    good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

    lines = [each.split(": ")[0] for each in refused("---\n".join((wrong, good, wrong)))]

    assert lines == ["start.yaml:3", "start.yaml:11"]


def test_a_definition_may_stand_before_its_objects() -> None:
    """One file can bring a kind and what is of it."""
    assert added(f"{DEFINITION}  size: 1\n") == 2
