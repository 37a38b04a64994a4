"""
The current inventory, between those who read documents and those who publish.

An empty shelf means that nobody knows yet what there should be, and then nobody may delete
anything. An inventory without any devices means that there should be none.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.hardware.inventory import Inventory


class Shelf:
    """Holds one inventory; whoever listens is told when another one takes its place."""

    def __init__(self) -> None:
        self.filled = asyncio.Event()
        self._inventory: Inventory | None = None
        self._listeners: list[Callable[[], None]] = []

    @property
    def inventory(self) -> Inventory | None:
        """What there should be; None until it is known."""
        return self._inventory

    def listen(self, listener: Callable[[], None]) -> None:
        """Is told of every inventory from now on, and first of the one that is there."""
        self._listeners.append(listener)
        if self._inventory is not None:
            listener()

    def replace(self, inventory: Inventory) -> None:
        """Puts another in its place; an equal one is no change."""
        if inventory == self._inventory:
            return
        self._inventory = inventory
        self.filled.set()
        for listener in self._listeners:
            listener()
