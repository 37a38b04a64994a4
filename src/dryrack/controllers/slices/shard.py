"""
Shards of the publisher: each node belongs to one of a number of publishers.

The assignment depends on the name of the node and the number of shards only. It is the jump
consistent hash of Lamping and Veach (2014), on the first eight bytes of the SHA-256 digest of the
name, so it is the same in every process and release. With one shard more, a node stays where it is
or moves to the new shard; with one shard less, only the nodes of the removed shard move.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

# The role of a publisher names the leases of all shards; a shard of a few nodes has no use.
SHARDS_MAX = 256

_MULTIPLIER = 2862933555777941757
_MODULUS = 2**64


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` shards; their indexes begin with 0."""

    index: int = 0
    count: int = 1

    def owns(self, key: str) -> bool:
        """Return True if a node, or `SHARED`, belongs to this shard."""
        return self.count == 1 or shard_of(key, self.count) == self.index


# Without shards.
ONLY_SHARD = Shard()


def shard_of(key: str, count: int) -> int:
    """Return the index of the shard of a node; `SHARED`, the empty name, belongs to shard 0."""
    if not key:
        return 0
    state = int.from_bytes(sha256(key.encode()).digest()[:8], "big")
    index = following = 0
    while following < count:
        index = following
        state = (state * _MULTIPLIER + 1) % _MODULUS
        following = ((index + 1) << 31) // ((state >> 33) + 1)
    return index


def parse_shard(text: str) -> Shard:
    """Return the shard of a text such as `0/4`; raise `ValueError` with the fix."""
    first, separator, second = text.partition("/")
    if not (separator and first.isdecimal() and second.isdecimal()):
        raise ValueError("not INDEX/COUNT; use, for example, 0/4 for the first of four shards")
    index, count = int(first), int(second)
    if not 0 < count <= SHARDS_MAX:
        raise ValueError(f"the number of shards must be between 1 and {SHARDS_MAX}")
    if index >= count:
        raise ValueError(f"the index must be between 0 and {count - 1}; the first shard is 0")
    return Shard(index, count)
