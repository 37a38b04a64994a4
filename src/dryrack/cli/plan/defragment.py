"""`dryrack plan --defragment`: pods whose move frees whole nodes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from dryrack.cli.files import UsageError
from dryrack.cli.hardware import load
from dryrack.cli.output import Format, many, print_data, print_line, print_table, shown
from dryrack.client.endpoints import POD_DISRUPTION_BUDGETS
from dryrack.cluster import EXPLANATION_KINDS, SeededChance
from dryrack.kinds.releases import Release
from dryrack.placement import World, supply_devices
from dryrack.planning import defragment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.cli.options import PlanOptions
    from dryrack.cli.views.sources import Source

_NODES_NAMED_MAX = 20
_PLACEMENTS = {
    "any": "cordon the freed nodes, then delete the pods of one node after the other: the "
    "scheduler places all of them",
    "pinned": "pin each pod to its node: left to itself, the scheduler does not place all of them "
    "like this",
}


def run_defragmentation(options: PlanOptions, source: Source) -> None:
    """Print the moves and the nodes that they free; raise `UsageError` for options of plans."""
    of_plans = {
        "--existing": options.existing,
        "--instance-types": options.instance_types,
        "--prices": options.prices,
        "--fewest-nodes": options.fewest_nodes,
        "--node-labels": options.node_labels,
        "--spread": options.spread,
        "--zones": options.zones,
        "--max-cost": options.max_cost is not None,
        "--feature-gates": options.feature_gates,
        "--scheduler-config": options.scheduler_config,
    }
    wrong = [name for name, value in of_plans.items() if value]
    if wrong:
        raise UsageError(
            f"--defragment moves pods between existing nodes; leave out {', '.join(wrong)}"
        )
    objects = source.objects((*EXPLANATION_KINDS, POD_DISRUPTION_BUDGETS))
    supply = supply_devices(objects, lambda: load(options.catalogue_file))
    world = World.of([*objects, *supply.objects])
    release = Release(options.release)
    found = defragment(world, options.defragment, release=release, chance=SeededChance())
    document = found.document()
    if options.output is not Format.TABLE:
        print_data(document, options.output)
        return
    _print_moves(document)


def _print_moves(document: Mapping[str, Any]) -> None:
    moves, freed = document["moves"], document["freed"]
    if moves:
        rows = [
            (shown(each["pod"]), each["from"], each["to"], shown(each["gang"]) or "-")
            for each in moves
        ]
        print_table(("POD", "FROM", "TO", "GANG"), rows)
        print_line()
        named = ", ".join(freed[:_NODES_NAMED_MAX])
        more = f", +{len(freed) - _NODES_NAMED_MAX}" if len(freed) > _NODES_NAMED_MAX else ""
        nodes = many(len(freed), "whole node")
        print_line(f"moving {many(len(moves), 'pod')} frees {nodes}: {named}{more}")
        print_line(_PLACEMENTS[document["placement"]])
    else:
        print_line("no pods can be moved so that a node becomes whole")
    print_line(f"now {document['whole']} of {many(document['nodes'], 'node')} are whole")
    if not document["isComplete"]:
        print_line(f"the search stopped after {many(document['tried'], 'node')}")
    reasons = Counter(each["why"] for each in document["fixed"])
    for why, count in reasons.most_common():
        example = next(each["name"] for each in document["fixed"] if each["why"] == why)
        print_line(shown(f"{count} cannot be moved, for example {example}: {why}"))
