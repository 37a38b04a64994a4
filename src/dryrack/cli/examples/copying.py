"""Copy examples into a directory of the user, without overwriting anything unasked."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cli.examples.packaged import examples, find
from dryrack.cli.files import UsageError
from dryrack.cli.output import many, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dryrack.cli.examples.packaged import PackagedExample

_NEXT_COMMANDS = 2


def copy_one(name: str, directory: str, *, force: bool) -> None:
    if not name:
        raise UsageError("name an example, or copy all of them with --all; see: dryrack examples")
    example = find(name)
    target = directory.rstrip("/") or example.name
    _copy([(example, Path(target))], force=force)
    say(f"{many(len(example.files), 'file')} of example {example.name} copied to {target}/")
    commands = [each.replace(f"{example.name}/", f"{target}/") for each in example.commands]
    say("\n".join(["", "Try next:", *(f"  {each}" for each in commands[:_NEXT_COMMANDS])]))


def copy_all(directory: str, more: str, *, force: bool) -> None:
    if more:
        raise UsageError("--all: copies every example; name at most one directory, and no example")
    target = directory or "."
    found = [(each, Path(target) / each.name) for each in examples()]
    _copy(found, force=force)
    say(f"{many(len(found), 'example')} copied to {target}")


def _copy(pairs: Iterable[tuple[PackagedExample, Path]], *, force: bool) -> None:
    files = [(each.folder / file, to / file) for each, to in pairs for file in each.files]
    existing = next((target for _, target in files if target.exists()), None)
    if existing and not force:
        raise UsageError(f"{existing} exists; name another directory, or overwrite with --force")
    for source, target in files:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        except OSError as error:
            raise UsageError(f"{target}: {(error.strerror or str(error)).lower()}") from None
