"""
ImageLocality: prefer nodes that have a pod's images already.

An image counts by its size, and by the share of nodes that have it, so that not all pods go to the
first node with the image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.placement.framework import SCORE_MAX, NodeGroups, Plugin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, ClusterScorer
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

_MB = 1024 * 1024
# kube-scheduler's bounds: nine of ten images on Docker Hub are within.
_LEAST = 23 * _MB
_MOST_PER_CONTAINER = 1000 * _MB


def _score(pod: PodConstraints, fleet: Fleet, _args: Args) -> ClusterScorer | None:
    nodes_by_image = fleet.nodes.images
    if not nodes_by_image:
        return None
    spec = pod.pod.spec
    containers = (*spec.init_containers, *spec.containers)
    references = [each.image for each in containers]
    references += [each.image.reference for each in spec.volumes if each.image is not None]
    images = tuple(map(_with_tag, references))
    if not any(nodes_by_image.get(name) for name in images):
        return None
    most = _MOST_PER_CONTAINER * len(containers)
    shares = [len(nodes_by_image.get(name, ())) / len(fleet) for name in images]

    def sizes_on(node: NodeState) -> tuple[int, ...]:
        return tuple(nodes_by_image.get(name, {}).get(node.name, 0) for name in images)

    def scores(groups: Mapping[tuple[int, ...], int]) -> Mapping[tuple[int, ...], int]:
        by_sizes = {}
        for sizes in groups:
            total = sum(int(size * share) for size, share in zip(sizes, shares, strict=True))
            counted = min(max(total, _LEAST), most) - _LEAST
            by_sizes[sizes] = SCORE_MAX * counted // (most - _LEAST)
        return by_sizes

    return NodeGroups(images, sizes_on, scores).scorer()


def _with_tag(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


# A cluster scorer is called for each pod, so that its signature does not matter.
IMAGE_LOCALITY = Plugin("ImageLocality", score=_score, sign=lambda _pod: None)
