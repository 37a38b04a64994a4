"""Chance that a seed decides: the same input gives the same identifiers, run after run."""

from __future__ import annotations

import random
import uuid


class SeededChance:
    """Identifiers that a seed decides."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))
