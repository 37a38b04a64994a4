"""
Answers in the form that a client accepts.

The common case is stored JSON that goes out as it is, whole or joined into a list. The other
forms are made from the object: tables, metadata alone, YAML, and versions other than the stored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from dryrack.apiserver.answer.status import Status, Success, bad_request, not_convertible
from dryrack.apiserver.extension_points import Tables
from dryrack.apiserver.http.media import JSON, PLAIN, YAML, Shape, Wanted
from dryrack.apiserver.http.queries import Query, text_of
from dryrack.apiserver.registry import Resource
from dryrack.apiserver.verbs.lists import Page
from dryrack.base.ports import Clock
from dryrack.client.transport import Response
from dryrack.kinds.raw import Raw
from dryrack.store import Stored

Headers = tuple[tuple[str, str], ...]

encode = msgspec.json.Encoder().encode

_JSON_HEADERS: Headers = (("content-type", JSON),)
_YAML_HEADERS: Headers = (("content-type", YAML),)
_META = "meta.k8s.io"
_INCLUDED = ("None", "Metadata", "Object")
_WARNING_CODE = 299
# As the real server: when the warnings of one answer are longer than this in all, each is cut, and
# those after the total are left out. Clients refuse an answer with more than 64 KiB in a header.
_WARNINGS_CHARACTERS_MAX = 4096
_LONG_WARNING_CHARACTERS = 256


def response(code: int, raw: Raw, wanted: Wanted, warnings: Sequence[str]) -> Response:
    """A response with one document."""
    if wanted.encoding == YAML:
        return Response(code, _YAML_HEADERS + warned(warnings), _yaml(raw))
    return Response(code, _JSON_HEADERS + warned(warnings), encode(raw))


def json_response(code: int, body: bytes, warnings: Sequence[str] = ()) -> Response:
    return Response(code, _JSON_HEADERS + warned(warnings) if warnings else _JSON_HEADERS, body)


def _yaml(raw: Raw) -> bytes:
    import yaml

    text: str = yaml.dump(raw, allow_unicode=True, default_flow_style=False)
    return text.encode()


def warned(warnings: Iterable[str]) -> Headers:
    """Each warning once, in the form of RFC 7234."""
    texts = _cut(tuple(dict.fromkeys(warnings)))
    return tuple(("warning", f'{_WARNING_CODE} - "{_escaped(each)}"') for each in texts)


def _cut(warnings: Sequence[str]) -> Sequence[str]:
    if sum(map(len, warnings)) <= _WARNINGS_CHARACTERS_MAX:
        return warnings
    kept: list[str] = []
    left = _WARNINGS_CHARACTERS_MAX
    for each in warnings:
        if left <= 0:
            break
        kept.append(each[:_LONG_WARNING_CHARACTERS])
        left -= len(kept[-1])
    return kept


def _escaped(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def status_response(status: Status, wanted: Wanted, warnings: Sequence[str] = ()) -> Response:
    """A refusal."""
    made = response(status.code, status.to_raw(), wanted, warnings)
    if not status.retry_after_seconds:
        return made
    headers = (*made.headers, ("retry-after", str(status.retry_after_seconds)))
    return Response(made.status, headers, made.body)


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders objects; `tables` knows the columns."""

    tables: Tables
    clock: Clock

    def stored(self, resource: Resource, stored: Stored, form: "Form") -> Response:
        if form.wanted.is_plain and resource.is_stored_as_served:
            return json_response(form.code, stored.json, form.warnings)
        return self.object(resource, read_as(resource, form, stored), form)

    def object(self, resource: Resource, obj: Raw, form: "Form") -> Response:
        """One object of a resource, in the version of the resource."""
        shaped = self.shaped(resource, obj, form)
        return response(form.code, shaped, form.wanted, form.warnings)

    def shaped(self, resource: Resource, obj: Raw, form: "Form", *, headed: bool = True) -> Raw:
        match form.wanted.shape:
            case Shape.OBJECT:
                return obj
            case Shape.TABLE:
                # A dry run has none.
                revision = obj["metadata"].get("resourceVersion")
                meta = {"resourceVersion": revision} if revision else {}
                return self._table(resource, [obj], meta, form, headed=headed)
            case Shape.PARTIAL:
                return _partial(obj, form.wanted.meta_version)
            case Shape.PARTIAL_LIST:
                raise not_convertible(
                    "you requested PartialObjectMetadataList, but the requested object is not a "
                    f"list ({_go_type(resource, resource.kind)})"
                )

    def success(self, success: Success, form: "Form") -> Response:
        return response(form.code, success.to_raw(), form.wanted, form.warnings)

    def page(self, resource: Resource, page: Page, form: "Form") -> Response:
        meta = _list_meta(page)
        if form.wanted.is_plain:
            if resource.is_custom:
                # Lists of custom objects are no structs, which would leave out what is empty.
                meta = {"continue": "", **meta}
            return json_response(form.code, _joined(resource, page, meta), form.warnings)
        objects = [read_as(resource, form, each) for each in page.items]
        raw = self._list(resource, objects, meta, form)
        return response(form.code, raw, form.wanted, form.warnings)

    def _list(self, resource: Resource, objects: list[Raw], meta: Raw, form: "Form") -> Raw:
        version = form.wanted.meta_version
        match form.wanted.shape:
            case Shape.TABLE:
                return self._table(resource, objects, meta, form)
            case Shape.PARTIAL_LIST:
                items = [_partial(each, version) for each in objects]
                return _document("PartialObjectMetadataList", version, metadata=meta, items=items)
            case Shape.PARTIAL:
                raise not_convertible(
                    "you requested PartialObjectMetadata, but the requested object is a list "
                    f"({_go_type(resource, resource.listed_as)})"
                )
            case Shape.OBJECT:
                items = [_item(resource, each) for each in objects]
                head = {"kind": resource.listed_as, "apiVersion": resource.api_version}
                return {**head, "metadata": meta, "items": items}

    def _table(
        self,
        resource: Resource,
        objects: list[Raw],
        meta: Raw,
        form: "Form",
        *,
        headed: bool = True,
    ) -> Raw:
        columns = self.tables.columns(resource) if headed else None
        now = self.clock.now()
        rows = []
        for obj in objects:
            row: Raw = {"cells": self.tables.cells(resource, obj, now)}
            if conditions := self.tables.conditions(resource, obj):
                row["conditions"] = conditions
            row["object"] = _included(obj, form)
            rows.append(row)
        version = form.wanted.meta_version
        return _document("Table", version, metadata=meta, columnDefinitions=columns, rows=rows)


class Form(msgspec.Struct, frozen=True):
    """How an answer shall look."""

    wanted: Wanted = PLAIN
    code: int = 200
    warnings: Sequence[str] = ()
    include: str = "Metadata"
    """What a row of a table has besides its cells."""


def form_of(wanted: Wanted, query: Query, warnings: Sequence[str]) -> Form:
    include = "Metadata"
    if wanted.shape is Shape.TABLE:
        include = text_of(query, "includeObject") or "Metadata"
        if include not in _INCLUDED:
            from dryrack.kinds.validation.problems import invalid as invalid_value

            detail = "must be 'Metadata', 'Object', 'None', or empty"
            problem = invalid_value("includeObject", include, detail)
            raise bad_request(f"Unable to convert to Table as requested: {problem}")
    return Form(wanted, 200, warnings, include)


def read_as(resource: Resource, form: Form, stored: Stored) -> Raw:
    """Return as much of a stored object as a form shows, in the version of the resource."""
    if form.wanted.shape in (Shape.PARTIAL, Shape.PARTIAL_LIST):
        return resource.read_metadata(stored)
    return resource.read(stored)


def _go_type(resource: Resource, kind: str) -> str:
    """What the real server calls its object: it says so when it cannot show it."""
    if resource.is_custom:
        return "*unstructured.Unstructured" + ("List" if kind == resource.listed_as else "")
    return f"*{(resource.group or 'core').partition('.')[0]}.{kind}"


def _document(kind: str, version: str, **parts: Any) -> Raw:
    return {"kind": kind, "apiVersion": f"{_META}/{version}", **parts}


def _partial(obj: Raw, version: str) -> Raw:
    return _document("PartialObjectMetadata", version, metadata=obj["metadata"])


def _included(obj: Raw, form: Form) -> Raw | None:
    if form.include == "None":
        return None
    return obj if form.include == "Object" else _partial(obj, form.wanted.meta_version)


def _list_meta(page: Page) -> Raw:
    meta: Raw = {"resourceVersion": str(page.revision)}
    if page.continue_token:
        meta["continue"] = page.continue_token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    return meta


def _item(resource: Resource, obj: Raw) -> Raw:
    """Items of a built-in kind do not repeat which kind they are; custom ones do."""
    if resource.is_custom:
        return obj
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def _joined(resource: Resource, page: Page, meta: Raw) -> bytes:
    head = encode({"kind": resource.listed_as, "apiVersion": resource.api_version})
    start = head[:-1] + b',"metadata":' + encode(meta) + b',"items":['
    return b"".join((start, b",".join(_items(resource, page.items)), b"]}"))


def _items(resource: Resource, items: Iterable[Stored]) -> list[bytes]:
    if not resource.is_stored_as_served:
        return [encode(_item(resource, resource.read(each))) for each in items]
    if resource.is_custom:
        return [each.json for each in items]
    # Kind and apiVersion come first in what is stored; they are cut off without decoding it.
    prefix = encode({"kind": resource.kind, "apiVersion": resource.api_version})[:-1] + b","
    cut = len(prefix)
    return [
        b"{" + each.json[cut:]
        if each.json.startswith(prefix)
        else encode(_item(resource, each.object))
        for each in items
    ]
