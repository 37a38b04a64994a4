"""
Devices of nodes that do not have them: what the documents say, as ResourceSlices.

`sources` reads documents onto a `shelf`; `publishing` keeps the slices of all nodes as the shelf
has them. `engine` puts the two together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.controllers.slices.options import PublishOptions

if TYPE_CHECKING:
    from dryrack.controllers.slices.publisher import Publisher
    from dryrack.controllers.writes import Surroundings

__all__ = ["PublishOptions", "engine"]


def engine(around: Surroundings, options: PublishOptions) -> Publisher:
    """The publisher, to be run until it is cancelled."""
    # Options are needed by everybody who starts a cluster, and all the rest only by an engine.
    from dryrack.controllers.slices.publisher import Publisher

    return Publisher(around, options)
