"""Every kind has a model in every version it is served in; everything else gets a helpful no."""

import pytest

from dryrack.kinds import core, overlay, resource, scheduling
from dryrack.kinds.catalog import Typed, Unknown, model_of, typed
from dryrack.kinds.documents import read
from dryrack.kinds.meta import KubernetesObject

SERVED: list[tuple[str, str, type[KubernetesObject]]] = [
    ("v1", "Node", core.Node),
    ("v1", "Pod", core.Pod),
    ("v1", "Namespace", core.Namespace),
    ("v1", "ConfigMap", core.ConfigMap),
    ("resource.k8s.io/v1", "ResourceSlice", resource.ResourceSlice),
    ("resource.k8s.io/v1", "ResourceClaim", resource.ResourceClaim),
    ("resource.k8s.io/v1", "ResourceClaimTemplate", resource.ResourceClaimTemplate),
    ("resource.k8s.io/v1", "DeviceClass", resource.DeviceClass),
    ("resource.k8s.io/v1", "DeviceTaintRule", resource.DeviceTaintRule),
    ("resource.k8s.io/v1beta2", "ResourceSlice", resource.ResourceSlice),
    ("resource.k8s.io/v1beta2", "DeviceTaintRule", resource.DeviceTaintRule),
    ("resource.k8s.io/v1beta1", "ResourceClaim", resource.ResourceClaim),
    ("resource.k8s.io/v1beta1", "DeviceClass", resource.DeviceClass),
    ("resource.k8s.io/v1alpha3", "DeviceTaintRule", resource.DeviceTaintRule),
    ("scheduling.k8s.io/v1alpha1", "Workload", scheduling.WorkloadV1Alpha1),
    ("scheduling.k8s.io/v1alpha2", "Workload", scheduling.Workload),
    ("scheduling.k8s.io/v1alpha2", "PodGroup", scheduling.PodGroup),
    ("scheduling.k8s.io/v1beta1", "Workload", scheduling.WorkloadV1Beta1),
    ("scheduling.k8s.io/v1beta1", "PodGroup", scheduling.PodGroupV1Beta1),
    ("scheduling.k8s.io/v1alpha3", "PodGroup", scheduling.PodGroupV1Beta1),
    ("scheduling.k8s.io/v1alpha3", "Workload", scheduling.WorkloadV1Beta1),
    ("scheduling.k8s.io/v1alpha3", "CompositePodGroup", scheduling.CompositePodGroup),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup", scheduling.CoschedulingPodGroup),
    ("karpenter.sh/v1alpha1", "NodeOverlay", overlay.NodeOverlay),
]


@pytest.mark.parametrize(("api_version", "kind", "model"), SERVED)
def test_every_served_kind_has_its_model(
    api_version: str, kind: str, model: type[KubernetesObject]
) -> None:
    """All dialects that a cluster may hold are readable."""
    assert model_of(api_version, kind) is model


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "apiVersion: resource.k8s.io/v1\nkind: Resourceslice\n",
            2,
            "unknown kind 'Resourceslice'; did you mean 'ResourceSlice'?",
        ),
        (
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClaims\n",
            2,
            "unknown kind 'ResourceClaims'; did you mean 'ResourceClaim'?",
        ),
        (
            "kind: DeviceTaintRule\napiVersion: resource.k8s.io/v1beta1\n",
            2,
            ("DeviceTaintRule is not in 'resource.k8s.io/v1beta1'; run: dryrack convert -i"),
        ),
        (
            "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClass\n",
            2,
            "unknown kind 'ResourceClass'; run: dryrack convert -i",
        ),
        (
            "kind: ResourceClaim\napiVersion: resource.k8s.io/v1alpha3\n",
            2,
            ("ResourceClaim is not in 'resource.k8s.io/v1alpha3'; run: dryrack convert -i"),
        ),
        ("metadata:\n  name: x\nkind: Pod\n", 1, "Pod without apiVersion; write apiVersion: v1"),
        ("metadata:\n  name: x\n", 1, "an object without kind; known kinds: Node, Pod, "),
        ("apiVersion: apps/v1\nkind: Deployment\n", 2, "unknown kind 'Deployment'; known kinds: "),
    ],
)
def test_what_is_not_in_the_catalog_gets_a_helpful_no(text: str, line: int, message: str) -> None:
    """The message says what was probably meant, at the line that is wrong."""
    (document,) = read(text, "f.yaml").documents
    problems = typed(document)

    assert isinstance(problems, tuple)
    assert str(problems[0]).startswith(f"f.yaml:{line}: {message}")


def test_all_type_mistakes_of_a_document_have_lines() -> None:
    """Each mismatch is a problem at its own line."""
    text = (
        "apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nspec:\n  driver: 5\n"
        "  devices:\n  - name: a\n    capacity:\n      memory: 80Gi\n"
    )
    (document,) = read(text, "f.yaml").documents
    problems = typed(document)

    assert isinstance(problems, tuple)
    quotes = "put it in quotes: YAML reads on, no, 5 and 1.10 without quotes as other types"
    assert [str(problem) for problem in problems] == [
        f"f.yaml:4: spec.driver: expected a string, got the number 5; {quotes}",
        (
            'f.yaml:8: spec.devices[0].capacity.memory: expected an object, got the string "80Gi"'
            '; write {value: "80Gi"}'
        ),
    ]


def test_an_old_version_is_read_as_v1() -> None:
    """Conversion and defaults happen on the way in; lines are those of the file."""
    text = (
        "apiVersion: resource.k8s.io/v1beta1\nkind: ResourceClaim\nspec:\n  devices:\n"
        "    requests:\n    - name: r\n      deviceClassName: gpu\n"
    )
    (document,) = read(text, "f.yaml").documents
    found = typed(document)

    assert isinstance(found, Typed)
    assert isinstance(found.object, resource.ResourceClaim)
    exactly = found.object.spec.devices.requests[0].exactly
    assert exactly is not None
    assert (exactly.device_class_name, exactly.allocation_mode, exactly.count) == (
        "gpu",
        "ExactCount",
        1,
    )
    assert document.place("spec.devices.requests[0].exactly.deviceClassName").line == 6


def test_unknown_is_a_value() -> None:
    """Nothing is raised for a kind that is not there."""
    assert isinstance(model_of("", ""), Unknown)
    assert isinstance(model_of("v1", "Secret"), Unknown)


OVERLAY = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: gpu}
spec:
  weight: 10
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [g5.48xlarge]}
  capacity: {example.com/device: "8"}
  resourceSlices:
  - spec:
      devices:
      - {name: h100-0, driver: d, attributes: {memory: 80Gi}}
"""


def test_an_overlay_keeps_its_slices_as_written() -> None:
    """The dialect of embedded slices is not judged here."""
    found = typed(read(OVERLAY, "f.yaml").documents[0])

    assert isinstance(found, Typed)
    assert isinstance(found.object, overlay.NodeOverlay)
    spec = found.object.spec
    assert (spec.weight, str(spec.capacity["example.com/device"])) == (10, "8")
    assert spec.resource_slices[0]["spec"]["devices"][0]["attributes"] == {"memory": "80Gi"}


@pytest.mark.parametrize(
    ("head", "spec", "size"),
    [
        ("scheduling.k8s.io/v1alpha1 Workload", "podGroups: [{policy: {gang: {minCount: 4}}}]", 4),
        (
            "scheduling.k8s.io/v1alpha2 Workload",
            "podGroupTemplates: [{schedulingPolicy: {gang: {minCount: 4}}}]",
            4,
        ),
        ("scheduling.k8s.io/v1alpha2 PodGroup", "schedulingPolicy: {gang: {minCount: 4}}", 4),
        ("scheduling.k8s.io/v1beta1 PodGroup", "schedulingPolicy: {gang: {minCount: 4}}", 4),
        (
            "scheduling.k8s.io/v1alpha3 CompositePodGroup",
            "schedulingPolicy: {gang: {minGroupCount: 4}}",
            4,
        ),
        ("scheduling.x-k8s.io/v1alpha1 PodGroup", "minMember: 4", 4),
    ],
)
def test_the_size_of_a_gang_is_read_in_every_dialect(head: str, spec: str, size: int) -> None:
    """Six spellings of "four together or none"."""
    api_version, kind = head.split()
    text = f"apiVersion: {api_version}\nkind: {kind}\nspec:\n  {spec}\n"
    found = typed(read(text, "f.yaml").documents[0])

    assert isinstance(found, Typed)
    assert f"={size}" in repr(found.object)
