"""Output: tables, names, YAML."""

from __future__ import annotations

import io
import json
import sys
from typing import Any

import pytest

from dryrack.cli.output import print_json_lists, print_table, shown, yaml_text
from dryrack.kinds.documents import read


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


class Terminal(io.StringIO):
    """A terminal with 80 columns and no colors."""

    def isatty(self) -> bool:
        return True


def on_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: list[str], rows: list[list[str]]
) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys, "stdout", Terminal())
    print_table(columns, rows)
    assert isinstance(sys.stdout, Terminal)
    return [line.rstrip() for line in sys.stdout.getvalue().splitlines()]


def test_words_go_to_the_next_line_where_the_terminal_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the column that has most of them; names stay whole, and no line is too long."""
    lines = on_terminal(monkeypatch, ["NAME", "WHAT"], [["n" * 40, "many short words " * 4]])

    assert lines[3] == f" {'n' * 40}   many short words many short words"
    assert lines[4] == f" {'':40}   many short words many short words"


def test_a_name_is_never_broken_in_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that does not fit is as wide as in a pipe, so names can be copied."""
    device = f"gpu.example.com/{'n' * 40}/gpu-0"
    lines = on_terminal(monkeypatch, ["CLAIM", "DEVICE"], [["c" * 30, device]])

    assert lines == [f"{'CLAIM':30}   DEVICE", f"{'c' * 30}   {device}"]


@pytest.mark.parametrize("text", ["y", "N", "yes", "off", "1", "1.10", "null", "~", "a: b", "é"])
def test_text_in_yaml_is_text_for_kubectl(text: str) -> None:
    """Text that looks like another type is quoted, also letters that Go reads as booleans."""
    (document,) = read(yaml_text({"kind": "X", "apiVersion": "v1", "a": text}), "a.yaml").documents

    assert document.raw["a"] == text
