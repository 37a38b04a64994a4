"""
A check with manifests that other people wrote.

Each file goes through `dryrack lint`, `allocate` and `convert`, which must answer and not fail.
Then all files are applied to one control plane in random order and deleted in random order, several
times. Afterwards the control plane must be up, without pods, claims or devices that nobody owns,
and idle: in ten minutes it writes nothing but the leases of its nodes.

The control plane runs in this process, in virtual time, and the seed decides every order. An object
that the API server refuses is no failure: the report shows the answer, for you to compare with your
cluster.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from dryrack.apiserver.runtime_config import parse
from dryrack.base.errors import DryrackError
from dryrack.cli.main import app
from dryrack.client.endpoints import NAMESPACES, Endpoint
from dryrack.client.errors import AlreadyExistsError, ApiError, NotFoundError
from dryrack.client.timekeeping import VirtualClock, run_virtual
from dryrack.cluster.assembly import EngineOptions, node_plugins
from dryrack.cluster.catalogue import load_catalogue
from dryrack.cluster.control_plane import ControlPlaneOptions
from dryrack.cluster.embedded import EmbeddedCluster, embedded
from dryrack.cluster.initial_objects import (
    add_device_classes,
    add_nodes,
    apply_objects,
)
from dryrack.cluster.ports import SeededChance
from dryrack.kinds.documents import read
from dryrack.kubeletplugin import VirtualDrivers, device_classes, read_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from dryrack.kinds.documents import Document
    from dryrack.store import Record

Owned = tuple[Endpoint, str, str]

# Devices of the plugin and of the catalogue, so that most pods find what they ask for.
_DEVICES = ("gpu:8",)
_INSTANCE_TYPE = "p5.48xlarge"
_NODES = 4
_APPLIED_SECONDS = 120.0
_DELETED_SECONDS = 600.0
_IDLE_SECONDS = 600.0
_COMMANDS = (("lint",), ("allocate", "-f"), ("convert", "--claims", "--gangs", "native", "-f"))
# Exit codes of a command that answered: yes, no, or that it cannot read the file.
_ANSWERS = (0, 1, 2)


@dataclass(slots=True)
class Report:
    """What came of a folder of manifests."""

    files: int = 0
    applied: int = 0
    """Objects that the API server stored, in one round."""
    exits: dict[str, Counter[int]] = field(default_factory=dict)
    """How often each command ended with which exit code."""
    refused: dict[str, str] = field(default_factory=dict)
    """The API server's answer, by file, where it refused an object."""
    problems: list[str] = field(default_factory=list)
    """What must not happen."""


class _Writes:
    """Counts what is stored, by resource; an Event that expires is not a write of a controller."""

    def __init__(self) -> None:
        self.counts = Counter[str]()

    def append(self, record: Record) -> None:
        if record.json is not None:
            self.counts[record.key.resource] += 1


def manifests_below(folder: Path) -> list[Path]:
    """Return the YAML and JSON files below a folder, in the order of their names."""
    return sorted(path for path in folder.rglob("*") if path.suffix in (".yaml", ".yml", ".json"))


def check(
    files: Sequence[Path],
    *,
    rounds: int = 3,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Try all files, and return what came of it."""
    report = Report(files=len(files))
    for command in _COMMANDS:
        progress(f"dryrack {' '.join(command)}: {len(files)} files")
        counts = report.exits[command[0]] = Counter()
        for file in files:
            result = CliRunner().invoke(app, [*command, str(file)])
            counts[result.exit_code] += 1
            is_answer = isinstance(result.exception, (SystemExit, DryrackError, type(None)))
            if not is_answer or result.exit_code not in _ANSWERS:
                report.problems.append(f"{file}: dryrack {command[0]} failed: {result.exception!r}")
    run_virtual(_play(files, report, random.Random(seed), rounds, progress))
    return report


async def _play(
    files: Sequence[Path],
    report: Report,
    chance: random.Random,
    rounds: int,
    progress: Callable[[str], None],
) -> None:
    clock = VirtualClock()
    written = _Writes()
    kinds = read_devices(_DEVICES, [])
    drivers = VirtualDrivers(kinds)
    catalogue = load_catalogue()
    options = ControlPlaneOptions(
        clock=clock,
        chance=SeededChance(chance.getrandbits(32)),
        drivers=drivers,
        recorder=written,
        runtime_config=parse("api/all=true"),
    )
    engines = EngineOptions(catalogue=catalogue, drivers=drivers, plugins=node_plugins(drivers))
    documents = {file: read(file.read_bytes(), str(file)).documents for file in files}
    async with embedded(options, engines=engines) as cluster:
        classes = (*catalogue.device_classes.values(), *device_classes(kinds))
        await add_device_classes(cluster.client, classes)
        await add_nodes(cluster.client, _NODES, catalogue.instance_types[_INSTANCE_TYPE])
        await clock.advance(60)
        before = _objects(cluster)
        for number in range(rounds):
            progress(f"round {number + 1} of {rounds}: apply, delete, wait until idle")
            owned = await _apply(documents, report, chance, cluster)
            report.applied = len(owned)
            await clock.advance(_APPLIED_SECONDS)
            chance.shuffle(owned)
            await _delete(owned, cluster)
            await clock.advance(_DELETED_SECONDS)
            report.problems += _leaks(cluster, before, f"round {number + 1}")
            report.problems += await _writes_at_rest(written, clock, f"round {number + 1}")


async def _apply(
    documents: Mapping[Path, Sequence[Document]],
    report: Report,
    chance: random.Random,
    cluster: EmbeddedCluster,
) -> list[Owned]:
    """Apply all files in random order; return what has to be deleted afterwards."""
    order = list(documents)
    owned: dict[Owned, None] = {}
    chance.shuffle(order)
    for file in order:
        for document in documents[file]:
            await _add_namespace(document, cluster)
            try:
                [stored] = await apply_objects(cluster.plane, [document], "corpus")
            except (DryrackError, ApiError) as error:
                report.refused.setdefault(str(file), str(error))
                continue
            metadata = stored["metadata"]
            resource = cluster.plane.server.registry.by_kind(document.api_version, document.kind)
            assert resource is not None, "the API server has just stored one"
            endpoint = Endpoint(
                *(resource.group, resource.version, resource.plural, resource.kind),
                is_namespaced=resource.namespaced,
            )
            owned[endpoint, metadata.get("namespace", ""), metadata["name"]] = None
    return list(owned)


async def _add_namespace(document: Document, cluster: EmbeddedCluster) -> None:
    metadata = document.raw.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    if isinstance(namespace, str) and namespace:
        try:
            await cluster.client.create(NAMESPACES, {"metadata": {"name": namespace}})
        except ApiError as error:
            if not isinstance(error, AlreadyExistsError):
                return


async def _delete(owned: Iterable[Owned], cluster: EmbeddedCluster) -> None:
    for endpoint, namespace, name in owned:
        try:
            await cluster.client.delete(
                endpoint, name, namespace=namespace, propagation="Background"
            )
        except NotFoundError:
            continue
    listing = await cluster.client.list(NAMESPACES)
    for each in listing.items:
        name = each["metadata"]["name"]
        if name != "default" and not name.startswith("kube-"):
            await cluster.client.delete(NAMESPACES, name)


def _objects(cluster: EmbeddedCluster) -> frozenset[str]:
    """Return the names of all objects that a leak would add to."""
    store = cluster.plane.store
    return frozenset(
        f"{resource} {stored.key.namespace}/{stored.key.name}"
        for resource in store.resources()
        if resource.partition(".")[0] not in ("events", "leases")
        for stored in store.list(resource, None)[0]
    )


def _leaks(cluster: EmbeddedCluster, before: frozenset[str], when: str) -> list[str]:
    left = sorted(_objects(cluster) - before)
    gone = sorted(before - _objects(cluster))
    return [f"{when}: {each} is left" for each in left] + [
        f"{when}: {each} is missing" for each in gone if "deviceclasses" not in each
    ]


async def _writes_at_rest(written: _Writes, clock: VirtualClock, when: str) -> list[str]:
    written.counts.clear()
    await clock.advance(_IDLE_SECONDS)
    return [
        f"{when}: {count} writes of {resource} at rest"
        for resource, count in sorted(written.counts.items())
        if not resource.startswith("leases")
    ]
