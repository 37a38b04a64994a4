"""
The resources that are served, by path.

A `Resource` is one plural in one version of one group. Versions of one resource share their stored
objects: `storage` names them ("pods", "resourceclaims.resource.k8s.io"), and each version's
strategy converts. Requests that are not about stored objects (reviews, logs, bindings) have a
`Handler` by verb. The registry changes while it serves, because custom resource definitions add
resources; caches compare `generation`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.answer.status import Subject
from dryrack.kinds.registry import ALL_VERBS, STATUS_VERBS
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dryrack.apiserver.extension_points import Answer, Call
    from dryrack.apiserver.strategy import Strategy
    from dryrack.store import Stored

Handler = Callable[["Call"], Awaitable["Answer"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subresource:
    """
    A part of an object with a path of its own.

    `status` needs no handlers: it is the object, written under another rule. Others name the kind
    they speak (`Eviction`, `Scale`) if it is not that of the object.
    """

    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: str = ""
    group: str = ""
    version: str = ""
    has_table: bool = True
    """Whether kubectl can print the subresource as a table."""
    handlers: Mapping[str, Handler] = field(default_factory=dict)


STATUS = Subresource(name="status")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A plural in a version of a group; `group` is "" for the core."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    strategy: Strategy
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: Mapping[str, Subresource] = field(default_factory=dict)
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    """By verb: instead of what is usual for stored objects."""
    storage_version: str = ""
    stored_in: str = ""
    """The name of what is stored, if it is another group's: both kinds of events are one."""
    schema: Mapping[str, Any] | None = None
    """The structural schema of a custom resource; of the others the server knows it."""
    has_outdated: bool = False
    """Whether objects are stored that a change of the schema has left behind."""
    hashed_as: str = ""
    """The apiVersion in which a real server stores the kind, if it is not the stored version."""
    deletion_shows_object: bool = False
    """Whether a deletion is answered with the object instead of a `Status`."""
    kept_by_status: tuple[tuple[str, ...], ...] = (("spec",),)
    """The paths of the fields that a write of the status does not change."""
    release: Release = DEFAULT_RELEASE
    """The release that a built-in kind has its schema from."""
    deprecation: str = ""
    """What every answer warns of, if this version is deprecated."""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def storage(self) -> str:
        """The name of the stored objects, for all versions."""
        if self.stored_in:
            return self.stored_in
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def stored_version(self) -> str:
        """The version (without the group) in which objects are stored."""
        return self.storage_version or self.version

    @property
    def is_stored_as_served(self) -> bool:
        """Return True if stored objects need no conversion in this version."""
        is_same = self.stored_version == self.version and not self.stored_in
        return is_same and not self.has_outdated

    @property
    def converts(self) -> bool:
        """Return whether a webhook may have to convert an object before it can be read."""
        return self.strategy.converts and not self.is_stored_as_served

    @property
    def is_custom(self) -> bool:
        """Return True if the resource comes from a CustomResourceDefinition."""
        return self.schema is not None

    @property
    def listed_as(self) -> str:
        return self.list_kind or f"{self.kind}List"

    def spoken(self, subresource: str) -> Resource:
        """Return the resource with the kind of a subresource, such as Binding or Scale."""
        part = self.subresources.get(subresource)
        if part is None or not part.kind:
            return self
        group = part.group or self.group
        version = part.version or self.version
        return replace(self, kind=part.kind, group=group, version=version)

    def read(self, stored: Stored) -> dict[str, Any]:
        """Return a stored object in this version."""
        if self.is_stored_as_served:
            return stored.object
        return self.strategy.read(stored)

    def read_metadata(self, stored: Stored) -> dict[str, Any]:
        """Return a stored object in this version, of which only the metadata matters."""
        return stored.object if self.is_stored_as_served else self.strategy.read_metadata(stored)

    def ready_all(self, items: Iterable[Stored]) -> None:
        """Have a webhook convert stored objects at once, before each of them is read."""
        if self.converts:
            self.strategy.ready_all(items)

    @property
    def as_resource(self) -> Subject:
        """The resource in refusals, with the group that stores it."""
        return Subject("" if self.stored_in else self.group, self.plural)

    @property
    def as_kind(self) -> Subject:
        """The kind in refusals."""
        return Subject("" if self.stored_in else self.group, self.kind)


class Registry:
    """All resources, by group, version and plural; in the order in which they came."""

    def __init__(
        self, resources: Iterable[Resource] = (), *, unserved: Iterable[Resource] = ()
    ) -> None:
        """`unserved` resources are known in bodies and managedFields, and have no path."""
        self.generation = 0
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._unserved = {(each.group, each.version, each.plural): each for each in unserved}
        self._built_in: set[str] = set()
        self._converting: tuple[int, bool] = (-1, False)
        self.add(*resources)

    def add(self, *resources: Resource) -> None:
        """Add resources; a resource that is served already is replaced."""
        for each in resources:
            self._by_path[each.group, each.version, each.plural] = each
            if not each.is_custom:
                self._built_in.add(each.group)
        self.generation += 1

    def remove(self, group: str, version: str, plural: str) -> None:
        self._by_path.pop((group, version, plural), None)
        self.generation += 1

    @property
    def converts(self) -> bool:
        """Return whether a webhook converts objects of any resource."""
        if self._converting[0] != self.generation:
            found = any(each.strategy.converts for each in self._by_path.values())
            self._converting = (self.generation, found)
        return self._converting[1]

    def serves(self, group: str) -> bool:
        """Return whether a built-in resource is in the group."""
        return group in self._built_in

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural))

    def recognised(self, group: str, version: str, plural: str) -> Resource | None:
        """Return a known resource, which may be not served."""
        key = (group, version, plural)
        return self._by_path.get(key) or self._unserved.get(key)

    def all(self) -> tuple[Resource, ...]:
        return tuple(self._by_path.values())

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of an apiVersion and kind, which may be not served."""
        known = (*self._by_path.values(), *self._unserved.values())
        found = (each for each in known if each.kind == kind)
        return next((each for each in found if each.api_version == api_version), None)

    def stored_as(self, storage: str) -> Resource | None:
        """Return the resource that stores under a name, in its stored version if that is served."""
        found = [each for each in self._by_path.values() if each.storage == storage]
        exact = (each for each in found if each.is_stored_as_served)
        return next(exact, found[0] if found else None)
