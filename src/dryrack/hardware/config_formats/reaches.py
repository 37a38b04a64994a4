"""Who reaches the devices of a slice: the node that matched, or others too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.hardware.config_formats.decoding import decoded
from dryrack.hardware.config_formats.fields import Given, folded
from dryrack.hardware.config_formats.report import Topic
from dryrack.hardware.inventory import EveryNode, PerDevice, SelectedNodes, ThisNode
from dryrack.kinds import shape
from dryrack.kinds.core import NodeSelector
from dryrack.kinds.shape import described

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.hardware.config_formats.report import Report
    from dryrack.hardware.inventory import Reach

_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ONE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
_SELECTOR = shape.of(NodeSelector)


def reach(given: Given, found: Mapping[str, Given], report: Report) -> Reach:
    """What the fields of a slice say."""
    stated = [name for name in _PLACES if name in found]
    if len(stated) > 1:
        what = f"{_ONE} is required, but multiple fields are set"
        report.refuse(given.path, what, f"keep one of {', '.join(stated)}")
        return ThisNode()
    name = stated[0] if stated else ""
    if name in ("allNodes", "perDeviceNodeSelection") and not _is_true(found[name], report):
        return ThisNode()
    match name:
        case "allNodes":
            what = "allNodes and a node selector are both set; all nodes get the devices"
            fix = "remove allNodes, unless all nodes can use the devices"
            report.remark(Topic.ALL_NODES, found[name].path, what, fix)
            return EveryNode()
        case "perDeviceNodeSelection":
            return PerDevice()
        case "nodeSelector":
            return _selected(found[name], report)
        case "nodeName":
            what = "dryrack sets the name of the node that matches"
            report.remark(Topic.PUBLISHER, found[name].path, what, "leave it out")
    return ThisNode()


def _is_true(given: Given, report: Report) -> bool:
    if given.value is True:
        return True
    if given.value is False:
        report.refuse(given.path, "must be either unset or set to true", "leave it out")
    else:
        what = f"expected true, got {described(given.value)}"
        report.refuse(given.path, what, "write true without quotes, or leave it out")
    return False


def _selected(given: Given, report: Report) -> Reach:
    document = Given(folded(given, _SELECTOR, report), given.path)
    selector = decoded(document, NodeSelector, given, report)
    return ThisNode() if selector is None else SelectedNodes(selector)
