"""
DR8xx: configuration from which somebody publishes slices that cannot work.

The loose dialects let people write what the API does not take, or what makes a pool that is
never complete. A publisher may put some of it right; the next one will not.
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


def _remarked(world: World, topics: tuple[Topic, ...]) -> Iterator[Problem]:
    """What readers of the configuration remarked about these topics."""
    for document, read in world.publishings:
        for remark in read.report.remarks:
            if remark.topic in topics:
                path = (*read.within, *remark.path)
                line = read.place(remark).line
                yield Problem(Entry(document, None), path, remark.what, remark.fix, line=line)


_WARNING, _ERROR, _INFO = Severity.WARNING, Severity.ERROR, Severity.INFO

# Code, slug and severity; summary; why; topics.
_TABLE = (
    (
        ("DR801", "publisher-driver-name", _WARNING),
        "A publisher is configured with a driver name that the API does not allow.",
        "The API server refuses every slice of such a driver. A driver name has no slash.",
        (Topic.DRIVER_NAME,),
    ),
    (
        ("DR802", "publisher-attribute-name", _WARNING),
        "A publisher is configured with an attribute name that the API does not allow.",
        "The API server refuses the slice. Names of attributes are identifiers as in C.",
        (Topic.ATTRIBUTE_NAME,),
    ),
    (
        ("DR803", "publisher-attribute-form", _WARNING),
        "An attribute is not written as the API has it.",
        (
            "In the API an attribute is an object with one field, `string`, `int`, `bool` or\n"
            "`version`, in lower case. Some publishers also take a bare value or another\n"
            "spelling, and others publish an attribute without a value, which the API server\n"
            "refuses."
        ),
        (Topic.ATTRIBUTE_FORM,),
    ),
    (
        ("DR804", "publisher-slice-count", _WARNING),
        "A mapping states more slices than the one it makes.",
        "A publisher makes one slice per mapping and node, so the pool would never be complete.",
        (Topic.SLICE_COUNT,),
    ),
    (
        ("DR805", "publisher-pool-name", _WARNING),
        "One pool name is configured for all nodes that a mapping selects.",
        (
            "Nodes that share a pool name share its devices: with a second node the pool has a\n"
            "slice too many, and no device of either node is allocated."
        ),
        (Topic.POOL_NAME,),
    ),
    (
        ("DR806", "publisher-all-nodes", _WARNING),
        "A slice for all nodes is configured to be published once per selected node.",
        (
            "A publisher that sets `nodeName` beside `allNodes` is refused by the API server,\n"
            "and one that does not publishes the same devices once per node."
        ),
        (Topic.ALL_NODES,),
    ),
    (
        ("DR807", "publisher-amount-as-string", _WARNING),
        "An amount is configured as an attribute.",
        "Text cannot be compared as an amount; amounts belong in `capacity`.",
        (Topic.AMOUNT,),
    ),
    (
        ("DR808", "publisher-refused", _ERROR),
        "A publisher cannot use its configuration.",
        (
            "With anything in it that cannot be understood, or that the API would refuse, a\n"
            "publisher keeps to the configuration that it had before, or has none."
        ),
        (Topic.REFUSAL,),
    ),
    (
        ("DR809", "publisher-capacity", _WARNING),
        "An overlay promises another number of devices than it has.",
        (
            "An autoscaler makes nodes for as many devices as the capacity says; pods that ask\n"
            "for those that are not there stay pending on them."
        ),
        (Topic.PROMISE,),
    ),
    (
        ("DR810", "publisher-loose", _INFO),
        "Something is written as only some publishers understand it.",
        (
            "Keys in another case, `count`, a driver in a device, and what a publisher decides\n"
            "itself: the API has none of it, and another publisher may not take it."
        ),
        (Topic.SPELLING, Topic.PUBLISHER),
    ),
)

RULES = tuple(
    Rule(*name, summary, why, partial(_remarked, topics=topics))
    for name, summary, why, topics in _TABLE
)
