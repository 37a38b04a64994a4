"""Stored objects of one service account, and the tokens for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.apiserver.authentication.tokens import ISSUER, Holder, Tokens
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster.signing import EllipticKey

if TYPE_CHECKING:
    from dryrack.kinds.raw import Raw

ROBOT = Holder("factory", "robot", "uid-1")


@dataclass
class TokenWorld:
    """Stored objects, a clock, and the tokens for them."""

    clock: VirtualClock = field(default_factory=VirtualClock)
    stored: dict[tuple[str, str, str], str] = field(default_factory=dict)
    key: EllipticKey = field(default_factory=EllipticKey.fresh)

    def __post_init__(self) -> None:
        self.stored["serviceaccounts", "factory", "robot"] = "uid-1"
        self.tokens = Tokens(self.key, self, clock=self.clock, chance=self)

    def get(self, resource: str, namespace: str, name: str) -> Raw | None:
        uid = self.stored.get((resource, namespace, name))
        return None if uid is None else {"metadata": {"name": name, "uid": uid}}

    def uuid(self) -> str:
        return "token-1"

    def issue(self, holder: Holder = ROBOT, seconds: int = 3600) -> str:
        return self.tokens.issue(holder, audiences=[ISSUER], seconds=seconds)
