"""
Container Device Interface (CDI): what the devices that a driver names add to a container.

Specs are read from directories as a container runtime reads them: a file is JSON or YAML, and a
later directory overrides an earlier one. A device that two files of the same directory define is a
conflict, and cannot be used. A file that is not a valid spec is ignored.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# A larger file is mounted in the real world, and is not read into a virtual container.
_FILE_BYTES_MAX = 64 * 1024
_SPEC_BYTES_MAX = 4 * 1024 * 1024
_SPECS_MAX = 4096
_SUFFIXES = (".json", ".yaml")
_KIND = re.compile(r"[A-Za-z]([\w.-]*[A-Za-z0-9])?/[A-Za-z]([\w-]*[A-Za-z0-9])?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9]([\w.:-]*[A-Za-z0-9])?", re.ASCII)
_HOOKS = (
    "prestart",
    "createRuntime",
    "createContainer",
    "startContainer",
    "poststart",
    "poststop",
)


@dataclass(frozen=True, slots=True)
class ContainerEdits:
    """The changes that devices make to a container, or the error that hides them."""

    names: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    mounts: tuple[str, ...] = ()
    device_nodes: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    error: str = ""

    def describe(self) -> str:
        """Return the devices and their edits in one line."""
        parts = (
            ("environment", [f"{name}={value}" for name, value in self.env]),
            ("mounts", self.mounts),
            ("device nodes", self.device_nodes),
            ("hooks that do not run", [repr(each) for each in self.hooks]),
        )
        edits = [f"{what} {', '.join(each)}" for what, each in parts if each]
        return f"CDI devices {', '.join(self.names)}: {'; '.join(edits) or 'no edits'}"


def resolve(names: Sequence[str], directories: Iterable[Path]) -> ContainerEdits:
    """Return the edits of these CDI devices, "vendor.com/class=device", in their order."""
    known = dict(_devices(directories))
    missing = [name for name in names if known.get(name) is None]
    if missing:
        listed = ", ".join(missing)
        return ContainerEdits(tuple(names), error=f"unresolvable CDI devices {listed}")
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
        names=tuple(names),
        env=tuple(_variable(each) for edit in edits for each in get(edit, "env", ())),
        mounts=tuple(mounts),
        device_nodes=tuple(
            get(each, "path", "") for edit in edits for each in get(edit, "deviceNodes", ())
        ),
        hooks=tuple(
            f"{each['hookName']} {' '.join(get(each, 'args', ()) or (each['path'],))}"
            for edit in edits
            for each in get(edit, "hooks", ())
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
                continue
            for device in spec["devices"]:
                name = f"{spec['kind']}={device['name']}"
                edits = (spec.get("containerEdits"), device["containerEdits"])
                here[name] = edits if name not in here else None
        yield from here.items()


def _files(directories: Iterable[Path]) -> Iterator[Path]:
    for directory in directories:
        if directory.is_dir():
            yield from sorted(each for each in directory.iterdir() if each.suffix in _SUFFIXES)


def _read(path: Path) -> dict[str, Any]:
    """Return the spec of a file, which is parsed again only after a change."""
    found = path.stat()
    return _parse(path, found.st_mtime_ns, found.st_ino, found.st_size)


@lru_cache(maxsize=_SPECS_MAX)
def _parse(path: Path, _modified_at: int, _inode: int, size: int) -> dict[str, Any]:
    if size > _SPEC_BYTES_MAX:
        raise ValueError(f"larger than {_SPEC_BYTES_MAX} bytes")
    text = path.read_text()
    try:
        spec = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(spec, dict) or not isinstance(spec.get("kind"), str):
        raise ValueError("not a CDI spec: it has no kind")  # noqa: TRY004
    try:
        problem = next(_problems_of(spec), "")
    except (AttributeError, KeyError, TypeError):
        problem = "a field has a wrong type, or a required field is missing"
    if problem:
        raise ValueError(f"invalid CDI Spec: {problem}")
    return spec


def _problems_of(spec: dict[str, Any]) -> Iterator[str]:
    """Yield why a container runtime refuses a spec."""
    if not isinstance(spec.get("cdiVersion"), str):
        yield "it has no cdiVersion"
    if not _KIND.fullmatch(spec["kind"]):
        yield f"invalid vendor/class {spec['kind']!r}"
    if not spec.get("devices"):
        yield "no devices"
    yield from _problems_of_edits(get(spec, "containerEdits", {}))
    names = set()
    for device in spec["devices"]:
        name = device["name"]
        if not _NAME.fullmatch(name):
            yield f"invalid device name {name!r}"
        if name in names:
            yield f"multiple device {name!r}"
        names.add(name)
        if not any(device.get("containerEdits", {}).values()):
            yield f"device {name!r} has empty device edits"
        yield from _problems_of_edits(device["containerEdits"])


def _problems_of_edits(edits: dict[str, Any]) -> Iterator[str]:
    for each in get(edits, "env", ()):
        if "=" not in each[1:]:
            yield f"invalid environment variable {each!r}"
    for each in get(edits, "deviceNodes", ()):
        if not each["path"]:
            yield "invalid (empty) device path"
        if each.get("type", "") not in ("", "b", "c", "u", "p"):
            yield f"device {each['path']!r}: invalid type {each['type']!r}"
    for each in get(edits, "hooks", ()):
        if each["hookName"] not in _HOOKS:
            yield f"invalid hook name {each['hookName']!r}"
        if not each["path"]:
            yield f"invalid hook {each['hookName']!r} with empty path"
    for each in get(edits, "mounts", ()):
        if not each["hostPath"] or not each["containerPath"]:
            yield "invalid mount, empty host path or container path"


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
