"""
Lists of objects, now or at a revision, whole or in pages.

A page ends with a token that has the start of the next page and the revision of the list, so that
all pages together are one list. When the log has dropped that revision, the client gets an error
with a token that continues with the present objects.
"""

import base64
import binascii
import string
from bisect import bisect_left
from dataclasses import dataclass

import msgspec

from dryrack.apiserver.answer.status import (
    Status,
    StatusError,
    bad_request,
    expired,
    too_large_resource_version,
)
from dryrack.apiserver.decode import bodies
from dryrack.apiserver.http.queries import ListOptions, RevisionError, parse_revision
from dryrack.apiserver.verbs.selection import Selection
from dryrack.kinds.text import go_json
from dryrack.store import Gone, Store, Stored

_TOKEN_VERSION = "meta.k8s.io/v1"
_BASE64 = frozenset(string.ascii_letters + string.digits + "-_")
# In a token: the list has lost its revision and continues with the present objects.
_PRESENT = -1
_TOO_OLD = "The resourceVersion for the provided list is too old."
_TOKEN_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start "
    "a new list without the continue parameter, or use the continue token in this response to "
    "retrieve the remainder of the results. Continuing with the provided token results in an "
    "inconsistent list - objects that were created, modified, or deleted between the time the "
    "first chunk was returned and now may show up in the list."
)


@dataclass(frozen=True, slots=True)
class Page:
    """A list, or a part of one."""

    items: tuple[Stored, ...]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class _Start:
    """The start of a page: a revision (None: now), at or after a place."""

    revision: int | None
    place: str = ""


def list_page(
    store: Store, selection: Selection, namespace: str | None, options: ListOptions
) -> Page:
    """Return a page of a list; of all namespaces if `namespace` is None."""
    start = _start(options, store.revision)
    resource = selection.resource
    if start.revision is None or start.revision == store.revision:
        items, revision = selection.candidates(store, namespace)
    else:
        revision = start.revision
        past_items = store.list_at(resource.storage, namespace, revision)
        if isinstance(past_items, Gone):
            if not start.place:
                raise expired(_TOO_OLD)
            token = _encode_token(_PRESENT, start.place)
            raise StatusError(Status(410, "Expired", _TOKEN_TOO_OLD, continue_token=token))
        items = past_items
    if start.place:
        items = items[bisect_left(items, start.place, key=lambda each: _place(each, namespace)) :]
    limit = options.limit
    if selection.is_all:
        resource.ready_all(items[:limit] if limit > 0 else items)
        if not 0 < limit < len(items):
            return Page(items, revision)
        token = _token_after(items[limit - 1], namespace, revision)
        return Page(items[:limit], revision, token, len(items) - limit)
    resource.ready_all(items)
    selected: list[Stored] = []
    for position, each in enumerate(items):
        if selection.matches(each):
            selected.append(each)
            if limit == len(selected) and position + 1 < len(items):
                # Whether later items match is not known before the next page.
                token = _token_after(each, namespace, revision)
                return Page(tuple(selected), revision, token)
    return Page(tuple(selected), revision)


def _start(options: ListOptions, current: int) -> _Start:
    if options.continue_token:
        if options.resource_version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, place = _decode_token(options.continue_token)
        if revision > current:
            raise too_large_resource_version(revision, current)
        return _Start(None if revision == _PRESENT else revision, place)
    try:
        revision = parse_revision(options.resource_version)
    except RevisionError as error:
        raise bad_request(f"invalid resource version: {error.field_message}") from None
    if revision > current:
        raise too_large_resource_version(revision, current)
    # A page at a revision is exact, unless the client says otherwise.
    is_exact = options.match == "Exact" or (options.limit > 0 and not options.match)
    return _Start(revision if is_exact and revision else None)


def _place(stored: Stored, namespace: str | None) -> str:
    key = stored.key
    if namespace is None and key.namespace:
        return f"{key.namespace}/{key.name}"
    return key.name


def _token_after(last: Stored, namespace: str | None, revision: int) -> str:
    # The smallest text that comes after the last item.
    return _encode_token(revision, _place(last, namespace) + "\0")


def _encode_token(revision: int, place: str) -> str:
    raw = msgspec.json.encode({"v": _TOKEN_VERSION, "rv": revision, "start": place})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decode_token(token: str) -> tuple[int, str]:
    position = next((at for at, char in enumerate(token) if char not in _BASE64), None)
    if position is not None:
        raise _invalid(f"illegal base64 data at input byte {position}")
    try:
        padded = token + "=" * (-len(token) % 4)
        data = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _invalid(f"illegal base64 data at input byte {len(token)}") from None
    try:
        raw = bodies.read_json(data)
    except go_json.GoSyntaxError as error:
        raise _invalid(str(error)) from None
    if not isinstance(raw, dict):
        name = go_json.type_name(raw)
        raise _invalid(f"json: cannot unmarshal {name} into Go value of type storage.continueToken")
    version = raw.get("v")
    revision = raw.get("rv")
    place = raw.get("start")
    if version != _TOKEN_VERSION:
        shown = version if isinstance(version, str) else ""
        raise _invalid(f"server does not recognize this encoded version {shown}")
    if not isinstance(revision, int) or not revision or revision < _PRESENT:
        raise _invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(place, str) or not place:
        raise _invalid("encoded start key empty (version meta.k8s.io/v1)")
    if place.startswith("/") or "//" in place or any(p in (".", "..") for p in place.split("/")):
        raise _invalid(place)
    return revision, place


def _invalid(detail: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {detail}")
