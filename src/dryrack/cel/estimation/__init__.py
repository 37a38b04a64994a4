"""
The estimated cost of a checked expression, without any device.

The API server refuses a selector whose highest estimate is above the limit, so the numbers
must be Kubernetes' own, quirks included: one unit more or less turns an accepted object into
a refused one. The rules come from three places, asked in this order for every call: the
extension libraries of CEL (`sets`, `lists`), the libraries of Kubernetes, then CEL's
standard functions. What is known about a device (no driver name is longer than 63
characters, and so on) enters as size hints.
"""

from dryrack.cel.estimation.arithmetic import CostEstimate, SizeEstimate
from dryrack.cel.estimation.paths import ITEMS, KEYS, VALUES, Path, SizeHints
from dryrack.cel.estimation.walk import estimate, estimate_by

__all__ = [
    "ITEMS",
    "KEYS",
    "VALUES",
    "CostEstimate",
    "Path",
    "SizeEstimate",
    "SizeHints",
    "estimate",
    "estimate_by",
]
