"""The real time and real chance, which everything but a simulation runs on."""

import os
import time
import uuid


class SystemClock:
    """The time of the machine."""

    def now(self) -> float:
        return time.time()


class SystemChance:
    """Identifiers that nobody can guess."""

    def uuid(self) -> str:
        # uuid.uuid4 does the same, four times as slowly.
        return str(uuid.UUID(bytes=os.urandom(16), version=4))
