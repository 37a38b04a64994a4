"""
The answers of the JSON API.

They are computed on request, from the state in `Live`. Long computations, such as decisions or the
map of a large fleet, run in a thread, one at a time: in `dryrack up`, the event loop is that of the
API server.
"""

from __future__ import annotations

import asyncio
import gzip
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

from dryrack.base.errors import ContentError
from dryrack.client.endpoints import CLASSES, SLICES
from dryrack.client.timekeeping import micro_timestamp
from dryrack.dashboard.data.attributes import attribute_columns, attribute_documents
from dryrack.dashboard.data.claim_detail import claim_document
from dryrack.dashboard.data.comparison import compare
from dryrack.dashboard.data.device_detail import device_document
from dryrack.dashboard.data.fleet import Summaries, fleet_document
from dryrack.dashboard.data.gang_delays import gang_delays
from dryrack.dashboard.data.inventory import class_documents, slice_documents
from dryrack.dashboard.data.node_detail import node_document
from dryrack.dashboard.data.object_detail import KINDS, object_document
from dryrack.dashboard.data.pending import pending_documents, pending_pods
from dryrack.dashboard.data.pod_detail import gang_document, pod_document
from dryrack.dashboard.data.search import search
from dryrack.dashboard.data.trial import read_trial
from dryrack.dashboard.decisions import Decisions
from dryrack.dashboard.live import Live, encode
from dryrack.dashboard.stream import stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.dashboard.data.fleet import PoolRow
    from dryrack.dashboard.history import PastState

# Method and path below the API version, and the method of `Pages` that answers.
ROUTES = {
    "GET fleet": "fleet",
    "GET attributes": "attributes",
    "GET devices/{driver}/{pool:.+}/{name}": "device",
    "GET claims": "claims",
    "GET claims/{namespace}/{name}": "claim",
    "GET gangs": "gangs",
    "GET gangs/{namespace}/{name:.+}": "gang",
    "GET pods": "pods",
    "GET pods/{namespace}/{name}": "pod",
    # `kubectl proxy` refuses every path with /pods/ and later /exec or /attach, which may be
    # the beginning of a pod name.
    "GET pod/{namespace}/{name}": "pod",
    "GET pending": "pending_groups",
    "GET search": "search",
    "GET nodes/{name}": "node",
    "GET objects/{kind}/{name}": "object",
    "GET objects/{kind}/{namespace}/{name:.+}": "object",
    "GET slices": "slices",
    "GET classes": "classes",
    "GET events": "events",
    "GET timeline": "timeline",
    "GET compare": "compare",
    "GET explain/{kind:pod|claim|gang}/{namespace}/{name:.+}": "explain",
    "GET defragment/{driver}": "defragment",
    "GET results": "results",
    "POST try": "attempt",
    "GET stream": "stream",
}
_EVENTS_MAX = 1000
_SEARCHED = ("node", "class", "pod", "claim", "slice")
# Smaller responses are not compressed; larger ones are compressed in a thread.
_PACKED_BYTES_MIN = 1024
_THREAD_BYTES_MIN = 64 * 1024


class Pages:
    """The answers of the JSON API."""

    def __init__(self, live: Live, results: Mapping[str, Any] | None = None) -> None:
        """Answer from the state; `results` are those of simulations and of a plan."""
        self._live = live
        self._results = results or {"runs": [], "plan": None}
        self._decisions = Decisions(live)
        self._fleet: tuple[int, bytes] | None = None
        self._working = asyncio.Lock()

    async def fleet(self, request: web.Request) -> web.StreamResponse:
        """Return the map; it is compressed once per revision."""
        await self._live.look()
        if request.query.get("at"):
            return await self._fleet_at(request, request.query["at"])
        if "attribute" in request.query:
            return await self._fleet_with(request, request.query.getall("attribute"))
        async with self._working:
            if self._fleet is None or self._fleet[0] != self._live.revision:
                now = self._now()
                body = await asyncio.to_thread(lambda: gzip.compress(encode(now.document()), 5))
                self._fleet = (now.revision, body)
            return _compressed_response(request, self._fleet[1])

    async def _fleet_with(self, request: web.Request, names: list[str]) -> web.StreamResponse:
        now = self._now()
        slices = self._live.objects(SLICES)

        def document() -> dict[str, Any]:
            return now.document() | {"attributes": attribute_columns(now.pools, slices, names)}

        async with self._working:
            return await _json(request, await asyncio.to_thread(document))

    def _now(self) -> _FleetNow:
        tracked = self._live.tracked
        return _FleetNow(
            self._live.revision,
            self._live.notes,
            sorted(tracked.fleet.pools.current.values(), key=lambda each: each[:2]),
            sorted(tracked.nodes.current.values(), key=lambda each: str(each["name"])),
            tracked.fleet.summaries.documents(),
        )

    async def _fleet_at(self, request: web.Request, at: str) -> web.StreamResponse:
        past = self._live.history.state_at(at, self._live.tracked)

        def document() -> dict[str, Any]:
            summaries = Summaries()
            for row in past.pools.values():
                summaries.change(None, row)
            pools = sorted(past.pools.values(), key=lambda each: each[:2])
            nodes = sorted(past.nodes.values(), key=lambda each: str(each["name"]))
            about = {"revision": past.revision, "time": past.time, "notes": []}
            return {**about, "summary": summaries.documents(), **fleet_document(pools, nodes)}

        async with self._working:
            return await _json(request, await asyncio.to_thread(document))

    async def attributes(self, request: web.Request) -> web.StreamResponse:
        """Return the attributes by which the map can group devices."""
        await self._live.look()
        raws = self._live.objects(SLICES)
        revision = self._live.revision
        documents = await asyncio.to_thread(attribute_documents, raws)
        return await _json(request, {"revision": revision, "attributes": documents})

    async def timeline(self, request: web.Request) -> web.StreamResponse:
        """Return the changes from one time to another, and the delays of gangs until then."""
        await self._live.look()
        history, tracked = self._live.history, self._live.tracked
        moments = history.timeline(request.query.get("from", ""), request.query.get("to", ""))
        gangs, omitted = gang_delays(
            history.gang_rows(tracked), history.pod_rows(tracked), history.oldest
        )
        document = {
            "revision": self._live.revision,
            "now": micro_timestamp(self._live.clock.now()),
            "moments": moments,
            "gangs": gangs,
            "gangsOmitted": omitted,
        }
        return await _json(request, document)

    async def compare(self, request: web.Request) -> web.StreamResponse:
        """Return what differs between two moments; without `?to` the second one is now."""
        await self._live.look()
        history, tracked = self._live.history, self._live.tracked
        old = history.state_at(request.query.get("from", ""), tracked)
        new = history.state_at(request.query.get("to") or str(self._live.revision), tracked)
        async with self._working:
            document = await asyncio.to_thread(compare, old, new)
        return await _json(request, document)

    async def claims(self, request: web.Request) -> web.StreamResponse:
        """Return all claims, with `?at` those at a revision or a time."""
        past = await self._past(request)
        rows = self._live.tracked.claims.current if past is None else past.claims
        documents = [rows[key] for key in sorted(rows)]
        return await _json(request, self._about(past) | {"claims": documents})

    async def gangs(self, request: web.Request) -> web.StreamResponse:
        """Return all gangs, with `?at` those at a revision or a time."""
        past = await self._past(request)
        rows = self._live.tracked.gangs.current if past is None else past.gangs
        documents = [each for gangs in rows.values() for each in gangs]
        documents.sort(key=lambda each: (each["namespace"], each["name"], each["dialect"]))
        return await _json(request, self._about(past) | {"gangs": documents})

    async def _past(self, request: web.Request) -> PastState | None:
        """Return the past state that a request asks for; None for the present one."""
        await self._live.look()
        at = request.query.get("at")
        return self._live.history.state_at(at, self._live.tracked) if at else None

    def _about(self, past: PastState | None) -> dict[str, Any]:
        if past is None:
            now = micro_timestamp(self._live.clock.now())
            return {"revision": self._live.revision, "time": now}
        return {"revision": past.revision, "time": past.time}

    async def pods(self, request: web.Request) -> web.StreamResponse:
        """Return all pods, with `?pending` those that have no node yet, with `?at` past ones."""
        past = await self._past(request)
        rows = self._live.tracked.pods.current if past is None else past.pods
        documents = [rows[key] for key in sorted(rows)]
        if "pending" in request.query:
            documents = [each for each in documents if each["pending"]]
        return await _json(request, self._about(past) | {"pods": documents})

    async def pending_groups(self, request: web.Request) -> web.StreamResponse:
        """Return the pending pods in groups of the same explanation."""
        await self._live.look()
        pods = pending_pods(self._live.tracked)
        about = self._about(None)
        groups = await asyncio.to_thread(pending_documents, pods)
        return await _json(request, {**about, "groups": groups})

    async def explain(self, request: web.Request) -> web.StreamResponse:
        """Return the document of `dryrack explain -o json`."""
        await self._live.look()
        case = await self._decisions.explain(request.match_info["kind"], _name(request))
        return await _json(request, case)

    async def defragment(self, request: web.Request) -> web.StreamResponse:
        """Return the pods whose move frees whole nodes of a driver."""
        await self._live.look()
        async with self._working:
            revision = self._live.revision
            found = await self._decisions.defragment(request.match_info["driver"])
        return await _json(request, {"revision": revision, **found})

    async def results(self, request: web.Request) -> web.StreamResponse:
        """Return the results of simulations, and the plan that the map shows."""
        return await _json(request, self._results)

    async def attempt(self, request: web.Request) -> web.StreamResponse:
        """Explain an object after a change, on a copy of the cluster."""
        if request.content_type != "application/json":
            # A form of another site cannot send this content type.
            raise web.HTTPUnsupportedMediaType(reason="send application/json")
        trial = read_trial(await request.read())
        await self._live.look()
        answer = await self._decisions.attempt(trial)
        return await _json(request, answer)

    async def device(self, request: web.Request) -> web.StreamResponse:
        await self._live.look()
        driver, pool, name = (request.match_info[each] for each in ("driver", "pool", "name"))
        document = device_document(self._live.tracked.fleet, (driver, pool), name)
        return await self._answer(request, document, "device", f"{driver}/{pool}/{name}")

    async def claim(self, request: web.Request) -> web.StreamResponse:
        await self._live.look()
        name = _name(request)
        return await self._answer(request, claim_document(self._live.tracked, name), "claim", name)

    async def gang(self, request: web.Request) -> web.StreamResponse:
        await self._live.look()
        where = request.match_info
        document = gang_document(self._live.tracked, where["namespace"], where["name"])
        return await self._answer(request, document, "gang", _name(request))

    async def pod(self, request: web.Request) -> web.StreamResponse:
        await self._live.look()
        name = _name(request)
        return await self._answer(request, pod_document(self._live.tracked, name), "pod", name)

    async def search(self, request: web.Request) -> web.StreamResponse:
        """Return the objects and devices that match `?text=`."""
        await self._live.look()
        objects = {name: self._live.objects(KINDS[name][0]) for name in _SEARCHED}
        hits = await asyncio.to_thread(search, objects, request.query.get("text", ""))
        return await _json(request, {"revision": self._live.revision, "hits": hits})

    async def node(self, request: web.Request) -> web.StreamResponse:
        await self._live.look()
        name = request.match_info["name"]
        return await self._answer(request, node_document(self._live.tracked, name), "node", name)

    async def object(self, request: web.Request) -> web.StreamResponse:
        """Return an object as YAML, with the kubectl commands that print it."""
        await self._live.look()
        kind, name = request.match_info["kind"], request.match_info["name"]
        namespace = request.match_info.get("namespace", "")
        if kind not in KINDS:
            raise ContentError(f"kind {kind!r} not found; use one of: {', '.join(KINDS)}")
        found = (self._live.find(each, namespace, name) for each in KINDS[kind])
        document = next((object_document(*each) for each in found if each is not None), None)
        full = f"{namespace}/{name}" if namespace else name
        if document is None and kind == "gang":
            raise ContentError(f"gang {full!r} has no object: labels of its Pods define it")
        return await self._answer(request, document, kind, full)

    async def slices(self, request: web.Request) -> web.StreamResponse:
        await self._live.look()
        raws = self._live.objects(SLICES)
        revision = self._live.revision
        documents = await asyncio.to_thread(slice_documents, raws)
        return await _json(request, {"revision": revision, "slices": documents})

    async def classes(self, request: web.Request) -> web.StreamResponse:
        await self._live.look()
        documents = class_documents(self._live.objects(CLASSES))
        return await _json(request, {"revision": self._live.revision, "classes": documents})

    async def events(self, request: web.Request) -> web.StreamResponse:
        """Return the latest events, the newest first, and how many older ones are omitted."""
        await self._live.look()
        rows = self._live.tracked.events.current.values()
        documents = sorted(rows, key=lambda each: (each["time"], each["name"]), reverse=True)
        document = {
            "revision": self._live.revision,
            "events": documents[:_EVENTS_MAX],
            "omitted": max(0, len(documents) - _EVENTS_MAX),
        }
        return await _json(request, document)

    async def _answer(
        self, request: web.Request, document: Mapping[str, Any] | None, kind: str, name: str
    ) -> web.StreamResponse:
        if document is None:
            raise ContentError(f"{kind} {name!r} not found")
        return await _json(request, {"revision": self._live.revision, **document})

    async def stream(self, request: web.Request) -> web.StreamResponse:
        """Send changes as server-sent events."""
        await self._live.look()
        return await stream(request, self._live)


@dataclass(frozen=True, slots=True)
class _FleetNow:
    """The data of the map; rows are immutable, so that a thread may read them."""

    revision: int
    notes: Sequence[str]
    pools: Sequence[PoolRow]
    nodes: Sequence[Mapping[str, Any]]
    summary: Sequence[Mapping[str, Any]]

    def document(self) -> dict[str, Any]:
        about = {"revision": self.revision, "notes": self.notes, "summary": self.summary}
        return about | fleet_document(self.pools, self.nodes)


def _name(request: web.Request) -> str:
    return f"{request.match_info['namespace']}/{request.match_info['name']}"


async def _json(request: web.Request, document: Mapping[str, Any]) -> web.Response:
    body = encode(document)
    if len(body) < _PACKED_BYTES_MIN:
        return _json_response(body)
    if len(body) < _THREAD_BYTES_MIN:
        return _compressed_response(request, gzip.compress(body, 5))
    return _compressed_response(request, await asyncio.to_thread(gzip.compress, body, 5))


def _compressed_response(request: web.Request, packed: bytes) -> web.Response:
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return _json_response(gzip.decompress(packed))
    response = _json_response(packed)
    response.headers["Content-Encoding"] = "gzip"
    return response


def _json_response(body: bytes) -> web.Response:
    headers = {"Cache-Control": "no-store", "Vary": "Accept-Encoding"}
    return web.Response(body=body, content_type="application/json", headers=headers)
