"""What a cluster serves: every kind once, in the version that its group prefers."""

from collections.abc import Iterator
from dataclasses import dataclass

from dryrack.client.client import Client
from dryrack.client.endpoints import Endpoint
from dryrack.client.errors import NotFoundError, TransportError
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class Served:
    """A kind and what can be done with it."""

    endpoint: Endpoint
    verbs: frozenset[str]

    def allows(self, *verbs: str) -> bool:
        return self.verbs.issuperset(verbs)


async def discover(client: Client) -> tuple[Served, ...]:
    """All kinds; a version that a server could not answer for is left out."""
    found: list[Served] = []
    for path in ("/api", "/apis"):
        served = await client.read_path(path, _all_preferred, _AGGREGATED)
        if served is None:
            raise TransportError(f"{path}: no aggregated discovery; Kubernetes 1.30 has it")
        found += served
    return tuple(found)


def _all_preferred(answer: Raw) -> tuple[Served, ...] | None:
    if answer.get("kind") != "APIGroupDiscoveryList":
        return None
    return tuple(each for group in get(answer, "items", ()) for each in _preferred(group))


async def is_served(client: Client, endpoint: Endpoint) -> bool:
    """Whether objects of one kind, in one version, can be listed and watched now."""
    try:
        found = await client.read_path(f"/apis/{endpoint.api_version}", _watchable)
    except NotFoundError:
        return False
    return endpoint.plural in found


def _watchable(answer: Raw) -> frozenset[str]:
    resources = get(answer, "resources", ())
    return frozenset(
        each["name"] for each in resources if {"list", "watch"} <= set(get(each, "verbs", ()))
    )


def _preferred(group: Raw) -> Iterator[Served]:
    """The versions are in the order of preference."""
    seen: set[str] = set()
    name = get(group, "metadata.name") or ""
    for version in get(group, "versions", ()):
        for resource in get(version, "resources", ()):
            plural = resource["resource"]
            if plural in seen or version.get("freshness") == "Stale":
                continue
            seen.add(plural)
            kind = get(resource, "responseKind", {}).get("kind", "")
            is_namespaced = resource.get("scope") == "Namespaced"
            endpoint = Endpoint(name, version["version"], plural, kind, is_namespaced)
            yield Served(endpoint, frozenset(get(resource, "verbs", ())))
