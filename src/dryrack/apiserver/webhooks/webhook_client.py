"""
Calls of admission and conversion webhooks over HTTPS.

A webhook is called where its configuration says, with the certificates that it says, and for as
long as it says; what goes wrong on the way is an answer of its own (`Unanswered`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from yarl import URL

from dryrack.apiserver.webhooks.admission_reviews import T, Unanswered
from dryrack.base.limits import WEBHOOK_ANSWER_BYTES_MAX
from dryrack.client.credentials import Fixed
from dryrack.client.errors import TransportError
from dryrack.client.https import connected
from dryrack.client.kubeconfig import Connection
from dryrack.client.transport import Request
from dryrack.extension.policies import url_problems

if TYPE_CHECKING:
    from dryrack.apiserver.webhooks.admission_reviews import WebhookRequest

_HEADERS = {"content-type": "application/json", "accept": "application/json, */*"}
_OK = 200


async def ask_webhook(question: WebhookRequest[T], uid: str) -> T | Unanswered:
    """Call a webhook and return its answer, or why it has none."""
    query = f"timeout={question.timeout_seconds}s"
    where = f'failed to call webhook: Post "{question.url}?{query}"'
    # The annotation of a Service, and a configuration that an earlier version stored, are checked
    # nowhere else.
    for problem in url_problems("url", question.url):
        return Unanswered(f"{where}: {problem.message}")
    try:
        url = URL(question.url)
    except ValueError as error:
        return Unanswered(f"{where}: {error}")
    connection = Connection(
        server=f"{url.scheme}://{url.raw_authority}",
        credentials=Fixed(),
        authority=question.authority or None,
        server_name=question.server_name,
    )
    request = Request("POST", url.raw_path, query=query, headers=_HEADERS, body=question.body(uid))
    try:
        async with (
            asyncio.timeout(question.timeout_seconds),
            connected(connection, answer_bytes_max=WEBHOOK_ANSWER_BYTES_MAX) as transport,
        ):
            response = await transport.send(request)
    except TimeoutError:
        return Unanswered(f"{where}: context deadline exceeded")
    except TransportError as error:
        return Unanswered(f"{where}: {str(error).partition(': ')[2]}")
    except ValueError:
        return Unanswered(f"{where}: the caBundle has no certificate that can be read")
    assert isinstance(response.body, bytes), "no watch"
    if response.status != _OK:
        return Unanswered(f"{where}: answered with status {response.status}")
    return question.read(uid, response.body)
