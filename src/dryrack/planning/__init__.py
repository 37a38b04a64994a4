"""
The cheapest nodes on which the decider places a workload, and what is proved about their cost.

    case = case_of(world, release=release, chance=chance)
    result = plan(case.workload, types, case.cluster, Limits())
"""

from dryrack.planning.defragmentation import (
    Defragmentation,
    DriverError,
    FixedPod,
    Move,
    defragment,
)
from dryrack.planning.document import document_of
from dryrack.planning.model import (
    Limits,
    NewNode,
    NodeType,
    OneFewer,
    Plan,
    PlannedNode,
    PlannedPod,
    Reach,
    Unplaceable,
    Workload,
)
from dryrack.planning.planner import plan
from dryrack.planning.prices import Price, PriceError, date_and_source, parse_prices
from dryrack.planning.spreading import ZONE, plan_for_zones
from dryrack.planning.workload import (
    Case,
    case_of,
    daemons_of,
    from_zero,
    move_daemon,
    one_of_each_daemon_set,
)

__all__ = [
    "ZONE",
    "Case",
    "Defragmentation",
    "DriverError",
    "FixedPod",
    "Limits",
    "Move",
    "NewNode",
    "NodeType",
    "OneFewer",
    "Plan",
    "PlannedNode",
    "PlannedPod",
    "Price",
    "PriceError",
    "Reach",
    "Unplaceable",
    "Workload",
    "case_of",
    "daemons_of",
    "date_and_source",
    "defragment",
    "document_of",
    "from_zero",
    "move_daemon",
    "one_of_each_daemon_set",
    "parse_prices",
    "plan",
    "plan_for_zones",
]
