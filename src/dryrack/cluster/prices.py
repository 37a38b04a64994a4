"""Load the price lists: the packaged ones, and files of the user on top."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from dryrack.planning import parse_prices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.planning import Price


def load_prices(own: Mapping[str, bytes] | None = None) -> dict[str, Price]:
    """Return the packaged prices by instance type, with those of the user's files on top."""
    data = resources.files("dryrack.planning") / "data"
    files = sorted(data.iterdir(), key=lambda each: each.name)
    packaged = {each.name: each.read_bytes() for each in files if each.name.endswith(".yaml")}
    return parse_prices(packaged) | (parse_prices(own) if own else {})
