"""Engines on somebody else's cluster: one works, all are ready, and each ends well."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import TYPE_CHECKING

import aiohttp
import pytest
from tests.client.planes import Road, Site, refusal, site

from dryrack.base.errors import DryrackError
from dryrack.client.client import Client
from dryrack.client.election import LostLeadershipError
from dryrack.client.endpoints import LEASES, NODES, SLICES
from dryrack.client.errors import TransportError
from dryrack.client.informer import Name
from dryrack.client.kubeconfig import KubeconfigError
from dryrack.cluster.attached import (
    Attached,
    AttachError,
    Attachment,
    Candidacy,
    Need,
    check_needs,
    connection_of,
)
from dryrack.cluster.process.logs import LogFormat, configure_logs
from dryrack.cluster.process.probes import Site as Pages
from dryrack.cluster.process.probes import health_pages, merge_sites, metrics_page, serve_sites
from dryrack.cluster.process.serving import Address, AddressError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dryrack.client.transport import Request, Response, Transport
    from dryrack.controllers.writes import EngineContext

LEASE = Name("default", "publisher")
ANYWHERE = Address("127.0.0.1", 0)


class Worker:
    """An engine that notes when it works, and reads nodes."""

    def __init__(self, around: EngineContext, working: list[str], name: str) -> None:
        self._nodes = around.informers.of(NODES)
        self._working = working
        self._name = name

    async def run(self) -> None:
        await self._nodes.synced.wait()
        self._working.append(self._name)
        try:
            await asyncio.Event().wait()
        finally:
            self._working.remove(self._name)

    def lacking(self) -> tuple[str, ...]:
        return ("overlays",) if self._working == [self._name] else ()


def attached(
    here: Site, working: list[str], name: str, transport: Transport | None = None
) -> Attached:
    attachment = Attachment(candidacy=Candidacy(LEASE, name), clock=here.clock, chance=here.chance)
    return Attached(
        transport or here.road, lambda around: Worker(around, working, name), attachment
    )


async def test_a_follower_is_ready_and_works_when_the_leader_has_gone() -> None:
    """Its shared caches are enough while it waits; a lease that is given back is taken at once."""
    here = site()
    working = list[str]()
    one = attached(here, working, "a")
    other = attached(here, working, "b")
    stop_one = asyncio.Event()
    stop_other = asyncio.Event()
    assert one.lacking() == ("nodes: not synced yet",)
    async with asyncio.TaskGroup() as group:
        first = group.create_task(one.run(stop_one))
        await here.clock.advance(1)
        group.create_task(other.run(stop_other))
        await here.clock.advance(60)
        assert working == ["a"]
        assert one.lacking() == ("overlays: not synced yet",)
        assert other.lacking() == ()
        stop_one.set()
        await here.clock.advance(3)
        assert first.done()
        assert working == ["b"]
        stop_other.set()
    lease = await here.client.get(LEASES, LEASE.name, LEASE.namespace)
    assert lease["spec"]["holderIdentity"] == ""


async def test_who_loses_the_lease_stops_and_ends() -> None:
    """Nothing is done from that moment on, and whoever started it is told why."""
    here = site()
    working = list[str]()
    road = Road(here.road)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(ending(attached(here, working, "a", road)))
        await here.clock.advance(5)
        assert working == ["a"]
        road.refuse = lambda request: (
            refusal(500, "InternalError") if "leases" in request.path else None
        )
        await here.clock.advance(11)
        assert working == []
        assert "not renewed in time; start again" in await running


async def ending(run: Attached) -> str:
    with pytest.raises(LostLeadershipError) as lost:
        await run.run(asyncio.Event())
    return str(lost.value)


async def test_an_engine_that_fails_ends_it_with_its_own_error() -> None:
    """The error is the engine's, not a group of groups."""

    class Failing:
        async def run(self) -> None:
            raise ZeroDivisionError

        def lacking(self) -> tuple[str, ...]:
            return ()

    here = site()
    attachment = Attachment(clock=here.clock, chance=here.chance)
    with pytest.raises(ZeroDivisionError):
        await Attached(here.road, lambda _: Failing(), attachment).run(asyncio.Event())


async def test_probes_say_what_is_lacking_and_numbers_are_text() -> None:
    """500 with a line for each thing that is lacking, then 200; all pages may share a port."""
    lacking = ["nodes: not synced yet"]
    pages = (
        Pages(ANYWHERE, health_pages(lambda: lacking)),
        Pages(ANYWHERE, metrics_page(lambda: "up 1\n")),
    )
    sites = merge_sites(pages)
    assert len(sites) == 1
    async with serve_sites(sites) as (url,), aiohttp.ClientSession() as session:
        assert await fetched(session, url + "/healthz") == (200, "ok")
        assert await fetched(session, url + "/readyz") == (500, "nodes: not synced yet")
        lacking.clear()
        assert await fetched(session, url + "/readyz") == (200, "ok")
        assert await fetched(session, url + "/metrics") == (200, "up 1\n")
        assert (await fetched(session, url + "/elsewhere"))[0] == 404


def test_what_is_no_http_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """Anybody may send it, as often as they like; the answer is 400."""

    async def play() -> None:
        async with serve_sites([Pages(ANYWHERE, health_pages(tuple))]) as (url,):
            port = int(url.rpartition(":")[2])
            for sent in (b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 5000, b"GET /" + b"x" * 9000):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(sent + b"\r\n\r\n")
                assert (await reader.readline()).startswith(b"HTTP/1.0 400")
                writer.close()

    with caplog.at_level(logging.DEBUG, "aiohttp"), caplog.at_level(logging.DEBUG, "dryrack"):
        asyncio.run(play())
    assert [record.message for record in caplog.records] == []


async def fetched(session: aiohttp.ClientSession, url: str) -> tuple[int, str]:
    async with session.get(url) as answer:
        return answer.status, await answer.text()


async def test_a_port_that_is_taken_is_told_with_a_remedy() -> None:
    """One line that names the address, and what else there is to do."""
    async with serve_sites([Pages(ANYWHERE, {})]) as (url,):
        taken = Address("127.0.0.1", int(url.rpartition(":")[2]))
        with pytest.raises(AddressError, match="already in use; choose another port, or 0"):
            async with serve_sites([Pages(taken, {})]):
                pass
        sites = merge_sites([Pages(taken, {}, ("--a",)), Pages(taken, {}, ("--b",))])
        with pytest.raises(AddressError, match="choose another port with --a and --b, or 0 for"):
            async with serve_sites(sites):
                pass


def test_which_cluster_is_meant(tmp_path: Path) -> None:
    """The named file, else those of the environment, else the pod's own; or one clear line."""
    nowhere = {"KUBECONFIG": str(tmp_path / "nowhere")}

    with pytest.raises(KubeconfigError, match='nowhere" not found; start a cluster'):
        connection_of(nowhere)
    with pytest.raises(KubeconfigError, match="service account"):
        connection_of({**nowhere, "KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"})
    with pytest.raises(KubeconfigError, match='absent" not found; '):
        connection_of({"KUBERNETES_SERVICE_HOST": "h"}, kubeconfig=str(tmp_path / "absent"))


@pytest.mark.parametrize(
    ("refuse", "words"),
    [
        (lambda _: refusal(403, "Forbidden"), "dryrack publish --print-rbac"),
        (lambda _: refusal(401, "Unauthorized"), "get new ones"),
        (lambda _: refusal(404, "NotFound"), "resource.k8s.io/v1 needs Kubernetes 1.34 or newer"),
        (lambda _: refusal(503, "ServiceUnavailable"), "try again"),
    ],
)
async def test_what_stops_it_comes_with_a_remedy(
    refuse: Callable[[Request], Response | None], words: str
) -> None:
    """What the cluster said, and what to do about it, in one line."""
    here = site()
    here.road.refuse = refuse
    with pytest.raises(AttachError, match=words) as told:
        await check_needs(here.client, (Need(SLICES),))
    assert "\n" not in str(told.value)


def test_a_cluster_that_is_not_there_comes_with_a_remedy() -> None:
    """Who asks is pointed at the options that say which cluster."""

    class Nowhere:
        async def send(self, _: Request) -> Response:
            raise TransportError("GET https://127.0.0.1:1/api: connection refused")

    with pytest.raises(AttachError, match="refused; check that the cluster runs"):
        asyncio.run(check_needs(Client(Nowhere()), (Need(NODES),)))


@pytest.fixture
def logs() -> Iterator[None]:
    """Logging as it was, afterwards."""
    root = logging.getLogger()
    ours = logging.getLogger("dryrack")
    before = (root.handlers, root.level, ours.level)
    yield
    root.handlers = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


@pytest.mark.usefixtures("logs")
def test_log_lines_are_objects_for_programs_and_words_for_people() -> None:
    """Time, level, message and fields; an error of a program stays on one line as JSON."""
    lines = io.StringIO()
    configure_logs(LogFormat.JSON, lines)
    logger = logging.getLogger("dryrack.test")
    logger.info("config kept", extra={"file": "config.yaml", "line": 7})
    try:
        raise DryrackError("a\nb")
    except DryrackError:
        logger.exception("a bug")
    first, second = (json.loads(line) for line in lines.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info",
        "logger": "dryrack.test",
        "message": "config kept",
        "file": "config.yaml",
        "line": 7,
    }
    assert "a\nb" in second["stack"]

    words = io.StringIO()
    configure_logs(LogFormat.TEXT, words)
    logger.warning("config kept", extra={"problem": "no such field"})
    assert words.getvalue().endswith('warn  config kept problem="no such field"\n')
    logger.warning("not in force: a:1: wrong\na:2: wrong")
    assert words.getvalue().endswith("warn  not in force: a:1: wrong\n  a:2: wrong\n")
