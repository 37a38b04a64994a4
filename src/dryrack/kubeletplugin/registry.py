"""
Device kinds by name, and the option that says which of them a node has.

`KIND[:COUNT][,option=value...]` is read here, for every command that takes it.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.kubeletplugin.device_kind import DeviceKind, DevicesError, KindOptions
from dryrack.kubeletplugin.kinds.cpu import cpu_kind
from dryrack.kubeletplugin.kinds.fake import fake_kind
from dryrack.kubeletplugin.kinds.file import file_kind
from dryrack.kubeletplugin.kinds.gpu import gpu_kind
from dryrack.kubeletplugin.kinds.net import net_kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from importlib.metadata import EntryPoint

    from dryrack.hardware.catalogue import Catalogue

KIND_GROUP = "dryrack.device_kinds"
CATALOGUE = "catalogue"
_IN_TREE: dict[str, Callable[[KindOptions], DeviceKind]] = {
    "cpu": cpu_kind,
    "fake": fake_kind,
    "file": file_kind,
    "gpu": gpu_kind,
    "net": net_kind,
}


def read_devices(
    texts: Sequence[str],
    entries: Iterable[EntryPoint] | None = None,
    catalogue: Callable[[], Catalogue] | None = None,
) -> tuple[DeviceKind, ...]:
    """
    The kinds that the values of `--devices` ask for; each driver once.

    `catalogue` is called if one of them names what is in it.
    """
    entries = tuple(entry_points(group=KIND_GROUP) if entries is None else entries)
    asked = [(text, kind) for text in texts for kind in _kinds(text, entries, catalogue)]
    drivers: dict[str, str] = {}
    for text, kind in asked:
        if kind.driver in drivers:
            first = drivers[kind.driver]
            raise DevicesError(
                f"--devices {text}: driver {kind.driver} is there already, by {first}; name it once"
            )
        drivers[kind.driver] = text
    return tuple(kind for _, kind in asked)


def options_of(text: str) -> KindOptions:
    """`fake:8,model=x` in its parts."""
    head, *rest = text.split(",")
    kind, colon, count = head.partition(":")
    is_named = kind == CATALOGUE
    if is_named and not count:
        raise DevicesError(f"--devices {text!r}: of which machine? as in {CATALOGUE}:p5.48xlarge")
    is_count = count.isascii() and count.isdecimal() and int(count) > 0
    if not kind or (colon and not is_named and not is_count):
        raise DevicesError(f"--devices {text!r}: KIND[:COUNT][,option=value...], as in fake:8")
    options: dict[str, str] = {}
    for part in rest:
        name, equals, value = part.partition("=")
        if not equals or not name or name in options:
            raise DevicesError(f"--devices {text!r}: {part!r}; option=value, each option once")
        options[name] = value
    if is_named:
        return KindOptions(kind, None, options, count)
    return KindOptions(kind, int(count) if colon else None, options)


def _kinds(
    text: str, entries: Sequence[EntryPoint], catalogue: Callable[[], Catalogue] | None
) -> tuple[DeviceKind, ...]:
    options = options_of(text)
    if options.kind != CATALOGUE or catalogue is None:
        return (_kind(options, entries),)
    # Who names no machine need not wait for what reads machines.
    from dryrack.kubeletplugin.kinds.catalogue import catalogue_kinds

    return catalogue_kinds(options, catalogue())


def _kind(options: KindOptions, entries: Sequence[EntryPoint]) -> DeviceKind:
    if options.kind in _IN_TREE:
        return _IN_TREE[options.kind](options)
    entry = next((each for each in entries if each.name == options.kind), None)
    if entry is None:
        known = ", ".join(sorted({CATALOGUE, *_IN_TREE, *(each.name for each in entries)}))
        raise DevicesError(f"--devices {options.kind}: no such kind; there are: {known}")
    try:
        kind = entry.load()(options)
    except DryrackError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise DevicesError(
            f"device kind {entry.name} ({entry.value}): {why}; mend the package, or uninstall it"
        ) from error
    if not isinstance(kind, DeviceKind):
        raise DevicesError(
            f"device kind {entry.name} ({entry.value}): made a {type(kind).__name__}; "
            "make it a dryrack.kubeletplugin.DeviceKind"
        )
    return kind
