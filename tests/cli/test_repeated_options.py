"""Options that are given twice: none of their values gets lost without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import typer.main

from dryrack.cli.files import UsageError
from dryrack.cli.main import app

from .command import dryrack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\n"


def _options(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, each in getattr(command, "commands", {}).items():
        yield from _options(each, (*path, name))
        for option in () if hasattr(each, "commands") else each.params:
            if option.param_type_name == "option":
                yield (*path, name), option


def test_every_option_with_one_value_may_be_given_once() -> None:
    """Whichever command and option it is, a second value is refused before anything is done."""
    root = typer.main.get_command(app)
    checked = 0
    for path, option in _options(root):
        if option.multiple or option.is_flag:
            continue
        name = max(option.opts, key=len)
        with pytest.raises(UsageError, match=f"^{name}: given 2 times; give it once$"):
            root.main([*path, name, "1", option.opts[0], "1"], standalone_mode=False)
        checked += 1
    assert checked > 100


def test_a_flag_and_its_opposite_are_refused() -> None:
    """Which of the two counts would be a guess."""
    done = dryrack("publish", "--leader-elect", "--no-leader-elect", "--print-rbac")
    assert (done.returncode, done.stderr) == (
        2,
        "dryrack: --leader-elect: given 2 times; give it once\n",
    )


def test_lists_add_up() -> None:
    """The values of a repeated list option add up: each wrong value is an error."""
    for option, value in (
        ("--without", "kubelet"),
        ("--feature-gates", "DRAAdminAccess=true"),
        ("--runtime-config", "api/all=true"),
    ):
        for words in (("nonsense", value), (value, "nonsense")):
            done = dryrack("up", option, words[0], option, words[1])
            assert done.returncode == 2
            assert "nonsense" in done.stderr


def test_up_takes_several_files_of_objects(tmp_path: Path) -> None:
    """The objects of all files that --config names are there."""
    from dryrack.cli.virtual.up import _objects

    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(CONFIG_MAP % name)
    files = [str(tmp_path / f"{name}.yaml") for name in ("a", "b")]
    objects, _ = _objects(files)
    assert [each.name for each in objects] == ["a", "b"]
