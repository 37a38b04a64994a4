"""Choose the event loop that is fastest with TLS, if it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the factory for `asyncio.Runner`; None is the default loop."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
