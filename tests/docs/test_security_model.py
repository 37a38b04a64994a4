"""The bounds on the page about security are those in the code."""

from __future__ import annotations

import re
from pathlib import Path

from dryrack.base import limits

_PAGE = Path(__file__).parents[2] / "docs/concepts/security-model.md"
_UNITS = {"": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_ROW = re.compile(r"^\| [^|]+ \| `([A-Z_]+)` \| (\d+) ?([KMG]iB)? \|$", re.MULTILINE)


def test_every_bound_on_the_page_has_its_value() -> None:
    """A row names a constant and its value."""
    rows = _ROW.findall(_PAGE.read_text())
    stated = {name: int(number) * _UNITS[unit] for name, number, unit in rows}

    assert len(rows) > 20
    assert stated == {name: getattr(limits, name) for name in stated}


def test_every_buffer_that_a_client_fills_is_on_the_page() -> None:
    """Bounds in bytes are about input or unread output; what the server keeps for itself is not."""
    own = {
        *("WATCH_LOG_BYTES_MAX", "STREAM_BUFFER_BYTES_MAX", "WRITE_BUFFER_BYTES_MAX"),
        *("WATCH_CHUNK_BYTES_MAX", "CONVERSION_REVIEW_BYTES_MAX"),
    }
    names = {name for name in vars(limits) if name.endswith("_BYTES_MAX")} - own

    assert names - {name for name, _, _ in _ROW.findall(_PAGE.read_text())} == set()
