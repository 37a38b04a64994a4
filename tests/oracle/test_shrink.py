"""A shrunken case still fails, and nothing more can be left out of it."""

from __future__ import annotations

from typing import Any

from tests.oracle.shrink import shrink


def test_only_what_matters_remains() -> None:
    """A large case is reduced to the two parts that fail together."""
    case = {
        "slices": [{"devices": [{"name": f"d{n}", "taint": n % 3} for n in range(9)]}] * 3,
        "claims": [{"name": "a", "count": 2}, {"name": "b"}],
    }

    def fails(smaller: dict[str, Any]) -> bool:
        taints = [
            device.get("taint")
            for one in smaller.get("slices", ())
            for device in one.get("devices", ())
        ]
        return 2 in taints and any("count" in claim for claim in smaller.get("claims", ()))

    assert shrink(case, fails) == {
        "slices": [{"devices": [{"taint": 2}]}],
        "claims": [{"count": 2}],
    }


def test_a_case_is_not_changed_in_place() -> None:
    """The original stays what it was, to be reported beside the small one."""
    case = {"claims": [{"name": "a"}, {"name": "b"}]}
    shrink(case, lambda smaller: True)

    assert case == {"claims": [{"name": "a"}, {"name": "b"}]}


def test_what_must_stay_goes_only_with_its_whole() -> None:
    """A device may go, but what is left of it keeps its name."""
    case = {"devices": [{"name": "a", "taint": 1}, {"name": "b"}]}
    small = shrink(case, lambda smaller: bool(smaller.get("devices")), keep=frozenset({"name"}))

    assert small == {"devices": [{"name": "b"}]}
