"""The event loop that is quickest with TLS, where it can be had."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """For `asyncio.Runner`; None is the usual one."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
