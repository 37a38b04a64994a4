"""
The verbs of the Kubernetes API, on raw objects.

Objects are JSON builtins; a refusal is raised as an `ApiError`. The client adds no policy: it
neither retries nor caches. Returned objects may be shared with other readers and must not be
changed in place.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

import msgspec

from dryrack.client.endpoints import Endpoint
from dryrack.client.errors import TransportError, error_of
from dryrack.client.sharing import LARGE_BYTES_MIN, SharedDecoder
from dryrack.client.transport import ADMIN, Chunk, Request, Response, Stream, Transport, User
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.raw import Raw

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_object = msgspec.json.Decoder(Raw).decode

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Read = TypeVar("Read")

# The size of a page of client-go; one page is far below what a server may refuse to send.
PAGE_OBJECTS = 500
# The server refuses an object of more than 3 MiB; a line that is longer than this is no object.
LINE_BYTES_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects of a list, with its revision."""

    items: tuple[Raw, ...]
    revision: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """
    An event of the type ADDED, MODIFIED, DELETED, or BOOKMARK; an ERROR is raised instead.

    If `is_handed_over` is set, the object is the one that the server in this process stores.
    """

    type: str
    object: Raw
    is_handed_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The objects of a kind to select; by default all objects in all namespaces."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        query = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in query.items() if value}


EVERYTHING = Selection()


class Client:
    """Sends requests to one cluster as one user."""

    def __init__(self, transport: Transport, *, user: User = ADMIN, agent: str = "dryrack") -> None:
        self._transport = transport
        self._user = user
        self._headers = {"accept": JSON, "user-agent": agent}
        self._decoder = SharedDecoder()
        self._documents: dict[tuple[str, Callable[[Raw], Any]], tuple[bytes, Any]] = {}

    def through(self, wrap: Callable[[Transport], Transport]) -> "Client":
        """Return a client with the same user and agent, whose transport is wrapped."""
        return Client(wrap(self._transport), user=self._user, agent=self._headers["user-agent"])

    async def get(self, endpoint: Endpoint, name: str, namespace: str = "") -> Raw:
        """Return one object."""
        return await self._ask("GET", endpoint.path(namespace, name))

    async def list(self, endpoint: Endpoint, selection: Selection = EVERYTHING) -> Listing:
        """Return all selected objects at one revision, read in pages."""
        return await self._list(endpoint, selection, JSON)

    async def list_metadata(self, endpoint: Endpoint, selection: Selection = EVERYTHING) -> Listing:
        """Return only the metadata of all selected objects."""
        return await self._list(endpoint, selection, METADATA_LIST)

    async def _list(self, endpoint: Endpoint, selection: Selection, accept: str) -> Listing:
        items: list[Raw] = []
        query = selection.query() | {"limit": str(PAGE_OBJECTS)}
        # The items of a list have no kind and apiVersion of their own.
        kind = {"kind": endpoint.kind, "apiVersion": endpoint.api_version}
        while True:
            request = self._request("GET", endpoint.path(selection.namespace), query, accept=accept)
            page = _read(await self._send(request), request.path)
            items += (kind | item for item in get(page, "items", ()))
            metadata = metadata_of(page)
            if not metadata.get("continue"):
                return Listing(tuple(items), str(metadata.get("resourceVersion", "")))
            query["continue"] = metadata["continue"]

    async def peek(self, endpoint: Endpoint, selection: Selection = EVERYTHING) -> None:
        """Raise if the selection cannot be listed; read at most one object."""
        await self._ask(
            "GET", endpoint.path(selection.namespace), selection.query() | {"limit": "1"}
        )

    async def create(
        self, endpoint: Endpoint, obj: Raw, *, subresource: str = "", field_validation: str = ""
    ) -> Raw:
        """
        Create an object, or post one to a subresource, such as a binding.

        Malformed metadata is sent as it is, because the API server reports the error.
        """
        metadata = obj.get("metadata")
        is_readable = isinstance(metadata, dict) and isinstance(metadata.get("namespace", ""), str)
        if metadata is not None and not is_readable:
            metadata = {"namespace": "default" if endpoint.is_namespaced else ""}
        metadata = metadata or {}
        namespace = metadata.get("namespace", "")
        name = metadata.get("name", "")
        path = endpoint.path(namespace, name if subresource else "", subresource)
        query = {"fieldValidation": field_validation} if field_validation else {}
        return await self._ask("POST", path, query, body=_with_type(endpoint, obj))

    async def update(self, endpoint: Endpoint, obj: Raw, *, subresource: str = "") -> Raw:
        """Replace the whole object; the server refuses if it has changed since it was read."""
        path = _path(endpoint, obj, subresource)
        return await self._ask("PUT", path, body=_with_type(endpoint, obj))

    async def patch(
        self,
        endpoint: Endpoint,
        name: str,
        patch: Any,
        *,
        namespace: str = "",
        subresource: str = "",
        media_type: str = MERGE_PATCH,
    ) -> Raw:
        """Change an object by a patch of the media type."""
        path = endpoint.path(namespace, name, subresource)
        return await self._ask("PATCH", path, body=patch, media_type=media_type)

    async def apply(
        self,
        endpoint: Endpoint,
        obj: Raw,
        *,
        manager: str,
        subresource: str = "",
        force: bool = False,
        field_validation: str = "",
    ) -> Raw:
        """Apply fields in the name of a field manager (server-side apply)."""
        strictness = {"fieldValidation": field_validation} if field_validation else {}
        return await self._ask(
            "PATCH",
            _path(endpoint, obj, subresource),
            {"fieldManager": manager, "force": "true" if force else "false", **strictness},
            body=_with_type(endpoint, obj),
            media_type=APPLY_PATCH,
        )

    async def delete(
        self,
        endpoint: Endpoint,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        revision: str = "",
        grace_seconds: int | None = None,
        propagation: str = "",
    ) -> Raw:
        """Delete an object; with `uid`, only if no other object has its name by now."""
        options: Raw = {"kind": "DeleteOptions", "apiVersion": "v1"}
        expected = {"uid": uid, "resourceVersion": revision}
        expected = {key: value for key, value in expected.items() if value}
        if expected:
            options["preconditions"] = expected
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if propagation:
            options["propagationPolicy"] = propagation
        return await self._ask("DELETE", endpoint.path(namespace, name), body=options)

    async def delete_collection(self, endpoint: Endpoint, selection: Selection) -> Raw:
        """Delete all selected objects."""
        return await self._ask("DELETE", endpoint.path(selection.namespace), selection.query())

    async def get_path(self, path: str, accept: str = JSON) -> Raw:
        """Return a document that is no object of a kind, such as those of discovery."""
        return _read(await self._send(self._request("GET", path, {}, accept=accept)), path)

    async def read_path(self, path: str, read: Callable[[Raw], Read], accept: str = JSON) -> Read:
        """Return the result of `read` for such a document; call it only if the document changed."""
        document = await self._send(self._request("GET", path, {}, accept=accept))
        previous, result = self._documents.get((path, read), (None, None))
        if previous != document:
            result = read(_read(document, path))
            self._documents[path, read] = (document, result)
        return cast("Read", result)

    @asynccontextmanager
    async def watch(
        self,
        endpoint: Endpoint,
        selection: Selection = EVERYTHING,
        *,
        revision: str = "",
        timeout_seconds: int | None = None,
        with_initial_events: bool = False,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        """
        Yield the events after a revision; the watch is closed at the end of the block.

        With initial events the watch begins with one ADDED for every existing object, followed by
        a bookmark for which `ends_initial_events` is true. The objects of events may be those that
        the server stores.
        """
        query = selection.query() | {"watch": "true", "allowWatchBookmarks": "true"}
        if timeout_seconds is not None:
            query["timeoutSeconds"] = str(timeout_seconds)
        if revision:
            query["resourceVersion"] = revision
        if with_initial_events:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        request = self._request("GET", endpoint.path(selection.namespace), query)
        stream = await self._stream(msgspec.structs.replace(request, takes_objects=True))
        try:
            async with aclosing(_events(stream, self._decoder)) as events:
                yield events
        finally:
            await stream.aclose()

    async def text(self, endpoint: Endpoint, name: str, *, namespace: str, subresource: str) -> str:
        """Return the plain text of a subresource, such as the log of a pod."""
        path = endpoint.path(namespace, name, subresource)
        request = self._request("GET", path, {}, accept="*/*")
        return (await self._send(request)).decode()

    async def _stream(self, request: Request) -> Stream:
        response = await self._transport.send(request)
        if isinstance(response.body, bytes):
            _raise_for(response, response.body)
            raise TransportError(f"{request.path}: the server answered a watch with one document")
        if response.status != 200:
            _raise_for(response, await _whole(response))
        return response.body

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: Any = None,
        media_type: str = JSON,
    ) -> Raw:
        request = self._request(method, path, query or {}, body=body, media_type=media_type)
        return _read(await self._send(request), path, self._decoder)

    async def _send(self, request: Request) -> bytes:
        response = await self._transport.send(request)
        body = await _whole(response)
        _raise_for(response, body)
        return body

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: Any = None,
        media_type: str = JSON,
        accept: str = JSON,
    ) -> Request:
        headers = self._headers
        data = b""
        if accept != JSON:
            headers = headers | {"accept": accept}
        if body is not None:
            headers = headers | {"content-type": media_type}
            data = _encode(body)
        return Request(method, path, urlencode(query) if query else "", headers, data, self._user)


def _path(endpoint: Endpoint, obj: Raw, subresource: str) -> str:
    metadata = obj["metadata"]
    return endpoint.path(metadata.get("namespace", ""), metadata["name"], subresource)


def _with_type(endpoint: Endpoint, obj: Raw) -> Raw:
    return {"kind": endpoint.kind, "apiVersion": endpoint.api_version} | obj


async def _whole(response: Response) -> bytes:
    if isinstance(response.body, bytes):
        return response.body
    try:
        return b"".join([chunk async for chunk in response.body if isinstance(chunk, bytes)])
    finally:
        await response.body.aclose()


def _raise_for(response: Response, body: bytes) -> None:
    if response.status < 400:
        return
    try:
        status = _decode(body)
    except (msgspec.DecodeError, RecursionError):
        status = None
    if not isinstance(status, dict) or status.get("kind") != "Status":
        text = body[:200].decode(errors="replace").strip()
        status = {"code": response.status, "message": text or f"HTTP {response.status}"}
    raise error_of({"code": response.status} | status)


def _read(body: bytes, path: str, decoder: SharedDecoder | None = None) -> Raw:
    try:
        if decoder is not None and len(body) >= LARGE_BYTES_MIN:
            return decoder.decode(body)
        return _decode_object(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TransportError(f"{path}: the answer is no JSON object: {error}") from error


class _Envelope(msgspec.Struct):
    type: str
    object: Raw


class _LargeEnvelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_large = msgspec.json.Decoder(_LargeEnvelope).decode


class LineSplitter:
    """
    Keeps the beginning of a line until its end arrives.

    Text after the last newline is lost with the connection.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that this chunk completes, without empty ones."""
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            line = b"".join((*self._parts, part)) if self._parts else part
            self._parts.clear()
            self._size = 0
            if line:
                yield line
        if not rest:
            return
        self._parts.append(rest)
        self._size += len(rest)
        if self._size > LINE_BYTES_MAX:
            raise TransportError(f"a line of more than {LINE_BYTES_MAX} bytes; this is no watch")


async def _events(stream: Stream, decoder: SharedDecoder) -> AsyncGenerator[WatchEvent, None]:
    splitter = LineSplitter()
    async for chunk in stream:
        for event in _events_of(chunk, splitter, decoder):
            if event.type == "ERROR":
                raise error_of(event.object)
            yield event
        # The next chunk may take long, and this one may have megabytes.
        del chunk


def _events_of(
    chunk: Chunk, splitter: LineSplitter, decoder: SharedDecoder
) -> Iterator[WatchEvent]:
    if isinstance(chunk, list):
        for type, obj in chunk:
            if isinstance(obj, bytes):
                yield WatchEvent(type, _read(obj, "a watch", decoder))
            else:
                yield WatchEvent(type, obj, is_handed_over=True)
        return
    for line in splitter.feed(chunk):
        try:
            if len(line) < LARGE_BYTES_MIN:
                envelope = _decode_envelope(line)
                yield WatchEvent(envelope.type, envelope.object)
            else:
                large = _decode_large(line)
                yield WatchEvent(large.type, decoder.decode(large.object))
        except (msgspec.DecodeError, RecursionError) as error:
            raise TransportError(f"a watch event is no JSON: {error}") from error


def ends_initial_events(event: WatchEvent) -> bool:
    """Return whether an event is the bookmark after all initial events of a watch."""
    if event.type != "BOOKMARK":
        return False
    annotations = get(event.object.get("metadata", {}), "annotations", {})
    return bool(annotations.get("k8s.io/initial-events-end") == "true")
