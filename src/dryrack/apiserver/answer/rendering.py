"""
Answers in the form that a client accepts.

Mostly, stored JSON goes out as it is, whole or joined into a list. The other forms are made from
the object: tables, metadata alone, YAML, and versions other than the stored one.
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
# As in the real server: when the warnings of one answer are longer than this in all, each is cut,
# and the rest is left out. Clients refuse an answer with more than 64 KiB in a header.
_WARNINGS_CHARACTERS_MAX = 4096
_LONG_WARNING_CHARACTERS = 256


def json_or_yaml(code: int, raw: Raw, wanted: Wanted, warnings: Sequence[str]) -> Response:
    """Return a response with one document."""
    headers = warning_headers(warnings)
    if wanted.encoding != YAML:
        return Response(code, _JSON_HEADERS + headers, encode(raw))
    import yaml

    text: str = yaml.dump(raw, allow_unicode=True, default_flow_style=False)
    return Response(code, _YAML_HEADERS + headers, text.encode())


def json_response(code: int, body: bytes, warnings: Sequence[str] = ()) -> Response:
    headers = _JSON_HEADERS + warning_headers(warnings) if warnings else _JSON_HEADERS
    return Response(code, headers, body)


def warning_headers(warnings: Iterable[str]) -> Headers:
    """Return a header for each distinct warning, in the form of RFC 7234."""
    texts = list(dict.fromkeys(warnings))
    if sum(map(len, texts)) > _WARNINGS_CHARACTERS_MAX:
        left = _WARNINGS_CHARACTERS_MAX
        cut_texts: list[str] = []
        for text in texts:
            if left <= 0:
                break
            cut_texts.append(text[:_LONG_WARNING_CHARACTERS])
            left -= len(cut_texts[-1])
        texts = cut_texts
    return tuple(("warning", f'{_WARNING_CODE} - "{_escape(text)}"') for text in texts)


def _escape(text: str) -> str:
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain.replace("\\", "\\\\").replace('"', '\\"')


def status_response(status: Status, wanted: Wanted, warnings: Sequence[str] = ()) -> Response:
    """Return a response with a refusal."""
    response = json_or_yaml(status.code, status.to_raw(), wanted, warnings)
    if not status.retry_after_seconds:
        return response
    headers = (*response.headers, ("retry-after", str(status.retry_after_seconds)))
    return Response(response.status, headers, response.body)


@dataclass(frozen=True, slots=True)
class Renderer:
    """Renders objects; `tables` has the columns."""

    tables: Tables
    clock: Clock

    def stored(self, resource: Resource, stored: Stored, form: "Form") -> Response:
        if form.wanted.is_plain and resource.is_stored_as_served:
            return json_response(form.code, stored.json, form.warnings)
        return self.object(resource, read_as(resource, form, stored), form)

    def object(self, resource: Resource, obj: Raw, form: "Form") -> Response:
        """Render an object that is in the version of the resource."""
        document = self.shape(resource, obj, form)
        return json_or_yaml(form.code, document, form.wanted, form.warnings)

    def shape(self, resource: Resource, obj: Raw, form: "Form", *, headed: bool = True) -> Raw:
        match form.wanted.shape:
            case Shape.OBJECT:
                return obj
            case Shape.TABLE:
                # The object of a dry run has no revision.
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
        return json_or_yaml(form.code, success.to_raw(), form.wanted, form.warnings)

    def page(self, resource: Resource, page: Page, form: "Form") -> Response:
        meta: Raw = {"resourceVersion": str(page.revision)}
        if page.continue_token:
            meta["continue"] = page.continue_token
        if page.remaining is not None:
            meta["remainingItemCount"] = page.remaining
        if form.wanted.is_plain:
            if resource.is_custom:
                # Lists of custom objects are no structs, which would leave out what is empty.
                meta = {"continue": "", **meta}
            return json_response(form.code, _list_json(resource, page, meta), form.warnings)
        objects = [read_as(resource, form, each) for each in page.items]
        raw = self._list(resource, objects, meta, form)
        return json_or_yaml(form.code, raw, form.wanted, form.warnings)

    def _list(self, resource: Resource, objects: list[Raw], meta: Raw, form: "Form") -> Raw:
        version = form.wanted.meta_version
        match form.wanted.shape:
            case Shape.TABLE:
                return self._table(resource, objects, meta, form, is_list=True)
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
        is_list: bool = False,
    ) -> Raw:
        columns = self.tables.columns(resource) if headed else None
        all_cells = self.tables.cells(resource, objects, self.clock.now(), is_list=is_list)
        rows = []
        for obj, cells in zip(objects, all_cells, strict=True):
            row: Raw = {"cells": cells}
            if conditions := self.tables.conditions(resource, obj):
                row["conditions"] = conditions
            match form.include:
                case "None":
                    row["object"] = None
                case "Object":
                    row["object"] = obj
                case _:
                    row["object"] = _partial(obj, form.wanted.meta_version)
            rows.append(row)
        version = form.wanted.meta_version
        return _document("Table", version, metadata=meta, columnDefinitions=columns, rows=rows)


class Form(msgspec.Struct, frozen=True):
    """The form of one answer."""

    wanted: Wanted = PLAIN
    code: int = 200
    warnings: Sequence[str] = ()
    include: str = "Metadata"
    """The `object` of a row of a table: `None`, `Metadata` or `Object`."""


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
    """Return the Go type of an object in the real server, which its refusals name."""
    if resource.is_custom:
        return "*unstructured.Unstructured" + ("List" if kind == resource.listed_as else "")
    return f"*{(resource.group or 'core').partition('.')[0]}.{kind}"


def _document(kind: str, version: str, **parts: Any) -> Raw:
    return {"kind": kind, "apiVersion": f"{_META}/{version}", **parts}


def _partial(obj: Raw, version: str) -> Raw:
    return _document("PartialObjectMetadata", version, metadata=obj["metadata"])


def _item(resource: Resource, obj: Raw) -> Raw:
    """Return an item of a list: without kind and apiVersion if the kind is built in."""
    if resource.is_custom:
        return obj
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def _list_json(resource: Resource, page: Page, meta: Raw) -> bytes:
    """Return a list as JSON; stored JSON is joined without decoding it."""
    kind_json = encode({"kind": resource.listed_as, "apiVersion": resource.api_version})
    start = kind_json[:-1] + b',"metadata":' + encode(meta) + b',"items":['
    if not resource.is_stored_as_served:
        items = [encode(_item(resource, resource.read(each))) for each in page.items]
    elif resource.is_custom:
        items = [each.json for each in page.items]
    else:
        # Kind and apiVersion come first in stored JSON.
        head = encode({"kind": resource.kind, "apiVersion": resource.api_version})
        prefix = head[:-1] + b","
        cut = len(prefix)
        items = [
            b"{" + each.json[cut:]
            if each.json.startswith(prefix)
            else encode(_item(resource, each.object))
            for each in page.items
        ]
    return b"".join((start, b",".join(items), b"]}"))
