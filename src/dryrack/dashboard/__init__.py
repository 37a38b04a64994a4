"""
The dashboard: a live, read-only web page of nodes, devices, claims, gangs and pending pods.

All its data comes from one JSON API, which uses the code of `dryrack devices`, `claims`, `gangs`
and `explain`.
"""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.dashboard.access import Access
    from dryrack.dashboard.late_start import address_of, new_token, serve_when_visited
    from dryrack.dashboard.live import Live, check
    from dryrack.dashboard.recorded_scenario import run_recorded
    from dryrack.dashboard.results import live_of_results, plan_document, read_plan, read_runs
    from dryrack.dashboard.server import serve
else:
    __getattr__ = exports(
        __name__,
        {
            "access": "Access",
            "late_start": "address_of new_token serve_when_visited",
            "live": "Live check",
            "recorded_scenario": "run_recorded",
            "results": "live_of_results plan_document read_plan read_runs",
            "server": "serve",
        },
    )

__all__ = [
    "Access",
    "Live",
    "address_of",
    "check",
    "live_of_results",
    "new_token",
    "plan_document",
    "read_plan",
    "read_runs",
    "run_recorded",
    "serve",
    "serve_when_visited",
]
