"""The page behind a proxy that serves it below a path, where every address must be relative."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.dashboard.browser.base_path import served_below
from tests.dashboard.browser.scene import VIEWS, claim
from yarl import URL

from dryrack.client.endpoints import CLAIMS

if TYPE_CHECKING:
    from tests.dashboard.browser.conftest import Look

pytestmark = pytest.mark.real

PATH = "/api/v1/namespaces/tools/services/http:dryrack:80/proxy/"


def test_the_page_works_below_a_base_path(look: Look) -> None:
    """Every view, the stream and a posted question; the cookie is for that path alone."""

    async def story(look: Look) -> None:
        tab, real = look.tab, URL(look.address)
        await tab.open("about:blank")
        # The cookie of the visit before would be sent below the path too.
        await tab.call("Network.clearBrowserCookies")
        async with served_below(PATH, real.port or 0) as port:
            page = f"http://127.0.0.1:{port}{PATH}"
            await tab.open(f"{page}?{real.query_string}")
            await tab.has("live", "#connection")
            assert await tab.js("location.href.split('#')[0]") == page
            cookies = (await tab.call("Network.getCookies"))["cookies"]
            assert [(each["path"], each["httpOnly"]) for each in cookies] == [
                (PATH.rstrip("/"), True)
            ]
            for address, text in VIEWS.items():
                await tab.go(address)
                await tab.has(text, "main")
            await tab.go("#/why/pod/team/waits")
            await tab.has("does not fit", "main")
            await tab.js("document.querySelector('.trial [name=count]').value = 1")
            await tab.click(".trial button")
            await tab.has("it would fit", ".answer")
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

    look(story)
