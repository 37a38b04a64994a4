"""
Whether counters are too scarce together, although each by itself would do.

Give every counter a price. Whoever needs some devices pays at least for the cheapest of them. If
that costs more than all that is left in all counters is worth, it cannot be had, whatever the
prices were. Good prices are found by trying: what the cheapest devices overdraw gets dearer,
what they leave over gets cheaper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dryrack.allocation.search import Walk

# So many devices, out of these.
Lot = tuple[int, "Sequence[int]"]

_ATTEMPTS_MAX = 40

# Prices are whole numbers; this is what all that is left of one counter is worth at first.
_WORTH = 1 << 100


class Weighing:
    """One question: whether what is left in the counters can pay for some lots."""

    def __init__(self, walk: Walk, lots: Iterable[Lot]) -> None:
        self._lots = [(need, devices) for need, devices in lots]
        concerned = {device: None for _, devices in self._lots for device in devices}
        self._draws = {
            device: [(n, amount) for n, amount in walk.draw(device) if amount]
            for device in concerned
            # Others may have paid for a share.
            if not walk.problem.shareable(device)
        }
        left = walk.problem.ledger.left
        self._left = {
            number: left[number] - walk.drawn.get(number, 0)
            for draws in self._draws.values()
            for number, _ in draws
        }

    def too_dear(self) -> bool:
        """Whether some prices show that it cannot be paid."""
        if len(self._left) < 2 or not all(left > 0 for left in self._left.values()):
            return False
        prices = {number: _WORTH // left + 1 for number, left in self._left.items()}
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            bill = self._cheapest(prices)
            worth = sum(prices[number] * left for number, left in self._left.items())
            if sum(prices[number] * drawn for number, drawn in bill.items()) > worth:
                return True
            if all(drawn <= self._left[number] for number, drawn in bill.items()):
                return False
            for number, left in self._left.items():
                change = prices[number] * (bill[number] - left) * 2 // (left * attempt)
                prices[number] = max(prices[number] // 2, prices[number] + change, 1)
        return False

    def _cheapest(self, prices: Mapping[int, int]) -> dict[int, int]:
        """What the cheapest devices draw."""
        price_of = {
            device: sum(prices[number] * amount for number, amount in draws)
            for device, draws in self._draws.items()
        }
        bill = dict.fromkeys(self._left, 0)
        for need, devices in self._lots:
            for device in sorted(devices, key=lambda d: price_of.get(d, 0))[:need]:
                for number, amount in self._draws.get(device, ()):
                    bill[number] += amount
        return bill
