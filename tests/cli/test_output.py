"""What is printed, and how."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dryrack.cli.output import print_json_lists, shown


@pytest.mark.parametrize(
    "lists",
    [
        {},
        {"a": []},
        {"a": [], "b": [1]},
        {"a": [{"x": [1, {"y": "ü\n"}], "z": {}}, {}], "b": [[], None], 'q"': ["\n"]},
    ],
)
def test_lists_are_printed_as_the_whole_would_be(
    lists: dict[str, list[Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    """Entry by entry or at once: the text is the same."""
    print_json_lists({key: iter(entries) for key, entries in lists.items()})
    whole = json.dumps(lists, indent=2, ensure_ascii=False)

    assert capsys.readouterr().out == (f"{whole}\n" if lists else "{\n}\n")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain ü 😀", "plain ü 😀"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\r\nb\tc\0", "a\\r\\nb\\tc\\x00"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ud800", "\\ud800"),
        ("\x9b1m\x7f", "\\x9b1m\\x7f"),
    ],
)
def test_what_is_shown_gives_no_orders(text: str, seen: str) -> None:
    """Letters are shown as they are, and what a terminal would obey as it is written."""
    assert shown(text) == seen
