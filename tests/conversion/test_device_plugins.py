"""Resources of device plugins become claims, or classes that provide them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conversion.converting import convert, notes, objects

from dryrack.conversion import add_extended_resources, convert_to_claims
from dryrack.linter import Severity, lint

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: train # the trainer
spec:
  containers:
  - name: main
    image: a
    resources:
      requests: {{cpu: 1}}
      limits:
        # the devices
        {resource}: {count}
        memory: 1Gi
"""
CONVERTED = """\
apiVersion: v1
kind: Pod
metadata:
  name: train # the trainer
spec:
  containers:
  - name: main
    image: a
    resources:
      requests: {cpu: 1}
      limits:
        # the devices
        memory: 1Gi
      claims:
      - name: gpus
  resourceClaims:
  - name: gpus
    resourceClaimTemplateName: train-gpus
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: train-gpus
spec:
  spec:
    devices:
      requests:
      - name: gpus
        exactly:
          deviceClassName: gpu.nvidia.com
          count: 2
"""
RESOURCES = [
    ("nvidia.com/gpu", "gpu.nvidia.com", ""),
    ("nvidia.com/mig-1g.10gb", "mig.nvidia.com", "1g.10gb"),
    ("nvidia.com/mig-1g.10gb.me", "mig.nvidia.com", "1g.10gb+me"),
    ("amd.com/gpu", "gpu.amd.com", ""),
    ("gpu.intel.com/i915", "gpu.intel.com", ""),
    ("gpu.intel.com/xe", "gpu.intel.com", ""),
    ("habana.ai/gaudi", "gaudi.intel.com", ""),
    ("google.com/tpu", "tpu.google.com", ""),
    ("aws.amazon.com/neuron", "neuron.aws.com", ""),
]


def _pod(resource: str = "nvidia.com/gpu", count: str = "2", more: str = "") -> str:
    return POD.format(resource=resource, count=count) + more


def _errors(text: str) -> list[str]:
    found = lint([("a.yaml", text.encode())], lambda *_: ())
    return [each.message for each in found if each.severity is not Severity.INFO]


def _exact_requests(text: str) -> list[dict[str, Any]]:
    template = objects(text)[-1]
    return [each["exactly"] for each in template["spec"]["spec"]["devices"]["requests"]]


def test_a_limit_becomes_a_claim_template() -> None:
    """The text changes at the limit and at the end; the result is what lint accepts."""
    assert convert(_pod(), convert_to_claims) == CONVERTED
    assert convert(CONVERTED, convert_to_claims) == CONVERTED
    assert _errors(CONVERTED) == []


@pytest.mark.parametrize(("resource", "device_class", "profile"), RESOURCES)
def test_each_resource_has_its_class(resource: str, device_class: str, profile: str) -> None:
    """A partition is selected by its profile."""
    text = convert(_pod(resource, '"1"'), convert_to_claims)
    [request] = _exact_requests(text)

    assert request["deviceClassName"] == device_class
    assert profile in str(request.get("selectors", ""))
    assert "count" not in request
    assert _errors(text) == []


@pytest.mark.parametrize(("resource", "device_class", "profile"), RESOURCES)
def test_each_resource_can_have_a_class_that_provides_it(
    resource: str, device_class: str, profile: str
) -> None:
    """The pod stays as it is."""
    text = convert(_pod(resource), add_extended_resources)
    made = objects(text)[-1]

    assert text.startswith(_pod(resource))
    assert made["spec"]["extendedResourceName"] == resource
    assert profile in made["spec"]["selectors"][0]["cel"]["expression"]
    assert convert(text, add_extended_resources) == text
    assert _errors(text) == []


def test_node_labels_become_selectors() -> None:
    """Labels that say the same as the claim go; labels about nodes stay."""
    more = """\
  nodeSelector:
    nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB-SHARED
    nvidia.com/gpu.present: "true"
    nvidia.com/gpu.count: "8"
    kubernetes.io/os: linux
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: nvidia.com/gpu.memory, operator: Gt, values: ["40000"]}
          - {key: nvidia.com/gpu.family, operator: NotIn, values: [turing, volta]}
"""
    text = convert(_pod(more=more), convert_to_claims)
    spec = objects(text)[0]["spec"]
    [request] = _exact_requests(text)

    assert spec["nodeSelector"] == {"nvidia.com/gpu.count": "8", "kubernetes.io/os": "linux"}
    assert "affinity" not in spec
    gpu = 'device.attributes["gpu.nvidia.com"]'
    assert [each["cel"]["expression"] for each in request["selectors"]] == [
        f'{gpu}.productName.replace(" ", "-") == "NVIDIA-A100-SXM4-40GB"',
        'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40000Mi")) > 0',
        f'!({gpu}.architecture.lowerAscii().replace(" ", "-") in ["turing", "volta"])',
    ]
    assert _errors(text) == []
    assert notes(_pod(more=more), convert_to_claims) == [
        "a.yaml:18: nvidia.com/gpu.count stays a label of nodes: no attribute of a device states it"
    ]


def test_containers_get_their_own_requests() -> None:
    """An init container that ends before the others uses the devices of one of them."""
    text = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: team}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      initContainers:
      - {name: check, image: a, resources: {limits: {nvidia.com/gpu: 1}}}
      containers:
      - {name: one, image: a, resources: {limits: {nvidia.com/gpu: 2}}}
      - {name: two, image: a, resources: {limits: {nvidia.com/gpu: 1}}}
      - {name: none, image: a}
"""
    deployment, template = objects(convert(text, convert_to_claims))
    spec = deployment["spec"]["template"]["spec"]

    assert template["metadata"] == {"name": "d-gpus", "namespace": "team"}
    requests = template["spec"]["spec"]["devices"]["requests"]
    assert [each["name"] for each in requests] == ["one", "two"]
    claims = {
        each["name"]: each.get("resources")
        for each in (*spec["initContainers"], *spec["containers"])
    }
    assert claims == {
        "check": {"claims": [{"name": "gpus", "request": "one"}]},
        "one": {"claims": [{"name": "gpus", "request": "one"}]},
        "two": {"claims": [{"name": "gpus", "request": "two"}]},
        "none": None,
    }


def test_a_quota_limits_the_class() -> None:
    """The comment beside the limit stays."""
    text = (
        "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q}\nspec:\n  hard:\n"
        "    requests.nvidia.com/gpu: 8 # eight\n"
    )
    assert convert(text, convert_to_claims).endswith(
        "    gpu.nvidia.com.deviceclass.resource.k8s.io/devices: 8 # eight\n"
    )


def test_a_count_that_is_no_number_is_refused() -> None:
    """Templates of other tools have variables there."""
    [note] = notes(_pod(count='"${GPUS}"'), convert_to_claims)

    assert note == (
        "a.yaml:13: spec.containers[0].resources.limits[\"nvidia.com/gpu\"]: '${GPUS}' is no whole"
        " number; write the number of devices"
    )
