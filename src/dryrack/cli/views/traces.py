"""Print the trace of a decision: plugin by plugin, with similar nodes grouped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.cli.output import many, print_line, print_table, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.placement import DecisionTrace, NodeTrace, PodExplanation

_COLUMNS = ("NODE", "PLUGIN", "RESULT")
# Feasible nodes differ in their scores; the best are those that matter.
_GROUPS_MAX = 8


def print_trace(trace: DecisionTrace) -> None:
    """Print the result of each plugin for each node, in the order of evaluation."""
    groups = _groups(trace)
    rows = [row for alike in groups[:_GROUPS_MAX] for row in _rows(alike)]
    print_table(_COLUMNS, rows)
    more = sum(len(alike) for alike in groups[_GROUPS_MAX:])
    if more:
        print_line(f"and {many(more, 'more node')}; to print all, use -o json")
    chosen = f"node {trace.chosen}" if trace.chosen else "no node"
    print_line(shown(f"selected by profile {trace.scheduler_name}: {chosen}"))


def why_chosen(explanation: PodExplanation) -> str:
    """Return why the pod is on its node, as far as the present state shows it."""
    if not explanation.chosen:
        return "it would now fit on no node: the cluster has changed since it was bound"
    if explanation.chosen != explanation.node:
        since = "the cluster has changed since it was bound"
        return f"it would now be bound to node {explanation.chosen}: {since}"
    if explanation.trace is None:
        return "it would now be bound to the same node; to print the scores, add -v"
    totals = sorted(
        (each.total for each in explanation.trace.nodes if not each.refused_by), reverse=True
    )
    if len(totals) < 2:
        return "it is the only node where the pod fits"
    best = f"it is the best of {len(totals)} nodes where the pod fits"
    if totals[0] == totals[1]:
        return f"{best}: of the nodes with the highest score, the first by number of pods and name"
    return f"{best}: its score is {totals[0]}, the next {totals[1]}"


def _groups(trace: DecisionTrace) -> list[list[NodeTrace]]:
    """Return groups of nodes with equal results: the selected node first, then by score."""
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
    first = alike[0]
    more = len(alike) - 1
    name = f"{first.node} and {more} like it" if more else first.node
    for plugin in first.passed:
        yield name, plugin, "passed"
    if first.refused_by:
        yield name, first.refused_by, f"rejected: {first.refusal}"
        return
    for each in first.scores:
        weight = f" × {each.weight}" if each.weight != 1 else ""
        yield name, each.plugin, f"score {each.score}{weight}"
    yield name, "total", str(first.total)
