"""Kinds that a cluster need not serve: alpha and beta ones."""

import logging

from dryrack.client.discovery import is_served
from dryrack.client.endpoints import Endpoint
from dryrack.client.errors import ApiError, TransportError
from dryrack.client.informer import Informer, Listener
from dryrack.client.timekeeping import sleep
from dryrack.controllers.writes import EngineContext

_ASK_AGAIN_SECONDS = 5.0

_logger = logging.getLogger(__name__)


async def followed(
    around: EngineContext, endpoint: Endpoint, listener: Listener
) -> Informer | None:
    """
    The informer of a kind, whole and with a listener; None if the kind is not served.

    That is found out once: who turns such a kind on starts the server anew, and us with it.
    """
    if not await _is_served(around, endpoint):
        return None
    informer = around.informers.of(endpoint)
    informer.listen(listener)
    await informer.synced.wait()
    return informer


async def _is_served(around: EngineContext, endpoint: Endpoint) -> bool:
    while True:
        try:
            return await is_served(around.client, endpoint)
        except (ApiError, TransportError) as error:
            _logger.warning("discovery of %s: %s", endpoint.resource, error)
        await sleep(around.clock, _ASK_AGAIN_SECONDS)
