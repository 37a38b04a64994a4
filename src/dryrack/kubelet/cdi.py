"""
Container Device Interface (CDI): what the devices that a driver names add to a container.

Specs are read from directories as a container runtime reads them: a file is JSON or YAML, and a
later directory overrides an earlier one. A device that two files of the same directory define is a
conflict, and cannot be used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# A larger file is mounted in the real world, and is not read into a virtual container.
_FILE_BYTES_MAX = 64 * 1024
_SUFFIXES = (".json", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class ContainerEdits:
    """The changes that devices make to a container, or the error that hides them."""

    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[str, ...] = ()
    device_nodes: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    error: str = ""


def resolve(names: Sequence[str], directories: Iterable[Path]) -> ContainerEdits:
    """Return the edits of these CDI devices, "vendor.com/class=device", in their order."""
    known = dict(_devices(directories))
    missing = [name for name in names if known.get(name) is None]
    if missing:
        listed = ", ".join(missing)
        return ContainerEdits(error=f"unresolvable CDI devices {listed}")
    edits: list[Any] = []
    for name in names:
        common, own = known[name]
        # The edits of a spec apply once, before those of its devices.
        edits += [each for each in (common, own) if each and each not in edits]
    mounts = {
        get(each, "containerPath", ""): get(each, "hostPath", "")
        for edit in edits
        for each in get(edit, "mounts", ())
    }
    return ContainerEdits(
        env=tuple(_variable(each) for edit in edits for each in get(edit, "env", ())),
        mounts=tuple(mounts),
        device_nodes=tuple(
            get(each, "path", "") for edit in edits for each in get(edit, "deviceNodes", ())
        ),
        lines=tuple((path, line) for path, source in mounts.items() for line in _lines_of(source)),
    )


def problems(directories: Iterable[Path]) -> Iterator[str]:
    """Yield the files that are not CDI specs, with the reason."""
    for path in _files(directories):
        try:
            _read(path)
        except (OSError, ValueError) as error:
            yield f"{path}: {error}"


def _devices(directories: Iterable[Path]) -> Iterator[tuple[str, Any]]:
    """Yield devices with the edits of their spec and their own; None for a conflict."""
    for directory in directories:
        here: dict[str, Any] = {}
        for path in _files([directory]):
            try:
                spec = _read(path)
            except (OSError, ValueError):
                # A container runtime ignores the file, too.
                continue
            for device in get(spec, "devices", ()):
                name = f"{spec.get('kind', '')}={get(device, 'name', '')}"
                edits = (spec.get("containerEdits"), get(device, "containerEdits", {}))
                here[name] = edits if name not in here else None
        yield from here.items()


def _files(directories: Iterable[Path]) -> Iterator[Path]:
    for directory in directories:
        if directory.is_dir():
            yield from sorted(each for each in directory.iterdir() if each.suffix in _SUFFIXES)


def _read(path: Path) -> dict[str, Any]:
    text = path.read_text()
    try:
        spec = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    if not isinstance(spec, dict) or not isinstance(spec.get("kind"), str):
        raise ValueError("not a CDI spec: it has no kind")  # noqa: TRY004
    return spec


def _variable(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def _lines_of(source: str) -> Sequence[str]:
    """Return the lines of a small text file; nothing for other files."""
    path = Path(source)
    try:
        if path.is_file() and path.stat().st_size <= _FILE_BYTES_MAX:
            return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        pass
    return ()
