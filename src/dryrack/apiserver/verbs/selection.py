"""
Selection of objects by labels and fields, for lists and watches.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from dryrack.apiserver.answer.status import bad_request
from dryrack.apiserver.http.queries import ListOptions
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.verbs import field_selectors, label_selectors
from dryrack.apiserver.verbs.field_selectors import FieldSelection
from dryrack.apiserver.verbs.label_selectors import LabelSelection, SelectorError
from dryrack.kinds.text.quoting import quoted
from dryrack.store import Key, Listed, Store, Stored

_ALWAYS = ("metadata.name", "metadata.namespace")
_NO_LABELS: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class Selection:
    """A selector of labels and one of fields, either of which may be missing."""

    resource: Resource
    labels: LabelSelection | None = None
    fields: FieldSelection | None = None

    @property
    def is_all(self) -> bool:
        return self.labels is None and self.fields is None

    def candidates(self, store: Store, namespace: str | None) -> Listed:
        """Return the objects that may match, and the revision; only one if the name is given."""
        name = self.fields.exact("metadata.name") if self.fields is not None else None
        if name is None or (namespace is None and self.resource.namespaced):
            return store.list(self.resource.storage, namespace)
        stored = store.get(Key(self.resource.storage, namespace or "", name))
        return ((stored,) if stored else ()), store.revision

    def matches(self, stored: Stored) -> bool:
        if self.resource.converts:
            # The webhook that converts the object decides its labels and fields.
            if self.labels is not None:
                meta = self.resource.read_metadata(stored)["metadata"]
                if not self.labels.matches(meta.get("labels") or _NO_LABELS):
                    return False
            if self.fields is None:
                return True
            key = stored.key
            found = {"metadata.name": key.name, "metadata.namespace": key.namespace}
            if self.resource.strategy.selectable_fields:
                found |= self.resource.strategy.fields(self.resource.read(stored))
            return self.fields.matches(found)
        if self.labels is not None and not self.labels.matches(_labels_of(stored)):
            return False
        return self.fields is None or self.fields.matches(_fields_of(self.resource, stored))


def mark(resource: Resource, stored: Stored) -> None:
    """Store the values that selectors compare, while the object is decoded."""
    _labels_of(stored)
    if resource.converts:
        return
    if resource.strategy.selectable_fields:
        _fields_of(resource, stored)


def _labels_of(stored: Stored) -> Mapping[str, str]:
    found: Mapping[str, str] | None = stored.marks.get("labels")
    if found is None:
        found = stored.object["metadata"].get("labels") or _NO_LABELS
        stored.marks["labels"] = found
    return found


def _fields_of(resource: Resource, stored: Stored) -> Mapping[str, str]:
    """Return the selectable fields by version, because versions may name fields differently."""
    found: Mapping[str, str] | None = stored.marks.get(resource.api_version)
    if found is None:
        key = stored.key
        found = {"metadata.name": key.name, "metadata.namespace": key.namespace}
        if resource.strategy.selectable_fields:
            found = {**found, **resource.strategy.fields(resource.read(stored))}
        stored.marks[resource.api_version] = found
    return found


def selection_of(resource: Resource, options: ListOptions, name: str = "") -> Selection:
    """`name` is that of the path, for the watch of a single object."""
    labels = fields = None
    try:
        if options.label_selector:
            labels = label_selectors.parse(options.label_selector)
        if options.field_selector:
            fields = field_selectors.parse(
                options.field_selector, lambda field: _check_field(resource, field)
            )
    except SelectorError as error:
        raise bad_request(str(error)) from None
    if name:
        fields = _of_name(fields, name)
    return Selection(
        resource,
        labels if labels and labels.requirements else None,
        fields if fields and fields.terms else None,
    )


def _of_name(fields: FieldSelection | None, name: str) -> FieldSelection:
    if fields is not None and fields.terms:
        if fields.exact("metadata.name") != name:
            raise bad_request("fieldSelector metadata.name doesn't match requested name")
        return fields
    return field_selectors.parse(f"metadata.name={name}")


def _check_field(resource: Resource, field: str) -> None:
    strategy = resource.strategy
    if field in _ALWAYS or field in strategy.selectable_fields:
        return
    if strategy.field_refusal:
        gvk = f"{resource.api_version}, Kind={resource.kind}"
        raise SelectorError(strategy.field_refusal.format(label=field, gvk=gvk))
    only = ", ".join(quoted(each) for each in _ALWAYS)
    raise SelectorError(f"{quoted(field)} is not a known field selector: only {only}")
