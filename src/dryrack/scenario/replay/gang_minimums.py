"""
The minimum of a recorded gang of which members have gone.

A gang keeps running when a member ends or is evicted, but a gang that starts needs its minimum. A
replay starts every gang, so a recording lowers the minimum to the number of members with a node.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING

from dryrack.kinds.catalog import Unknown, model_of
from dryrack.kinds.core import Pod
from dryrack.kinds.decode import decode
from dryrack.kinds.paths import get
from dryrack.placement import MINIMUM_LABELS, GangKey, Membership, definitions, membership

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.kinds.raw import Raw


class GangMinimums:
    """The gangs of a recording that have fewer members with a node than their minimum."""

    def __init__(self, pods: Sequence[Raw], groups: Iterable[Raw]) -> None:
        placed: Counter[GangKey] = Counter()
        minimums: dict[GangKey, int] = {}
        for pod in pods:
            said = membership(decode(pod, Pod))
            if isinstance(said, Membership):
                placed[said.key] += bool(pod["spec"].get("nodeName"))
                minimums[said.key] = said.min_count or 0
        for group in groups:
            model = model_of(group["apiVersion"], group["kind"])
            defined = () if isinstance(model, Unknown) else definitions(decode(group, model))
            by_key = {each.key: each.min_count for each in defined}
            minimums |= {key: by_key[key.definition] for key in placed if key.definition in by_key}
        self._lowered = {
            key: count for key, count in placed.items() if 0 < count < minimums.get(key, 0)
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """Return one line for each gang whose minimum is another in the recording."""
        return tuple(
            f"{key} runs with {count} pods, fewer than its minimum: recorded with this minimum"
            if count > 1
            else f"{key} runs with 1 pod, fewer than its minimum: recorded with this minimum"
            for key, count in sorted(self._lowered.items(), key=lambda it: str(it[0]))
        )

    def labels(self, pod: Raw) -> dict[str, str]:
        """Return the labels of a pod, with the minimum that the recording needs."""
        labels = dict(get(pod["metadata"], "labels", {}))
        said = membership(decode(pod, Pod))
        if not isinstance(said, Membership) or said.key not in self._lowered:
            return labels
        names = [name for name in MINIMUM_LABELS if name in labels]
        return labels | dict.fromkeys(names, str(self._lowered[said.key]))

    def group(self, group: Raw) -> Raw:
        """Return a PodGroup or Workload, with the minimum that the recording needs."""
        name = (group["metadata"].get("namespace") or "default", group["metadata"]["name"])
        counts: dict[str, int] = {}
        for key, count in self._lowered.items():
            if (key.namespace, key.name) == name:
                # Replicas of one pod group share its minimum.
                counts[key.group] = min(count, counts.get(key.group, count))
        if not counts:
            return group
        changed = deepcopy(group)
        spec = changed["spec"]
        if "minMember" in spec:
            spec["minMember"] = counts[""]
        for each in (spec, *get(spec, "podGroups", ())):
            policy = each.get("schedulingPolicy") or each.get("policy") or {}
            if policy.get("gang") and each.get("name", "") in counts:
                policy["gang"]["minCount"] = counts[each.get("name", "")]
        return changed
