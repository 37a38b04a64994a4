"""The kinds that a cluster serves: each once, in the preferred version of its group."""

from collections.abc import Iterator
from dataclasses import dataclass

from dryrack.client.client import Client
from dryrack.client.endpoints import TAINT_RULES, TAINT_RULES_V1, Endpoint
from dryrack.client.errors import NotFoundError, TransportError
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.kinds.releases import Release, nearest_release

# Kinds that newer releases serve only in another version: DeviceTaintRules of Kubernetes 1.37.
_NEWER_VERSIONS = {TAINT_RULES: TAINT_RULES_V1}
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class Served:
    """A served kind with its verbs."""

    endpoint: Endpoint
    verbs: frozenset[str]

    def allows(self, *verbs: str) -> bool:
        return self.verbs.issuperset(verbs)


async def discover(client: Client) -> tuple[Served, ...]:
    """Return all kinds, without versions whose API server is not available."""
    kinds: list[Served] = []
    for path in ("/api", "/apis"):
        served = await client.read_path(path, _read_groups, _AGGREGATED)
        if served is None:
            raise TransportError(f"{path}: no aggregated discovery; Kubernetes 1.30 has it")
        kinds += served
    return tuple(kinds)


def _read_groups(answer: Raw) -> tuple[Served, ...] | None:
    if answer.get("kind") != "APIGroupDiscoveryList":
        return None
    return tuple(each for group in get(answer, "items", ()) for each in _read_group(group))


async def is_served(client: Client, endpoint: Endpoint) -> bool:
    """Return whether objects of one kind, in one version, can be listed and watched now."""
    try:
        plurals = await client.read_path(f"/apis/{endpoint.api_version}", _find_watchable)
    except NotFoundError:
        return False
    return endpoint.plural in plurals


async def newest_version(client: Client, endpoint: Endpoint) -> Endpoint:
    """Return the endpoint of a kind in its newest version that the cluster serves."""
    newer = _NEWER_VERSIONS.get(endpoint)
    return newer if newer is not None and await is_served(client, newer) else endpoint


async def release_of(client: Client) -> Release:
    """Return the release that behaves most like the cluster's API server."""
    version = await client.get_path("/version")
    emulated = version.get("emulationMinor")
    return nearest_release(f"1.{emulated}" if emulated else str(version.get("gitVersion", "")))


def _find_watchable(answer: Raw) -> frozenset[str]:
    resources = get(answer, "resources", ())
    return frozenset(
        each["name"] for each in resources if {"list", "watch"} <= set(get(each, "verbs", ()))
    )


def _read_group(group: Raw) -> Iterator[Served]:
    """Yield each kind of a group in its first version; versions are in the order of preference."""
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
