"""
Everything the given files say, indexed once.

Rules ask the same few questions over and over: which slices make up a pool, which devices
are offered to whom, which claims does a pod name. The world answers them from indexes that
are built on first use, so that a rule stays a loop and ten thousand slices stay seconds.
Objects are in file order everywhere; nothing here depends on the order of a hash.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from dryrack.hardware.config_formats import remarked_config, remarked_dra_config, remarked_overlay
from dryrack.kinds.core import Namespace, Node
from dryrack.kinds.meta import KubernetesObject
from dryrack.kinds.pool_generation import newest_generation
from dryrack.kinds.releases import DEFAULT_RELEASE, Release
from dryrack.kinds.resource import (
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)
from dryrack.kinds.validation.claims import REQUESTS_MAX
from dryrack.kinds.validation.meta import DEFAULT_NAMESPACE
from dryrack.linter.asks import Ask, asks_of
from dryrack.linter.decoding import releases_with_field
from dryrack.linter.expressions import visible_names
from dryrack.linter.refusals import Refusal, refusals
from dryrack.linter.selection import Selected, Selection, Supply

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

    from dryrack.hardware.config_formats import Read
    from dryrack.kinds.core import PodSpec
    from dryrack.kinds.documents import Document, Repeat
    from dryrack.kinds.documents import Problem as Fault
    from dryrack.kinds.pool_generation import Generation
    from dryrack.kinds.raw import Raw
    from dryrack.kinds.resource import Device, ResourceClaimSpec
    from dryrack.kinds.schemas.strict_decode import Conformed
    from dryrack.kinds.shape import Mismatch
    from dryrack.kinds.validation import FieldProblem
    from dryrack.linter.finding import Path


T_co = TypeVar("T_co", covariant=True)
Object = TypeVar("Object", bound=KubernetesObject)


@dataclass(frozen=True, slots=True)
class Entry(Generic[T_co]):
    """One object, and the document that says it."""

    document: Document
    value: T_co


@dataclass(frozen=True, slots=True)
class ClaimEntry:
    """A claim, or a template of one: what is asked, and where in the object it is said."""

    entry: Entry[ResourceClaim | ResourceClaimTemplate]
    spec: ResourceClaimSpec
    path: Path

    @property
    def is_template(self) -> bool:
        return not isinstance(self.entry.value, ResourceClaim)

    @property
    def name(self) -> str:
        return self.entry.value.metadata.name

    @property
    def namespace(self) -> str:
        return self.entry.value.metadata.namespace or DEFAULT_NAMESPACE


@dataclass(frozen=True, slots=True)
class PodEntry:
    """A pod, or the template of one inside a workload."""

    entry: Entry[object]
    spec: PodSpec
    path: Path
    namespace: str

    @property
    def is_template(self) -> bool:
        return self.path != ("spec",)


@dataclass(frozen=True, slots=True)
class UnknownField:
    """
    A field that Kubernetes does not have, and those that it has in the same place.

    `home` says where the field belongs, if it is a field of an object nearby.
    """

    document: Document
    path: Path
    siblings: tuple[str, ...]
    home: str = ""

    @property
    def releases(self) -> tuple[Release, ...]:
        """The releases that have the field."""
        return releases_with_field(self.document, self.path)


@dataclass(frozen=True, slots=True)
class PlacedDevice:
    """A device, and the slice that offers it."""

    entry: Entry[ResourceSlice]
    index: int
    device: Device

    @property
    def id(self) -> str:
        spec = self.entry.value.spec
        return f"{spec.driver}/{spec.pool.name}/{self.device.name}"

    @property
    def path(self) -> Path:
        return ("spec", "devices", self.index)

    @property
    def node_name(self) -> str | None:
        """The one node that has the device; None if others can reach it too."""
        spec = self.entry.value.spec
        return spec.node_name or self.device.node_name


@dataclass(frozen=True, eq=False)
class Pool:
    """The slices that share a driver and a pool name; consumers see only `current`."""

    driver: str
    name: str
    slices: tuple[Entry[ResourceSlice], ...]

    @cached_property
    def newest(self) -> Generation[Entry[ResourceSlice]]:
        return newest_generation(self.slices, lambda each: each.value.spec.pool)

    @property
    def generation(self) -> int:
        return self.newest.number

    @property
    def current(self) -> tuple[Entry[ResourceSlice], ...]:
        """The slices of the highest generation: the only ones that count."""
        return self.newest.slices

    @property
    def lacks_slices(self) -> bool:
        """Return whether the pool is incomplete, so that missing devices may still appear."""
        return max(self.newest.counts) > len(self.current)

    def devices(self) -> Iterator[PlacedDevice]:
        for entry in self.current:
            for index, device in enumerate(entry.value.spec.devices):
                yield PlacedDevice(entry, index, device)


@dataclass(frozen=True, eq=False)
class World:
    """
    All documents, and the objects in them that could be understood.

    Of documents about one object the last counts. Those that it replaces are judged by
    themselves, because a server sees them, too, but are no part of the world.
    """

    documents: tuple[Document, ...]
    entries: tuple[Entry[KubernetesObject], ...]
    pods: tuple[PodEntry, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    replaced: tuple[Entry[KubernetesObject], ...] = ()
    replaced_pods: tuple[PodEntry, ...] = ()
    faults: tuple[Fault, ...] = ()
    own_kind_faults: tuple[Fault, ...] = ()
    mismatches: tuple[tuple[Document, Mismatch], ...] = ()
    unknown_fields: tuple[UnknownField, ...] = ()
    undecodable: tuple[tuple[Document, FieldProblem], ...] = ()
    decoded: Mapping[int, Conformed] = field(default_factory=dict)
    """By the identity of the document."""
    contents: Mapping[str, bytes] = field(default_factory=dict)
    release: Release = DEFAULT_RELEASE

    def of_kind(self, kind: type[Object]) -> tuple[Entry[Object], ...]:
        return tuple(
            Entry(each.document, each.value)
            for each in self.entries
            if isinstance(each.value, kind)
        )

    def entry_of(self, document: Document) -> Entry[None]:
        """A document of which nothing is known but that it is there."""
        return Entry(document, None)

    @cached_property
    def publishings(self) -> tuple[Publishing, ...]:
        return tuple(publishings(self.documents, self.contents))

    @cached_property
    def upgraded(self) -> Mapping[int, Raw]:
        """Objects of older versions of resource.k8s.io in v1, by the id of their document."""
        # Most files have none.
        from dryrack.conversion import upgrade

        converted = zip(self.documents, upgrade(self.documents), strict=True)
        return {id(document): raw for document, raw in converted if raw is not None}

    @cached_property
    def slices(self) -> tuple[Entry[ResourceSlice], ...]:
        return self.of_kind(ResourceSlice)

    @cached_property
    def classes(self) -> tuple[Entry[DeviceClass], ...]:
        return self.of_kind(DeviceClass)

    @cached_property
    def nodes(self) -> tuple[Entry[Node], ...]:
        return self.of_kind(Node)

    @cached_property
    def namespaces(self) -> tuple[Entry[Namespace], ...]:
        return self.of_kind(Namespace)

    @cached_property
    def taint_rules(self) -> tuple[Entry[DeviceTaintRule], ...]:
        return self.of_kind(DeviceTaintRule)

    @cached_property
    def claims(self) -> tuple[ClaimEntry, ...]:
        """Claims and templates of claims, in file order."""
        found = []
        for entry in self.entries:
            match entry.value:
                case ResourceClaim() as claim:
                    found.append(ClaimEntry(Entry(entry.document, claim), claim.spec, ("spec",)))
                case ResourceClaimTemplate() as template:
                    spec = template.spec.spec
                    found.append(
                        ClaimEntry(Entry(entry.document, template), spec, ("spec", "spec"))
                    )
        return tuple(found)

    @cached_property
    def written_slices(self) -> tuple[Entry[ResourceSlice], ...]:
        """All slices in the documents, including those that a later document replaces."""
        return tuple(
            Entry(each.document, each.value)
            for each in (*self.entries, *self.replaced)
            if isinstance(each.value, ResourceSlice)
        )

    @cached_property
    def refusals(self) -> tuple[Refusal, ...]:
        return tuple(refusals(self))

    @cached_property
    def pools(self) -> tuple[Pool, ...]:
        grouped: dict[tuple[str, str], list[Entry[ResourceSlice]]] = defaultdict(list)
        for entry in self.slices:
            spec = entry.value.spec
            grouped[spec.driver, spec.pool.name].append(entry)
        return tuple(Pool(*key, tuple(entries)) for key, entries in grouped.items())

    @cached_property
    def devices(self) -> tuple[PlacedDevice, ...]:
        """Every device that a consumer would see."""
        return tuple(device for pool in self.pools for device in pool.devices())

    @cached_property
    def drivers(self) -> tuple[str, ...]:
        return tuple(sorted({pool.driver for pool in self.pools}))

    @cached_property
    def class_of(self) -> Mapping[str, Entry[DeviceClass]]:
        return first_by_name((each.value.metadata.name, each) for each in self.classes)

    @cached_property
    def namespace_of(self) -> Mapping[str, Entry[Namespace]]:
        return first_by_name((each.value.metadata.name, each) for each in self.namespaces)

    @cached_property
    def selection(self) -> Selection:
        return Selection(self.devices, self.release, self._visible)

    @cached_property
    def supply(self) -> Supply:
        return Supply(self.node_names)

    @cached_property
    def _visible(self) -> frozenset[str] | None:
        """The attributes and capacities that any selector, constraint or request names."""
        names: set[str] = set()
        for text in dict.fromkeys(self._expressions()):
            seen = visible_names(text)
            if seen is None:
                return None
            names |= seen
        for claim in self.claims:
            for constraint in claim.spec.devices.constraints:
                names.add(_bare(constraint.match_attribute or constraint.distinct_attribute or ""))
        for ask in self.asks:
            if ask.details.capacity is not None:
                names.update(_bare(name) for name in ask.details.capacity.requests)
        return frozenset(names)

    def _expressions(self) -> Iterator[str]:
        by_class = (each.value.spec.selectors for each in self.classes)
        by_ask = (ask.details.selectors for ask in self.asks)
        for selectors in (*by_class, *by_ask):
            yield from (each.cel.expression for each in selectors if each.cel)

    @cached_property
    def asks(self) -> tuple[Ask, ...]:
        return tuple(ask for claim in self.claims for ask in asks_of(claim))

    def served_by(self, class_name: str) -> Selected:
        """The devices of a class; of a class that is not in the files, any device."""
        entry = self.class_of.get(class_name)
        everything = self.selection.everything
        if entry is None:
            return everything
        return self.selection.select(entry.value.spec.selectors, everything)

    def candidates(self, ask: Ask) -> Selected:
        """The devices that pass the selectors of the class and then those of the ask."""
        return self.selection.select(
            ask.details.selectors, self.served_by(ask.details.device_class_name)
        )

    def has_way_out(self, ask: Ask) -> bool:
        """Return whether another alternative of the same request can be served."""
        # The API refuses more requests, as DR115 says; each would be compared with all others.
        if len(ask.claim.spec.devices.requests) > REQUESTS_MAX:
            return False
        return any(
            other.name != ask.name and self._can_be_served(other)
            for other in asks_of(ask.claim)
            if other.request == ask.request
        )

    def _can_be_served(self, ask: Ask) -> bool:
        selected = self.candidates(ask)
        return self.supply.reach([selected], ask.details.tolerations).count >= ask.count

    def claim_of(self, namespace: str, name: str, *, is_template: bool) -> ClaimEntry | None:
        return self._claims_by_name.get((namespace, name, is_template))

    @cached_property
    def templates_to_come(self) -> frozenset[tuple[str, str]]:
        """Templates that a vendor's controller makes: each ComputeDomain names one."""
        found: set[tuple[str, str]] = set()
        for document in self.documents:
            if document.kind == "ComputeDomain":
                name: Any = document.raw
                for step in ("spec", "channel", "resourceClaimTemplate", "name"):
                    name = name.get(step) if isinstance(name, dict) else None
                found.add((document.namespace or DEFAULT_NAMESPACE, str(name)))
        return frozenset(found)

    def claim_names(self, *, is_template: bool) -> Mapping[str, frozenset[str]]:
        """The names of all claims, or of all templates, by namespace."""
        return self._claim_names[is_template]

    @cached_property
    def _claim_names(self) -> Mapping[bool, Mapping[str, frozenset[str]]]:
        names: dict[bool, dict[str, set[str]]] = {True: {}, False: {}}
        for claim in self.claims:
            names[claim.is_template].setdefault(claim.namespace, set()).add(claim.name)
        return {
            is_template: {namespace: frozenset(each) for namespace, each in spaces.items()}
            for is_template, spaces in names.items()
        }

    @cached_property
    def _claims_by_name(self) -> Mapping[tuple[str, str, bool], ClaimEntry]:
        return first_by_name(
            ((each.namespace, each.name, each.is_template), each) for each in self.claims
        )

    @cached_property
    def node_names(self) -> tuple[str, ...]:
        """The nodes of the files; if none is given, the ones that slices speak of."""
        if self.nodes:
            return tuple(each.value.metadata.name for each in self.nodes)
        return tuple(dict.fromkeys(name for each in self.devices if (name := each.node_name)))


def is_own_kind(document: Document) -> bool:
    """Return whether the document is of dryrack's own group."""
    return document.api_version.startswith("dryrack.dev/")


def _bare(name: str) -> str:
    return name.rpartition("/")[2]


Name = TypeVar("Name", bound="Hashable")
Named = TypeVar("Named")


def first_by_name(pairs: Iterable[tuple[Name, Named]]) -> Mapping[Name, Named]:
    """The first of each name, in order of appearance."""
    found: dict[Name, Named] = {}
    for name, value in pairs:
        found.setdefault(name, value)
    return found


class Publishing(NamedTuple):
    """A publisher configuration: its document, and what the publisher's reader reports."""

    document: Document
    read: Read


def publishings(
    documents: Iterable[Document], contents: Mapping[str, bytes]
) -> Iterator[Publishing]:
    """
    Yield the publisher configurations in the documents, in file order.

    In a ConfigMap, each text that contains mappings counts as a configuration, under any key.
    """
    for document in documents:
        match document.kind:
            case "ConfigMap":
                content = contents.get(document.file, b"").decode(errors="replace")
                for key in _keys(document):
                    yield Publishing(document, remarked_config(document, key, content=content))
            case "NodeOverlay":
                yield Publishing(document, remarked_overlay(document))
            case "DRAConfig":
                yield Publishing(document, remarked_dra_config(document))


def _keys(document: Document) -> Iterator[str]:
    data = document.raw.get("data")
    for key, text in data.items() if isinstance(data, Mapping) else ():
        if isinstance(text, str) and "mappings" in text:
            yield key
