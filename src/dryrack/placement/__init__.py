"""Which pod goes where: what a pod asks of a node, which nodes can give it, and which is taken."""

from dryrack.placement.fleet import Fleet
from dryrack.placement.place import Cluster, Placed, Unfinished, Unplaced, decide, place
from dryrack.placement.room import Room

__all__ = ["Cluster", "Fleet", "Placed", "Room", "Unfinished", "Unplaced", "decide", "place"]
