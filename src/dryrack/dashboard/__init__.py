"""
The page: nodes and devices, claims, gangs, and why it is pending; live, in a browser, read-only.

Everything that it shows comes from one JSON API, computed by the code of `dryrack devices`,
`claims`, `gangs` and `explain`.
"""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.dashboard.access import Access
    from dryrack.dashboard.late_start import address_of, new_token, opened_when_visited
    from dryrack.dashboard.live import Live, check
    from dryrack.dashboard.recorded_scenario import recorded
    from dryrack.dashboard.server import serving
else:
    __getattr__ = exports(
        __name__,
        {
            "access": "Access",
            "late_start": "address_of new_token opened_when_visited",
            "live": "Live check",
            "recorded_scenario": "recorded",
            "server": "serving",
        },
    )

__all__ = [
    "Access",
    "Live",
    "address_of",
    "check",
    "new_token",
    "opened_when_visited",
    "recorded",
    "serving",
]
