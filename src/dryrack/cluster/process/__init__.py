"""Run a control plane as a process: start, state, logs, probes, stop."""

from typing import TYPE_CHECKING

from dryrack.base.lazy import exports

if TYPE_CHECKING:
    from dryrack.cluster.process.background import BackgroundError, in_background
    from dryrack.cluster.process.launching import Launch
    from dryrack.cluster.process.logs import LogFormat, configure_logs, server_log
    from dryrack.cluster.process.loopback import serving_on_loopback, with_keys
    from dryrack.cluster.process.loops import loop_factory
    from dryrack.cluster.process.modes import AuthorizationMode
    from dryrack.cluster.process.serving import Address, listen
    from dryrack.cluster.process.state import (
        ClusterState,
        ClusterStateError,
        Running,
        all_states,
        home,
        state_of,
    )
else:
    __getattr__ = exports(
        __name__,
        {
            "background": "BackgroundError in_background",
            "launching": "Launch",
            "logs": "LogFormat configure_logs server_log",
            "loopback": "serving_on_loopback with_keys",
            "loops": "loop_factory",
            "modes": "AuthorizationMode",
            "serving": "Address listen",
            "state": "ClusterState ClusterStateError Running all_states home state_of",
        },
    )

__all__ = [
    "Address",
    "AuthorizationMode",
    "BackgroundError",
    "ClusterState",
    "ClusterStateError",
    "Launch",
    "LogFormat",
    "Running",
    "all_states",
    "configure_logs",
    "home",
    "in_background",
    "listen",
    "loop_factory",
    "server_log",
    "serving_on_loopback",
    "state_of",
    "with_keys",
]
