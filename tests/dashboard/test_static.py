"""The page as it ships: nothing of another origin, no address from the root, and no markup made."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from dryrack.dashboard.bundle import STATIC

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(path for path in STATIC.rglob("*") if path.suffix in (".html", ".js", ".css"))
# What would be loaded or asked for: addresses in attributes, imports, calls and style sheets.
_ADDRESS = re.compile(
    r"""(?:\b(?:src|href)=|\bfrom\s|\bimport\(|\bfetch\(|EventSource\(|url\(|@import\s)\s*["'`]?([^"'`\s)>]+)"""
)
_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_address_is_relative(path: Path) -> None:
    """So that a proxy may put anything before them, and nothing is fetched from elsewhere."""
    addresses = _ADDRESS.findall(path.read_text())
    wrong = [each for each in addresses if re.match(r"/|[a-z]+://", each)]

    assert wrong == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_names_from_the_cluster_cannot_become_markup(path: Path) -> None:
    """Nothing on the page makes markup or code of a text."""
    assert _MARKUP.findall(path.read_text()) == []


def test_the_comparison_can_fail() -> None:
    """An address from the root is found."""
    assert _ADDRESS.findall('<script src="/static/a.js">') == ["/static/a.js"]
    assert _ADDRESS.findall("await fetch(`https://x/y`)") == ["https://x/y"]
