"""Print the list of examples, and the files of one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dryrack.base.text import hint
from dryrack.cli.examples.commands import ListFormat
from dryrack.cli.examples.packaged import PAGE, examples, find
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, print_data, print_line, print_table

if TYPE_CHECKING:
    from dryrack.cli.examples.packaged import PackagedExample


def print_list(group: str, output: ListFormat) -> None:
    found = examples()
    groups = {each.group for each in found}
    if group and group not in groups:
        raise UsageError(f"--group {group!r}: no such group; {hint(group, groups)}")
    found = [each for each in found if group in ("", each.group)]
    match output:
        case ListFormat.TABLE:
            rows = [(each.name, each.group, each.title, _needs(each)) for each in found]
            print_table(("NAME", "GROUP", "SHOWS", "NEEDS"), rows)
        case ListFormat.JSON:
            items = [
                {
                    "name": each.name,
                    "group": each.group,
                    "shows": each.title,
                    "needs": each.needs,
                    "cluster": each.uses_cluster,
                }
                for each in found
            ]
            print_data({"examples": items}, Format.JSON)
        case ListFormat.NAME:
            for each in found:
                print_line(each.name)


def _needs(example: PackagedExample) -> str:
    return example.needs or "-" if example.uses_cluster else "no cluster"


def print_example(name: str) -> None:
    """Print the page, then every other file below its name."""
    example = find(name)
    sys.stdout.write(example.page)
    for file in example.files:
        if file.as_posix() != PAGE:
            sys.stdout.write(f"\n# {example.name}/{file.as_posix()}\n")
            sys.stdout.write((example.folder / file).read_text())


def print_manifests(name: str) -> None:
    """Print what a user applies first, as one YAML stream."""
    example = find(name)
    if not example.first_manifests:
        raise UsageError(f"example {name!r} has no manifest; leave out: -o yaml")
    texts = [(example.folder / file).read_text() for file in example.first_manifests]
    sys.stdout.write("---\n".join(texts))
