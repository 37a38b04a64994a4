"""The embedded API server, without sockets: a request in, a response out."""

from dryrack.apiserver.registry import Registry
from dryrack.apiserver.seams import Seams
from dryrack.base.ports import Chance, Clock
from dryrack.client.transport import Request, Response
from dryrack.store import Store


class ApiServer:
    """A `Transport` that leads into a store."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        *,
        clock: Clock,
        chance: Chance,
        seams: Seams | None = None,
    ) -> None:
        self.store = store
        self.registry = registry
        self.clock = clock
        self.chance = chance
        self.seams = seams or Seams()

    async def send(self, request: Request) -> Response:
        raise NotImplementedError
