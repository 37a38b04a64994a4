"""
DR8xx: configuration from which somebody publishes slices that cannot work.

The loose dialects let people write what the API does not take, or what makes a pool that is
never complete. A publisher may put some of it right; the next one will not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware.dialects.report import Topic
from dryrack.lint.finding import Problem, Severity
from dryrack.lint.registry import Registry, broken
from dryrack.lint.world import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.lint.world import World

RULES = Registry()

_SOUND = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: dra-kwok-configmap
  namespace: karpenter
data:
  config.yaml: |
    driver: gpu.example.com
    mappings:
    - name: t4
      nodeSelectorTerms:
      - matchExpressions:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [g4dn.xlarge]}
      resourceSlice:
        driver: gpu.example.com
        devices:
        - name: t4-0
          attributes:
            model: {string: t4}
            compute_capability: {version: 7.5.0}
          capacity:
            memory: {value: 16Gi}
"""


_OVERLAY = """\
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata:
  name: t4
spec:
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [g4dn.xlarge]}
  capacity:
    gpu.example.com/device: "1"
  resourceSlices:
  - apiVersion: resource.k8s.io/v1
    kind: ResourceSlice
    spec:
      driver: gpu.example.com
      devices:
      - name: t4-0
        attributes:
          model: {string: t4}
"""


def _remarked(world: World, *topics: Topic) -> Iterator[Problem]:
    """What readers of the configuration remarked about these topics."""
    for document, read in world.publishings:
        for remark in read.report.remarks:
            if remark.topic in topics:
                path = (*read.within, *remark.path)
                line = read.place(remark).line
                yield Problem(Entry(document, None), path, remark.what, remark.fix, line=line)


@RULES.rule(
    "DR801",
    "publisher-driver-name",
    Severity.WARNING,
    summary="A publisher is configured with a driver name that the API does not allow.",
    example=broken(_SOUND, ("        driver: gpu.example.com", "        driver: example.com/gpu")),
)
def publisher_driver_name(world: World) -> Iterator[Problem]:
    """The API server refuses every slice of such a driver. A driver name has no slash."""
    return _remarked(world, Topic.DRIVER_NAME)


@RULES.rule(
    "DR802",
    "publisher-attribute-name",
    Severity.WARNING,
    summary="A publisher is configured with an attribute name that the API does not allow.",
    example=broken(_SOUND, ("compute_capability", "compute-capability")),
)
def publisher_attribute_name(world: World) -> Iterator[Problem]:
    """The API server refuses the slice. Names of attributes are identifiers as in C."""
    return _remarked(world, Topic.ATTRIBUTE_NAME)


@RULES.rule(
    "DR803",
    "publisher-attribute-form",
    Severity.WARNING,
    summary="An attribute is not written as the API has it.",
    example=broken(_SOUND, ("{string: t4}", "{String: t4}")),
)
def publisher_attribute_form(world: World) -> Iterator[Problem]:
    """
    In the API an attribute is an object with one field, `string`, `int`, `bool` or `version`,
    in lower case. Some publishers also take a bare value or another spelling, and others
    publish an attribute without a value, which the API server refuses.
    """
    return _remarked(world, Topic.ATTRIBUTE_FORM)


@RULES.rule(
    "DR804",
    "publisher-slice-count",
    Severity.WARNING,
    summary="A mapping states more slices than the one it makes.",
    example=broken(
        _SOUND,
        (
            "        driver: gpu.example.com\n",
            "        driver: gpu.example.com\n        pool: {resourceSliceCount: 3}\n",
        ),
    ),
)
def publisher_slice_count(world: World) -> Iterator[Problem]:
    """A publisher makes one slice per mapping and node, so the pool would never be complete."""
    return _remarked(world, Topic.SLICE_COUNT)


@RULES.rule(
    "DR805",
    "publisher-pool-name",
    Severity.WARNING,
    summary="One pool name is configured for all nodes that a mapping selects.",
    example=broken(
        _SOUND,
        (
            "        driver: gpu.example.com\n",
            "        driver: gpu.example.com\n        pool: {name: t4-pool}\n",
        ),
    ),
)
def publisher_pool_name(world: World) -> Iterator[Problem]:
    """
    Nodes that share a pool name share its devices: with a second node the pool has a slice
    too many, and no device of either node is allocated.
    """
    return _remarked(world, Topic.POOL_NAME)


@RULES.rule(
    "DR806",
    "publisher-all-nodes",
    Severity.WARNING,
    summary="A slice for all nodes is configured to be published once per selected node.",
    example=broken(
        _SOUND,
        (
            "        driver: gpu.example.com\n",
            "        driver: gpu.example.com\n        allNodes: true\n",
        ),
    ),
)
def publisher_all_nodes(world: World) -> Iterator[Problem]:
    """
    A publisher that sets `nodeName` beside `allNodes` is refused by the API server, and one
    that does not publishes the same devices once per node.
    """
    return _remarked(world, Topic.ALL_NODES)


@RULES.rule(
    "DR807",
    "publisher-amount-as-string",
    Severity.WARNING,
    summary="An amount is configured as an attribute.",
    example=broken(
        _SOUND,
        (
            "          capacity:\n            memory: {value: 16Gi}",
            "            memory: {string: 16Gi}",
        ),
    ),
)
def publisher_amount_as_string(world: World) -> Iterator[Problem]:
    """Text cannot be compared as an amount; amounts belong in `capacity`."""
    return _remarked(world, Topic.AMOUNT)


@RULES.rule(
    "DR808",
    "publisher-refused",
    Severity.ERROR,
    summary="A publisher cannot use its configuration.",
    example=broken(_SOUND, ("{version: 7.5.0}", '{version: "7.5"}')),
)
def publisher_refused(world: World) -> Iterator[Problem]:
    """
    With anything in it that cannot be understood, or that the API would refuse, a publisher
    keeps to the configuration that it had before, or has none.
    """
    return _remarked(world, Topic.REFUSAL)


@RULES.rule(
    "DR809",
    "publisher-capacity",
    Severity.WARNING,
    summary="An overlay promises another number of devices than it has.",
    example=broken(_OVERLAY, ('gpu.example.com/device: "1"', 'gpu.example.com/device: "8"')),
)
def publisher_capacity(world: World) -> Iterator[Problem]:
    """
    An autoscaler makes nodes for as many devices as the capacity says; pods that ask for those
    that are not there stay pending on them.
    """
    return _remarked(world, Topic.PROMISE)


@RULES.rule(
    "DR810",
    "publisher-loose",
    Severity.INFO,
    summary="Something is written as only some publishers understand it.",
    example=broken(_SOUND, ("        - name: t4-0", "        - name: t4\n          count: 1")),
)
def publisher_loose(world: World) -> Iterator[Problem]:
    """
    Keys in another case, `count`, a driver in a device, and what a publisher decides itself: the
    API has none of it, and another publisher may not take it.
    """
    return _remarked(world, Topic.SPELLING, Topic.PUBLISHER)
