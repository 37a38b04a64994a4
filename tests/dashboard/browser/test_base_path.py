"""The page behind proxies that serve it below a path, where every address must be relative."""

from __future__ import annotations

import json
from contextlib import contextmanager
from subprocess import DEVNULL, PIPE, Popen
from typing import TYPE_CHECKING

import pytest
from tests.dashboard.browser.base_path import served_below
from tests.dashboard.browser.relay import Relay
from tests.dashboard.browser.scene import VIEWS, claim
from tests.realcluster.node import own_address
from yarl import URL

from dryrack.client.endpoints import CLAIMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.dashboard.browser.conftest import Look
    from tests.realcluster.controlplane import ControlPlane
    from tests.realcluster.fixtures import Namespace

pytestmark = pytest.mark.real

PATH = "/api/v1/namespaces/tools/services/http:dryrack:80/proxy/"


async def visited_below(look: Look, page: str) -> None:
    """Every view, the stream and a posted question; the cookie is for that path alone."""
    tab = look.tab
    await tab.open("about:blank")
    # The cookie of the visit before would be sent below the path too.
    await tab.call("Network.clearBrowserCookies")
    await tab.open(f"{page}?{URL(look.address).query_string}")
    await tab.has("live", "#connection")
    assert await tab.js("location.href.split('#')[0]") == page
    cookies = (await tab.call("Network.getCookies"))["cookies"]
    assert [(each["path"], each["httpOnly"]) for each in cookies] == [
        (URL(page).path.rstrip("/"), True)
    ]
    for address, text in VIEWS.items():
        await tab.go(address)
        await tab.has(text, "main")
    await tab.go("#/why/pod/team/waits")
    await tab.has("does not fit", "main")
    count = "document.querySelector('.trial [name=count]')"
    await tab.until(count)
    await tab.js(f"{count}.value = 1")
    await tab.click(".trial [type=submit]")
    await tab.has("fits with this change", ".answer")
    await tab.go("#/claims")
    await look.client.create(CLAIMS, claim("below", 1))
    await tab.has("team/below", "main")
    await look.client.delete(CLAIMS, "below", namespace="team")
    await tab.until("!document.querySelector('main').innerText.includes('team/below')")
    # Again without the token: the cookie is enough.
    await tab.open("about:blank")
    await tab.open(page)
    await tab.has("live", "#connection")
    await tab.open("about:blank")


def test_the_page_works_below_a_base_path(look: Look) -> None:
    """A proxy takes the path away, and hands on all else."""

    async def story(look: Look) -> None:
        async with served_below(PATH, URL(look.address).port or 0) as port:
            await visited_below(look, f"http://127.0.0.1:{port}{PATH}")

    look(story)


def test_the_page_works_behind_kubectl_proxy(look: Look, real_namespace: Namespace) -> None:
    """As a Service of a real cluster, of which the API server hands on what a browser asks."""

    async def story(look: Look) -> None:
        # The API server goes to no Service on loopback.
        relay = Relay(URL(look.address).port or 0, host=own_address())
        await relay.start()
        try:
            put_behind_service(real_namespace, relay.port)
            path = PATH.replace("/tools/", f"/{real_namespace.name}/")
            with kubectl_proxy(real_namespace.plane) as proxy:
                await visited_below(look, f"{proxy}{path}")
        finally:
            await relay.cut()
            real_namespace.kubectl("delete", "node", real_namespace.name)

    look(story)


def put_behind_service(namespace: Namespace, port: int) -> None:
    """A pod that seems to run here, and a Service before it; until it has an endpoint."""
    labels = {"app": "dryrack"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "dryrack", "labels": labels},
        "spec": {"nodeName": namespace.name, "containers": [{"name": "c", "image": "i"}]},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "dryrack"},
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": port}]},
    }
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": namespace.name}}
    for each in (node, pod, service):
        namespace.apply(json.dumps(each))
    status = {
        "phase": "Running",
        "podIP": own_address(),
        "podIPs": [{"ip": own_address()}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    for words in (
        ("patch", "pod", "dryrack", *patch),
        ("wait", "endpoints/dryrack", "--for=jsonpath={.subsets[0].addresses}", "--timeout=30s"),
    ):
        done = namespace.kubectl(*words)
        assert done.returncode == 0, done.stderr


@contextmanager
def kubectl_proxy(plane: ControlPlane) -> Iterator[str]:
    """Where it serves, for the length of a block."""
    words = [str(plane.kubectl_path), "--kubeconfig", str(plane.kubeconfig), "proxy", "--port=0"]
    with Popen(words, stdout=PIPE, stderr=DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://{process.stdout.readline().split()[-1]}"
        finally:
            process.terminate()
