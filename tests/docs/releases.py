"""The page about releases: gates, fields, served versions and behavior, from the tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from dryrack.apiserver.runtime_config import RuntimeConfig
from dryrack.kinds import releases
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE, GATED_FIELDS, Gate, Release, gates_of

_PAGE = """\
# Kubernetes releases

dryrack gives the answers of Kubernetes {releases}.
The option `--release` selects one of them; the default is {default}.
`dryrack up`, `allocate`, `explain`, `lint`, `convert`, and `scenario` have this option.

This page lists what differs between the releases.

## Feature gates

The cell of a release contains the stage and the default of a gate.
You cannot change a gate that is locked.
A release with an empty cell does not have the gate.
A gate needs the gates in the last column.
`--feature-gates` of `dryrack up`, `allocate`, and `explain` changes gates.

| Gate | {heads} | Needs |
|---|{lines}---|
{gates}

## Fields of feature gates

The API server drops these fields while their gate is off, and reports nothing.
[`dryrack lint --release`](lint.md) reports them: DR121 if the gate is off by default, and DR010 \
if the release does not have the field.
`[]` stands for each item of a list, and `{{}}` for each value of a map.

| Kind | Field | Releases | Gate |
|---|---|---|---|
{fields}

## Versions

These kinds are not the same in all releases.
"Off" means that you enable the version with `--runtime-config`, or the kind with its feature gate.

| Kind | {heads} |
|---|{lines}
{versions}

## Behavior

{behaviors}"""

# The titles of tables whose type has another name; a new table has the name of its type.
_TITLES = {
    "AllocationBehaviour": "Allocation",
    "CelBehaviour": "CEL expressions",
    "ControllerBehaviour": "Controllers",
    "PatchBehaviour": "Patches",
    "SchedulingBehaviour": "Scheduling",
}


def page() -> str:
    names = [each.value for each in Release]
    return _PAGE.format(
        releases=" and ".join(names),
        default=DEFAULT_RELEASE.value,
        heads=" | ".join(names),
        lines="---|" * len(names),
        gates="\n".join(_gates()),
        fields="\n".join(_fields()),
        versions="\n".join(_versions()),
        behaviors="\n".join(_behaviors()),
    )


def _row(*cells: str) -> str:
    return "|" + "".join(f" {each} |" if each else " |" for each in cells)


def _gates() -> list[str]:
    tables = [gates_of(each) for each in Release]
    rows = []
    for name in dict.fromkeys(name for table in tables for name in table):
        gates = [table.get(name) for table in tables]
        needs = {need for gate in gates if gate is not None for need in gate.needs}
        names = ", ".join(f"`{each}`" for each in sorted(needs))
        rows.append(_row(f"`{name}`", *map(_gate, gates), names))
    return rows


def _gate(gate: Gate | None) -> str:
    if gate is None:
        return ""
    return f"{gate.stage}, {'on' if gate.is_on else 'off'}{', locked' if gate.is_locked else ''}"


def _fields() -> list[str]:
    rows = []
    for each in GATED_FIELDS:
        known = ", ".join(release.value for release in Release if each.is_in(release))
        gone = f" (later: `{each.replacement}`)" if each.replacement else ""
        rows.append(_row(each.kind, f"`{each.path}`{gone}", known, f"`{each.gate}`"))
    return rows


def _versions() -> list[str]:
    by_kind: dict[tuple[str, str], dict[Release, list[str]]] = {}
    for release in Release:
        gates = gates_of(release)
        for kind in builtin_kinds(release):
            is_on = RuntimeConfig().serves(kind) and (not kind.gate or gates[kind.gate].is_on)
            version = f"`{kind.version}`{'' if is_on else ' (off)'}"
            cells = by_kind.setdefault((kind.group, kind.kind), {})
            cells.setdefault(release, []).append(version)
    return [
        _row(
            f"{kind}, `{group}`" if group else kind,
            *(", ".join(cells.get(release, ["-"])) for release in Release),
        )
        for (group, kind), cells in by_kind.items()
        if any(cells.get(release) != cells.get(DEFAULT_RELEASE) for release in Release)
    ]


def behavior_tables() -> dict[str, Mapping[Release, Any]]:
    """Return the tables of behavior by the name of their type."""
    tables = (getattr(releases, name) for name in releases.__all__)
    return {
        type(each[DEFAULT_RELEASE]).__name__: each
        for each in tables
        if isinstance(each, Mapping) and is_dataclass(each.get(DEFAULT_RELEASE))
    }


def _behaviors() -> list[str]:
    heads = _row("Difference", *(each.value for each in Release))
    lines = []
    for name, table in sorted(behavior_tables().items()):
        comments = describe_fields(type(table[DEFAULT_RELEASE]))
        rows = []
        for field in fields(table[DEFAULT_RELEASE]):
            values = [getattr(table[each], field.name) for each in Release]
            # The table of CEL functions has internal names.
            if not isinstance(values[0], Mapping) and any(each != values[0] for each in values):
                rows.append(_row(comments[field.name], *map(_value, values)))
        lines += [
            f"### {_TITLES.get(name, name.removesuffix('Behaviour'))}",
            "",
            heads,
            f"|---|{'---|' * len(Release)}",
            *rows,
            "",
        ]
    return lines


def describe_fields(kind: type) -> dict[str, str]:
    """Return the comment above each field of a class, as one line."""
    found: dict[str, str] = {}
    comment: list[str] = []
    for line in inspect.getsource(kind).splitlines():
        text = line.strip()
        if text.startswith("#"):
            comment.append(text.lstrip("# "))
        elif match := re.match(r"(\w+): ", text):
            found[match[1]] = " ".join(comment)
            comment = []
        else:
            comment = []
    return found


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(f"`{each}`" for each in value if each)
    text = str(value).strip().replace("|", "\\|")
    return f"`{text}`" if text else ""
