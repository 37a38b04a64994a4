"""
ImageLocality: nodes that have a pod's images already.

An image counts by its size, and by the share of nodes that have it, so that not all pods go to the
one node that was first.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dryrack.placement.framework import SCORE_MAX, NodeGroups, Plugin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.placement.fleet import Fleet
    from dryrack.placement.framework import Args, ClusterScorer
    from dryrack.placement.node_state import NodeState
    from dryrack.placement.pod_constraints import PodConstraints

_MB = 1024 * 1024
# As kube-scheduler has them: nine of ten images on Docker Hub are within.
_LEAST = 23 * _MB
_MOST_PER_CONTAINER = 1000 * _MB


def _nearest(pod: PodConstraints, fleet: Fleet, _args: Args) -> ClusterScorer | None:
    known = fleet.nodes.images
    images = tuple(_images(pod.pod)) if known else ()
    if not any(known.get(name) for name in images):
        return None
    spec = pod.pod.spec
    most = _MOST_PER_CONTAINER * (len(spec.init_containers) + len(spec.containers))
    shares = [len(known.get(name, ())) / len(fleet) for name in images]

    def sizes(node: NodeState) -> tuple[int, ...]:
        return tuple(known.get(name, {}).get(node.name, 0) for name in images)

    return NodeGroups(images, sizes, partial(_scores, shares, most)).scorer()


def _scores(
    shares: Sequence[float], most: int, groups: Mapping[tuple[int, ...], int]
) -> Mapping[tuple[int, ...], int]:
    """By the sizes of the images that nodes have, and the share of nodes that have each."""
    scores = {}
    for sizes in groups:
        total = sum(int(size * share) for size, share in zip(sizes, shares, strict=True))
        counted = min(max(total, _LEAST), most) - _LEAST
        scores[sizes] = SCORE_MAX * counted // (most - _LEAST)
    return scores


def _images(pod: Pod) -> Iterator[str]:
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        yield _with_tag(container.image)
    for volume in pod.spec.volumes:
        if volume.image is not None:
            yield _with_tag(volume.image.reference)


def _with_tag(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


# It answers for all nodes at once, so nothing is remembered by what it signs.
IMAGE_LOCALITY = Plugin("ImageLocality", score=_nearest, sign=lambda _pod: None)
