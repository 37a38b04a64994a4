"""
Device kinds by name, and the option that selects those of a node.

`KIND[:COUNT][,option=value...]` is read here, for every command that takes it.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.base.numbers import read_int64
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
    from dryrack.kinds.documents import Document

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
    *,
    documents: Iterable[Document] = (),
) -> tuple[DeviceKind, ...]:
    """
    Return the kinds of the values of `--devices` and of NodeDevices documents, each driver once.

    `catalogue` is called if one of them is of the kind `catalogue`.
    """
    entries = tuple(entry_points(group=KIND_GROUP) if entries is None else entries)
    kinds = [
        (f"--devices {text}", kind)
        for text in texts
        for kind in _kinds(options_of(text), entries, catalogue)
    ]
    for document in documents:
        kinds += _kinds_of_document(document, entries, catalogue)
    drivers: dict[str, str] = {}
    for text, kind in kinds:
        if kind.driver in drivers:
            first = drivers[kind.driver].removeprefix("--devices ")
            raise DevicesError(
                f"{text}: {first} already provides driver {kind.driver}; name each driver once"
            )
        drivers[kind.driver] = text
    return tuple(kind for _, kind in kinds)


def _kinds_of_document(
    document: Document, entries: Sequence[EntryPoint], catalogue: Callable[[], Catalogue] | None
) -> list[tuple[str, DeviceKind]]:
    # Imported here: a start without such a file does not need it.
    from dryrack.kubeletplugin.devices_file import options_in, problem_with

    kinds: list[tuple[str, DeviceKind]] = []
    for index, options in enumerate(options_in(document)):
        where = f"{document.file}:{document.place(('devices', index)).line}: devices[{index}]"
        try:
            kinds += ((where, kind) for kind in _kinds(_check(options), entries, catalogue))
        except DevicesError as error:
            raise problem_with(document, index, options, str(error)) from None
    return kinds


def options_of(text: str) -> KindOptions:
    """Return the parts of a text like `fake:8,model=x`."""
    head, *rest = text.split(",")
    kind, colon, count = head.partition(":")
    is_named = kind == CATALOGUE
    number = read_int64(count)
    if not kind:
        raise DevicesError(
            f"--devices {text!r}: the format is KIND[:COUNT][,option=value...], for example fake:8"
        )
    if colon and not is_named and (number is None or number < 1):
        raise DevicesError(
            f"--devices {text!r}: the count must be a positive integer, got {count!r}"
        )
    options: dict[str, str] = {}
    for part in rest:
        name, equals, value = part.partition("=")
        if not equals or not name or name in options:
            raise DevicesError(f"--devices {text!r}: {part!r} is not option=value, or repeats it")
        options[name] = value
    if is_named:
        return _check(KindOptions(kind, None, options, count))
    return KindOptions(kind, number if colon else None, options)


def _check(options: KindOptions) -> KindOptions:
    """Return valid options: only the kind `catalogue` has a name, and it has no count."""
    is_named = options.kind == CATALOGUE
    if is_named and (not options.name or options.count is not None):
        raise DevicesError(
            f"--devices {options.kind}: name an instance type, for example {CATALOGUE}:p5.48xlarge"
        )
    if options.name and not is_named:
        raise DevicesError(f"--devices {options.kind}: only the kind {CATALOGUE} has a name")
    return options


def _kinds(
    options: KindOptions,
    entries: Sequence[EntryPoint],
    catalogue: Callable[[], Catalogue] | None,
) -> tuple[DeviceKind, ...]:
    if options.kind != CATALOGUE or catalogue is None:
        return (_kind(options, entries),)
    # Imported here: a start without an instance type does not need it.
    from dryrack.kubeletplugin.kinds.catalogue import catalogue_kinds

    return catalogue_kinds(options, catalogue())


def _kind(options: KindOptions, entries: Sequence[EntryPoint]) -> DeviceKind:
    if options.kind in _IN_TREE:
        return _IN_TREE[options.kind](options)
    entry = next((each for each in entries if each.name == options.kind), None)
    if entry is None:
        known = ", ".join(sorted({CATALOGUE, *_IN_TREE, *(each.name for each in entries)}))
        raise DevicesError(f"--devices {options.kind}: unknown device kind; use one of: {known}")
    try:
        kind = entry.load()(options)
    except DryrackError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise DevicesError(
            f"device kind {entry.name} ({entry.value}): {why}; fix the package, or uninstall it"
        ) from error
    if not isinstance(kind, DeviceKind):
        raise DevicesError(
            f"device kind {entry.name} ({entry.value}): the entry point returned "
            f"a {type(kind).__name__}; return a dryrack.kubeletplugin.DeviceKind"
        )
    return kind
