"""What devices exist where, and what is wrong with how they are described."""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.hardware.inventory import (
        Assignment,
        Batch,
        Inventory,
        Origin,
        Overlay,
        Pool,
        Section,
        Source,
        SourceKind,
        ThisNode,
    )
    from dryrack.hardware.matching import Matched, Matcher, pools_of
    from dryrack.hardware.node_terms import INSTANCE_TYPE
    from dryrack.hardware.promises import broken_promises
    from dryrack.hardware.slicing import (
        MANAGED_BY,
        MANAGER,
        SOURCE,
        node_owner,
        slices_of,
        source_label,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "inventory": (
                "Assignment Batch Inventory Origin Overlay Pool Section Source SourceKind ThisNode"
            ),
            "matching": "Matched Matcher pools_of",
            "node_terms": "INSTANCE_TYPE",
            "promises": "broken_promises",
            "slicing": "MANAGED_BY MANAGER SOURCE node_owner slices_of source_label",
        },
    )

__all__ = [
    "INSTANCE_TYPE",
    "MANAGED_BY",
    "MANAGER",
    "SOURCE",
    "Assignment",
    "Batch",
    "Inventory",
    "Matched",
    "Matcher",
    "Origin",
    "Overlay",
    "Pool",
    "Section",
    "Source",
    "SourceKind",
    "ThisNode",
    "broken_promises",
    "node_owner",
    "pools_of",
    "slices_of",
    "source_label",
]
