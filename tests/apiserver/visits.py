"""Pages of a server, visited one by one without the server around them."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from dryrack.apiserver.builtin import builtin_resources
from dryrack.apiserver.registry import Registry
from dryrack.apiserver.strategy import Strategy
from dryrack.client.transport import Request, Response
from dryrack.kinds.releases import FeatureSet, Release
from dryrack.kinds.rules.kind_rules import KindRules

if TYPE_CHECKING:
    from dryrack.apiserver.extension_points import Page


def plain_registry(release: Release = Release.V1_36) -> Registry:
    """Return a registry of all built-in kinds of a release with a plain strategy."""
    resources = builtin_resources(
        FeatureSet(release),
        lambda kind, _: Strategy(KindRules(namespaced=kind.namespaced)),
        handlers={},
    )
    return Registry(resources)


def visited(page: Page, target: str, **headers: str) -> Response:
    """Return the page's answer to a path with or without a query."""
    response = found(page, target, **headers)
    assert response is not None
    return response


def found(page: Page, target: str, **headers: str) -> Response | None:
    """Return the page's answer, or None if the path belongs to another page."""
    path, _, query = target.partition("?")
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return asyncio.run(_sent(page, Request("GET", path, query, given)))


async def _sent(page: Page, request: Request) -> Response | None:
    return await page(request)


def text_of(response: Response) -> str:
    assert isinstance(response.body, bytes)
    return response.body.decode()


def json_of(response: Response) -> Any:
    return json.loads(text_of(response))
