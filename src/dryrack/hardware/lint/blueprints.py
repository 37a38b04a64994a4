"""
Slices in the configuration of publishers of fake devices.

Three dialects are known: a ConfigMap whose text has `mappings`, a NodeOverlay with
`resourceSlices`, and a DRAConfig with `pools`. What they have in common is a slice without a
node, a `Blueprint`, from which a publisher makes slices for the nodes that it selects. The
dialects are looser than the API, so blueprints stay plain data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dryrack.hardware.lint.world import Entry
from dryrack.kinds.yaml_text import Parsed, documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.hardware.lint.finding import Path
    from dryrack.hardware.lint.world import World
    from dryrack.kinds.places import Places


@dataclass(frozen=True, slots=True)
class Text:
    """A YAML text inside a document, and where in the file its lines are."""

    tree: Places
    path: Path
    key_line: int
    is_block: bool

    def line(self, path: Path) -> int:
        """The line of the file; of a text that is not written in lines, that of its key."""
        inner = self.tree.locate(path[len(self.path) :]).line
        return self.key_line + inner if self.is_block else self.key_line


@dataclass(frozen=True, slots=True)
class Blueprint:
    """A slice as a publisher would make it, but for the node."""

    entry: Entry[object]
    path: Path
    spec: Mapping[str, Any]
    selects_nodes: bool
    text: Text | None = None

    def line(self, path: Path) -> int | None:
        """The line of `path`, if it is in a text inside the document."""
        return None if self.text is None else self.text.line(path)

    def devices(self) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        for index, device in enumerate(_items(self.spec.get("devices"))):
            yield (*self.path, "devices", index), device

    def drivers(self) -> Iterator[tuple[Path, str]]:
        """Names of drivers that the blueprint or one of its devices states."""
        for path, holder in ((self.path, self.spec), *self.devices()):
            name = holder.get("driver")
            if isinstance(name, str):
                yield (*path, "driver"), name

    @property
    def pool(self) -> Mapping[str, Any]:
        return _fields(self.spec.get("pool"))

    def attributes(self) -> Iterator[tuple[Path, str, Any]]:
        for path, device in self.devices():
            for name, value in _fields(device.get("attributes")).items():
                yield (*path, "attributes", str(name)), str(name), value


def blueprints(world: World) -> Iterator[Blueprint]:
    """All of them, in file order."""
    for document in world.documents:
        entry = Entry(document, None)
        spec = _fields(document.raw.get("spec"))
        match document.kind:
            case "ConfigMap":
                yield from _of_config_map(entry, world)
            case "NodeOverlay":
                for index, each in enumerate(_items(spec.get("resourceSlices"))):
                    path: Path = ("spec", "resourceSlices", index, "spec")
                    yield Blueprint(entry, path, _fields(each.get("spec")), selects_nodes=True)
            case "DRAConfig":
                yield _of_driver(entry, ("spec",), spec)
                for index, pool in enumerate(_items(spec.get("pools"))):
                    for nth, each in enumerate(_items(pool.get("resourceSlices"))):
                        path = ("spec", "pools", index, "resourceSlices", nth)
                        yield Blueprint(entry, path, each, selects_nodes=True)


def _of_config_map(entry: Entry[object], world: World) -> Iterator[Blueprint]:
    for key, content in _fields(entry.document.raw.get("data")).items():
        if not isinstance(content, str) or "mappings" not in content:
            continue
        path: Path = ("data", key)
        key_line = entry.document.place(path).line
        # A block has the text's lines as they are; the line after the key tells it from others.
        is_block = world.line_text(entry.document, key_line + 1) == content.splitlines()[0].strip()
        for parsed in documents(content):
            if isinstance(parsed, Parsed):
                text = Text(parsed.tree, path, key_line, is_block)
                yield from _of_mappings(entry, text, _fields(parsed.value))


def _of_mappings(
    entry: Entry[object], text: Text, config: Mapping[str, Any]
) -> Iterator[Blueprint]:
    yield _of_driver(entry, text.path, config, text)
    for index, mapping in enumerate(_items(config.get("mappings"))):
        path = (*text.path, "mappings", index, "resourceSlice")
        selects = bool(mapping.get("nodeSelectorTerms") or mapping.get("nodeSelector"))
        yield Blueprint(entry, path, _fields(mapping.get("resourceSlice")), selects, text)


def _of_driver(
    entry: Entry[object], path: Path, config: Mapping[str, Any], text: Text | None = None
) -> Blueprint:
    """A blueprint of nothing but the driver that a configuration states for all of its slices."""
    driver = {"driver": config["driver"]} if "driver" in config else {}
    return Blueprint(entry, path, driver, selects_nodes=False, text=text)


def _fields(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> list[Mapping[str, Any]]:
    return [_fields(each) for each in value] if isinstance(value, list) else []
