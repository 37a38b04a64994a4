"""
The verbs of the Kubernetes API, on raw objects.

Objects go in and come out as JSON builtins; a refusal is raised as an `ApiError`. The client adds
no policy: it neither retries nor caches. An object that is returned may be shared with others who
read it; nobody changes one in place.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

import msgspec

from dryrack.client.endpoints import Endpoint
from dryrack.client.errors import TransportError, error_of
from dryrack.client.lines import LineSplitter
from dryrack.client.sharing import LARGE_BYTES_MIN, SharedDecoder
from dryrack.client.transport import ADMIN, Chunk, Request, Response, Stream, Transport, User
from dryrack.kinds.paths import get, metadata_of
from dryrack.kinds.raw import Raw

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_object = msgspec.json.Decoder(Raw).decode

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Read = TypeVar("Read")

# The size of a page of client-go; one page is far below what a server may refuse to send.
PAGE_OBJECTS = 500


@dataclass(frozen=True, slots=True)
class Listing:
    """What was there at a revision."""

    items: tuple[Raw, ...]
    revision: str


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """
    ADDED, MODIFIED, DELETED or BOOKMARK; an ERROR is raised instead.

    `is_handed_over`: the object is the server's own, which is in this process.
    """

    type: str
    object: Raw
    is_handed_over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which objects of a kind; nothing said: all of them, in all namespaces."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        found = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {key: value for key, value in found.items() if value}


EVERYTHING = Selection()


class Client:
    """Talks to one cluster as one user."""

    def __init__(self, transport: Transport, *, user: User = ADMIN, agent: str = "dryrack") -> None:
        self._transport = transport
        self._user = user
        self._headers = {"accept": JSON, "user-agent": agent}
        self._decoder = SharedDecoder()
        self._documents: dict[tuple[str, Callable[[Raw], Any]], tuple[bytes, Any]] = {}

    def through(self, wrap: Callable[[Transport], Transport]) -> "Client":
        """The same user and agent, whose requests take another way."""
        return Client(wrap(self._transport), user=self._user, agent=self._headers["user-agent"])

    async def get(self, endpoint: Endpoint, name: str, namespace: str = "") -> Raw:
        """One object."""
        return await self._ask("GET", endpoint.path(namespace, name))

    async def list(self, endpoint: Endpoint, selection: Selection = EVERYTHING) -> Listing:
        """All that is selected, page by page, at one revision."""
        return await self._list(endpoint, selection, JSON)

    async def list_metadata(self, endpoint: Endpoint, selection: Selection = EVERYTHING) -> Listing:
        """The same without all but metadata, for those who only want to know what there is."""
        return await self._list(endpoint, selection, METADATA_LIST)

    async def _list(self, endpoint: Endpoint, selection: Selection, accept: str) -> Listing:
        items: list[Raw] = []
        query = selection.query() | {"limit": str(PAGE_OBJECTS)}
        # Items of a list leave out what the list says once for all of them.
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
        """Raises if that cannot be listed; asks for no more than is needed to know."""
        await self._ask(
            "GET", endpoint.path(selection.namespace), selection.query() | {"limit": "1"}
        )

    async def create(
        self, endpoint: Endpoint, obj: Raw, *, subresource: str = "", field_validation: str = ""
    ) -> Raw:
        """
        Create an object, or post one to a subresource, such as a binding.

        The API server answers to metadata that is malformed, so it has to get there.
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
        return await self._ask("POST", path, query, body=_typed(endpoint, obj))

    async def update(self, endpoint: Endpoint, obj: Raw, *, subresource: str = "") -> Raw:
        """The whole object; refused if it has changed since it was read."""
        return await self._ask("PUT", _path(endpoint, obj, subresource), body=_typed(endpoint, obj))

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
        """A change; of which kind, the media type says."""
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
        """Server-side apply: these fields, in the name of a field manager."""
        strictness = {"fieldValidation": field_validation} if field_validation else {}
        return await self._ask(
            "PATCH",
            _path(endpoint, obj, subresource),
            {"fieldManager": manager, "force": "true" if force else "false", **strictness},
            body=_typed(endpoint, obj),
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
        """Begins a deletion; of that object and no namesake if `uid` is given."""
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
        """Begins the deletion of all that is selected."""
        return await self._ask("DELETE", endpoint.path(selection.namespace), selection.query())

    async def get_path(self, path: str, accept: str = JSON) -> Raw:
        """A document that is no object of a kind, as those of discovery."""
        return _read(await self._send(self._request("GET", path, {}, accept=accept)), path)

    async def read_path(self, path: str, read: Callable[[Raw], Read], accept: str = JSON) -> Read:
        """What a function makes of such a document: if it is as before, the same as before."""
        document = await self._send(self._request("GET", path, {}, accept=accept))
        known, made = self._documents.get((path, read), (None, None))
        if known != document:
            made = read(_read(document, path))
            self._documents[path, read] = (document, made)
        return cast("Read", made)

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
        What changes after a revision; closed with the block.

        With initial events it begins with one ADDED for every object that is there, followed by a
        bookmark that `ends_initial_events` knows. The objects of events may be the server's own.
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
        """What a part of an object answers in plain text, as logs do."""
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
        asked = urlencode(query) if query else ""
        return Request(method, path, asked, headers, data, self._user)


def _path(endpoint: Endpoint, obj: Raw, subresource: str) -> str:
    metadata = obj["metadata"]
    return endpoint.path(metadata.get("namespace", ""), metadata["name"], subresource)


def _typed(endpoint: Endpoint, obj: Raw) -> Raw:
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


async def _events(stream: Stream, decoder: SharedDecoder) -> AsyncGenerator[WatchEvent, None]:
    splitter = LineSplitter()
    async for chunk in stream:
        for event in _events_of(chunk, splitter, decoder):
            if event.type == "ERROR":
                raise error_of(event.object)
            yield event
        # The next one may be long in coming, and this one may be megabytes.
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
            yield _event(line, decoder)
        except (msgspec.DecodeError, RecursionError) as error:
            raise TransportError(f"a watch event is no JSON: {error}") from error


def _event(line: bytes, decoder: SharedDecoder) -> WatchEvent:
    if len(line) < LARGE_BYTES_MIN:
        envelope = _decode_envelope(line)
        return WatchEvent(envelope.type, envelope.object)
    large = _decode_large(line)
    return WatchEvent(large.type, decoder.decode(large.object))


def ends_initial_events(event: WatchEvent) -> bool:
    """Whether all that was there when a watch began has been sent."""
    if event.type != "BOOKMARK":
        return False
    annotations = get(event.object.get("metadata", {}), "annotations", {})
    return bool(annotations.get("k8s.io/initial-events-end") == "true")
