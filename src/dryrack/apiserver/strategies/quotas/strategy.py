"""ResourceQuotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategy import Strategy
from dryrack.kinds.paths import get, spec_of
from dryrack.kinds.quota_usage.amounts import parse_amounts
from dryrack.kinds.rules.quotas import QuotaRules, quota_problems
from dryrack.kinds.validation.problems import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem


_COMPARED = ("cpu", "memory", "ephemeral-storage", "storage")


class QuotaStrategy(Strategy):
    """ResourceQuotas. The scopes cannot change."""

    def __init__(self) -> None:
        super().__init__(QuotaRules())

    def warnings(self, obj: Raw) -> Iterator[str]:
        return _warnings(spec_of(obj))

    def change_problems(self, obj: Raw, old: Raw, write: Write) -> Sequence[FieldProblem]:
        if write.subresource == "status":
            return ()
        spec = spec_of(obj)
        before = spec_of(old)
        found = list(quota_problems(spec))
        if set(get(spec, "scopes", ())) != set(get(before, "scopes", ())):
            found.append(invalid("spec.scopes", spec.get("scopes"), "field is immutable"))
        return found


def _warnings(spec: Raw) -> Iterator[str]:
    hard = parse_amounts(spec.get("hard"))
    for name in _COMPARED:
        asked = f"requests.{name}"
        if asked not in hard and name in ("cpu", "memory"):
            asked = name
        request = hard.get(asked)
        limit = hard.get(f"limits.{name}")
        if request is not None and limit is not None and request > limit:
            told = f"ResourceQuota {asked} ({request}) should be less than"
            yield f"{told} limits.{name} ({limit})"
