"""
DR8xx: publisher configuration that leads to slices that cannot work.

The loose formats accept what the API refuses, or what makes a pool that is never complete. Some
publishers correct such configuration, others do not.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dryrack.hardware.config_formats import Topic
from dryrack.linter.finding import Problem, Severity
from dryrack.linter.registry import Rule
from dryrack.linter.world import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.linter.world import World


def _problems_of(world: World, topics: tuple[Topic, ...]) -> Iterator[Problem]:
    """Yield the remarks about these topics from the readers of device configurations."""
    for document, read in world.publishings:
        for remark in read.report.remarks:
            if remark.topic in topics:
                path = (*read.within, *remark.path)
                line = read.place(remark).line
                yield Problem(Entry(document, None), path, remark.what, remark.fix, line=line)


_WARNING = Severity.WARNING
_ERROR = Severity.ERROR
_INFO = Severity.INFO

# Code, slug and severity; summary; why; topics.
_TABLE = (
    (
        ("DR801", "publisher-driver-name", _WARNING),
        "A device configuration has a driver name that the API does not allow.",
        "The API server rejects every slice of such a driver. A driver name has no slash.",
        (Topic.DRIVER_NAME,),
    ),
    (
        ("DR802", "publisher-attribute-name", _WARNING),
        "A device configuration has an attribute name that the API does not allow.",
        "The API server rejects the slice. Names of attributes are C identifiers.",
        (Topic.ATTRIBUTE_NAME,),
    ),
    (
        ("DR803", "publisher-attribute-form", _WARNING),
        "An attribute does not have the form of the API.",
        (
            "In the API, an attribute is an object with one field: `string`, `int`, `bool` or\n"
            "`version`, in lower case. Some publishers also accept a plain value or another\n"
            "spelling. Others publish an attribute without a value, which the API server rejects."
        ),
        (Topic.ATTRIBUTE_FORM,),
    ),
    (
        ("DR804", "publisher-slice-count", _WARNING),
        "The resourceSliceCount of a mapping is not 1.",
        "A publisher creates one slice per mapping and node, so the pool is never complete.",
        (Topic.SLICE_COUNT,),
    ),
    (
        ("DR805", "publisher-pool-name", _WARNING),
        "A mapping has one pool name for all nodes that it selects.",
        (
            "Nodes with the same pool name share its devices. With a second node, the pool has\n"
            "one slice too many, and the scheduler allocates no device of either node."
        ),
        (Topic.POOL_NAME,),
    ),
    (
        ("DR806", "publisher-all-nodes", _WARNING),
        "A slice for all nodes is published once per selected node.",
        (
            "If a publisher sets `nodeName` in addition to `allNodes`, the API server rejects the\n"
            "slice. Otherwise it publishes the same devices once per node."
        ),
        (Topic.ALL_NODES,),
    ),
    (
        ("DR807", "publisher-amount-as-string", _WARNING),
        "An amount is configured as an attribute.",
        "Selectors cannot compare a string as an amount. Publish amounts in `capacity`.",
        (Topic.AMOUNT,),
    ),
    (
        ("DR808", "publisher-refused", _ERROR),
        "A publisher cannot use its device configuration.",
        (
            "If a part of the configuration is invalid, the publisher keeps using the previous\n"
            "configuration, if it has one."
        ),
        (Topic.REFUSAL,),
    ),
    (
        ("DR809", "publisher-capacity", _WARNING),
        "The capacity of an overlay differs from its number of devices.",
        (
            "An autoscaler creates nodes for the number of devices in the capacity. Pods that\n"
            "request missing devices stay pending on these nodes."
        ),
        (Topic.PROMISE,),
    ),
    (
        ("DR810", "publisher-loose", _INFO),
        "A field has a form that only some publishers accept.",
        (
            "Examples are keys in another case, `count`, a driver in a device, and fields that a\n"
            "publisher sets itself. They are not part of the API, and other publishers can reject\n"
            "them."
        ),
        (Topic.SPELLING, Topic.PUBLISHER),
    ),
)

RULES = tuple(
    Rule(*name, summary, why, partial(_problems_of, topics=topics))
    for name, summary, why, topics in _TABLE
)
