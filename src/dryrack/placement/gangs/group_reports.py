"""
Reports of kube-scheduler about a native group, from the release on that decides about it as one.

kube-scheduler asks for one member after the other, and stops when those that are left are too few.
A member that does not fit has a message of its own; the others have that of the group.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.placement.gangs.dialects import Dialect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.kinds.core import Pod
    from dryrack.kinds.releases import GroupTexts, SchedulingBehaviour
    from dryrack.placement.gangs.dialects import Gang, GangKey
    from dryrack.placement.gangs.members import Member
    from dryrack.placement.gangs.search import GangRefused

_DEFAULT_POLICY = "PreemptLowerPriority"


@dataclass(frozen=True, slots=True)
class GroupReport:
    """The message about a group, and those of pods that have another one, by their full names."""

    message: str
    pods: Mapping[str, str] = field(default_factory=dict)


def group_texts(key: GangKey, behaviour: SchedulingBehaviour) -> GroupTexts | None:
    """Return the messages about a native group; None if the gang or the release has none."""
    return behaviour.group_texts if key.dialect is Dialect.POD_GROUP else None


def find_group_problem(texts: GroupTexts, gang: Gang, pods: Sequence[Pod]) -> str:
    """Return why kube-scheduler refuses to decide about these members; empty if it does not."""
    first = pods[0].spec
    priority = gang.group_priority or 0
    for spec in (pod.spec for pod in pods):
        if spec.scheduler_name != first.scheduler_name:
            return texts.schedulers.format(spec.scheduler_name, first.scheduler_name)
        if (spec.priority or 0) != priority:
            return texts.priorities.format(spec.priority or 0, priority)
        policies = [each.preemption_policy or _DEFAULT_POLICY for each in (spec, first)]
        if policies[0] != policies[1]:
            return texts.policies.format(*policies)
    return ""


def count_members(
    texts: GroupTexts, gang: Gang, members: Sequence[Member], outcome: GangRefused, bound: int
) -> tuple[str, frozenset[str]]:
    """Return how many members fit and how many are left, and the members after these."""
    lacking = {each.member.name for each in outcome.lacking}
    scheduled = bound
    remaining = len(members)
    for member in members:
        if scheduled + remaining < gang.min_count:
            break
        remaining -= 1
        scheduled += member.name not in lacking
    message = texts.hopeless.format(
        minimum=gang.min_count, scheduled=scheduled, remaining=remaining
    )
    left = members[len(members) - remaining :]
    return message, frozenset(member.name for member in left)


def report_group(
    texts: GroupTexts,
    gang: Gang,
    members: Sequence[Member],
    outcome: GangRefused,
    *,
    bound: int,
    preemption: str,
    is_preempting: bool,
) -> GroupReport:
    """Return the messages about a group that does not fit, each with the cause at its end."""
    hopeless, left = count_members(texts, gang, members, outcome, bound)
    message = ", ".join(filter(None, (hopeless, preemption)))
    of_fitting = message if is_preempting else f"{texts.unschedulable}, {message}"
    own = {each.member.name: each.message for each in outcome.lacking}
    pods: dict[str, str] = {}
    for member in members:
        if member.name in left:
            pods[member.name] = f"{hopeless}. {outcome.message}"
        else:
            pods[member.name] = own.get(member.name, f"{of_fitting}. {outcome.message}")
    return GroupReport(f"{message}. {outcome.message}", pods)
