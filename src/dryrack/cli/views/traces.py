"""The trace of a decision, for a person: plugin by plugin, nodes that are alike together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cli.output import many, print_line, print_table, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.placement import DecisionTrace, NodeTrace, PodExplanation

_COLUMNS = ("NODE", "PLUGIN", "VERDICT")
# Feasible nodes differ in their scores; the best are those that matter.
_GROUPS_MAX = 8


def print_trace(trace: DecisionTrace) -> None:
    """What each plugin says of each node, in the order in which they are asked."""
    groups = _groups(trace)
    rows = [row for alike in groups[:_GROUPS_MAX] for row in _rows(alike)]
    print_table(_COLUMNS, rows)
    more = sum(len(alike) for alike in groups[_GROUPS_MAX:])
    if more:
        print_line(f"and {many(more, 'further node')}; see -o json")
    chosen = f"node {trace.chosen}" if trace.chosen else "no node"
    print_line(shown(f"chosen by the profile {trace.scheduler_name}: {chosen}"))


def why_chosen(story: PodExplanation) -> str:
    """Why the pod is where it is, as far as that is so now."""
    if not story.chosen:
        return "decided again now, it would find no node: things have changed since"
    if story.chosen != story.node:
        return f"decided again now, it would go to node {story.chosen}: things have changed since"
    if story.trace is None:
        return "decided again now, it would go there, too; -v shows what speaks for it"
    totals = sorted((each.total for each in story.trace.nodes if not each.refused_by), reverse=True)
    if len(totals) < 2:
        return "it is the only node that takes the pod"
    best = f"it is the best of {len(totals)} nodes that take the pod"
    if totals[0] == totals[1]:
        return f"{best}: of those with the highest score, the one with the fewest pods, by name"
    return f"{best}: its score is {totals[0]}, the next {totals[1]}"


def _groups(trace: DecisionTrace) -> list[list[NodeTrace]]:
    """Nodes of which all plugins say the same: the chosen first, then by score."""
    together: dict[object, list[NodeTrace]] = {}
    for each in trace.nodes:
        verdicts = (tuple(each.passed), each.refused_by, each.refusal, tuple(each.scores))
        is_chosen = each.node == trace.chosen
        together.setdefault((is_chosen, verdicts), []).append(each)
    return sorted(
        together.values(),
        key=lambda alike: (
            alike[0].node != trace.chosen,
            bool(alike[0].refused_by),
            -alike[0].total,
            -len(alike),
        ),
    )


def _rows(alike: Sequence[NodeTrace]) -> Iterator[tuple[str, str, str]]:
    first, more = alike[0], len(alike) - 1
    name = f"{first.node} and {more} like it" if more else first.node
    for plugin in first.passed:
        yield name, plugin, "passed"
    if first.refused_by:
        yield name, first.refused_by, f"refused: {first.refusal}"
        return
    for each in first.scores:
        weight = f" × {each.weight}" if each.weight != 1 else ""
        yield name, each.plugin, f"score {each.score}{weight}"
    yield name, "total", str(first.total)
