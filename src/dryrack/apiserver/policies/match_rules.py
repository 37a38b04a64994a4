"""
Match constraints of policies and bindings: resource rules and selectors.

A rule may name another version in which the objects of a request are served. Under
`matchPolicy: Equivalent` it matches them in that version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.selectors import matches_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dryrack.apiserver.registry import Resource
    from dryrack.apiserver.strategy import Write
    from dryrack.kinds.raw import Raw

_NAMESPACES = "namespaces"
# Parts of pods to which a client stays connected.
_CONNECTED = ("attach", "exec", "portforward")


@dataclass(frozen=True, slots=True)
class Attempt:
    """
    A write that is requested; `new` is None for a deletion, `old` for a creation.

    For a subresource with a kind of its own, they are of that kind: Scale, Eviction, Binding.
    """

    resource: Resource
    new: Raw | None
    old: Raw | None
    write: Write

    @property
    def operation(self) -> str:
        if self.write.subresource in _CONNECTED:
            return "CONNECT"
        if self.new is None:
            return "DELETE"
        return "CREATE" if self.old is None else "UPDATE"

    @property
    def is_about_part(self) -> bool:
        """Return whether the objects are of the kind of a subresource."""
        return self.resource.spoken(self.write.subresource) is not self.resource

    @property
    def name(self) -> str:
        found = metadata_of(self.new or self.old or {})
        return str(found.get("name") or self.write.name)

    @property
    def requested_name(self) -> str:
        """Return the name in the request: "" if the server generates it."""
        new = self.new
        is_made = self.operation == "CREATE" and "generateName" in (new or {})["metadata"]
        return "" if is_made else self.name

    @property
    def is_namespace(self) -> bool:
        return self.resource.storage == _NAMESPACES

    @property
    def namespace(self) -> str:
        """Return the namespace; a namespace is in itself, as in the real server."""
        return self.name if self.is_namespace else self.write.namespace

    def namespace_object(self) -> Raw | None:
        if not self.namespace or self.is_namespace:
            return None
        return self.write.lookup.get(_NAMESPACES, "", self.namespace)


def match_resource(match: Raw, attempt: Attempt, versions: Iterable[Resource]) -> Resource | None:
    """Return the one of `versions` in which a write matches, or None."""
    namespace_selector = match.get("namespaceSelector")
    if namespace_selector and attempt.namespace:
        namespace = attempt.namespace_object()
        if attempt.is_namespace:
            namespace = attempt.new or attempt.old
        if not _selects(namespace_selector, namespace):
            return None
    object_selector = match.get("objectSelector")
    if object_selector and not (
        _selects(object_selector, attempt.new) or _selects(object_selector, attempt.old)
    ):
        return None
    resources = [attempt.resource]
    if match.get("matchPolicy") != "Exact":
        resources += [each for each in versions if each is not attempt.resource]
    if _match_rules(get(match, "excludeResourceRules", ()), attempt, resources) is not None:
        return None
    rules = get(match, "resourceRules", ())
    return _match_rules(rules, attempt, resources) if rules else attempt.resource


def _match_rules(
    rules: Sequence[Raw], attempt: Attempt, resources: Sequence[Resource]
) -> Resource | None:
    for resource in resources:
        if any(_rule_matches(rule, resource, attempt) for rule in rules):
            return resource
    return None


def _rule_matches(rule: Raw, resource: Resource, attempt: Attempt) -> bool:
    scope = rule.get("scope") or "*"
    if scope != "*" and (scope == "Namespaced") != attempt.resource.namespaced:
        return False
    names = get(rule, "resourceNames", ())
    if names and attempt.requested_name not in names:
        return False
    for given in get(rule, "resources", ()):
        plural, _, part = given.partition("/")
        if plural in ("*", resource.plural) and part in ("*", attempt.write.subresource):
            return (
                _has(rule.get("operations"), attempt.operation)
                and _has(rule.get("apiGroups"), resource.group)
                and _has(rule.get("apiVersions"), resource.version)
            )
    return False


def _has(values: Sequence[str] | None, wanted: str) -> bool:
    return any(value in ("*", wanted) for value in values or ())


def _selects(selector: Raw, obj: Raw | None) -> bool:
    labels = {} if obj is None else get(obj, "metadata.labels", {})
    return obj is not None and matches_labels(decode(selector, LabelSelector), labels)
