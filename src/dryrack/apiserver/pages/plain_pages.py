"""
Plain pages: health, version, metrics, the index.

Each is a `Page` of the server; the last one answers all other paths with 404.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec

from dryrack.apiserver.answer.status import page_not_found
from dryrack.base import metrics
from dryrack.client.endpoints import PREPARED_CLAIMS
from dryrack.client.transport import Response
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dryrack.apiserver.registry import Registry
    from dryrack.client.transport import Request

TEXT = "text/plain; charset=utf-8"
_HEALTH = ("healthz", "livez", "readyz")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be well."""

    name: str
    passes: Callable[[], bool] = lambda: True


@dataclass(frozen=True, slots=True)
class HealthPages:
    """`/healthz`, `/livez` and `/readyz`, as a whole and check by check."""

    checks: Sequence[Check] = (Check("ping"), Check("log"), Check("store"))

    async def __call__(self, request: Request) -> Response | None:
        kind, _, name = request.path.strip("/").partition("/")
        if kind not in _HEALTH:
            return None
        return self._one(name) if name else self._all(kind, parse_qs(request.query, True))

    def _one(self, name: str) -> Response | None:
        check = next((each for each in self.checks if each.name == name), None)
        if check is None:
            return _text(404, "404 page not found\n")
        if check.passes():
            return _text(200, "ok")
        return _text(500, f"internal server error: {name} check failed\n")

    def _all(self, kind: str, parameters: Mapping[str, list[str]]) -> Response:
        excluded = parameters.get("exclude", [])
        lines = []
        is_well = True
        for check in self.checks:
            is_excluded = check.name in excluded
            passes = is_excluded or check.passes()
            is_well = is_well and passes
            lines.append(_line(check.name, is_excluded=is_excluded, passes=passes))
        unknown = [name for name in excluded if all(check.name != name for check in self.checks)]
        if unknown:
            quoted = ", ".join(f'"{name}"' for name in unknown)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}")
        verdict = f"{kind} check {'passed' if is_well else 'failed'}"
        if is_well and "verbose" not in parameters:
            return _text(200, "ok")
        return _text(200 if is_well else 500, "\n".join([*lines, verdict, ""]))


def _line(name: str, *, is_excluded: bool, passes: bool) -> str:
    if is_excluded:
        return f"[+]{name} excluded: ok"
    return f"[+]{name} ok" if passes else f"[-]{name} failed: reason withheld"


def version_info(release: Release) -> Mapping[str, str]:
    """Return the version of a server of the release, as `kubectl version` reads it."""
    major, _, minor = release.value.partition(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(release.minor - 1),
        "gitVersion": release.git_version,
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


@dataclass(frozen=True, slots=True)
class VersionPage:
    """`/version`: which release of Kubernetes a client may expect."""

    release: Release = DEFAULT_RELEASE

    async def __call__(self, request: Request) -> Response | None:
        if request.path.strip("/") != "version" or request.method not in ("GET", "HEAD"):
            return None
        return _json(msgspec.json.format(msgspec.json.encode(version_info(self.release))))


@dataclass(frozen=True, slots=True)
class MetricsPage:
    """`/metrics`: how many objects there are, and what engines count, as Prometheus reads it."""

    counts: Callable[[], Mapping[str, int]]
    engines: metrics.Registry
    release: Release = DEFAULT_RELEASE

    async def __call__(self, request: Request) -> Response | None:
        if request.path.strip("/") != "metrics" or request.method not in ("GET", "HEAD"):
            return None
        headers = (("content-type", metrics.CONTENT_TYPE),)
        return Response(200, headers, (self._numbers().render() + self.engines.render()).encode())

    def _numbers(self) -> metrics.Registry:
        numbers = metrics.Registry()
        version = ("git_version", "major", "minor")
        build = numbers.gauge("kubernetes_build_info", "The release whose API is served.", version)
        info = version_info(self.release)
        build.of(*(info[key] for key in ("gitVersion", "major", "minor"))).set(1)
        stored = numbers.gauge(
            "apiserver_storage_objects", "Number of stored objects by resource.", ("resource",)
        )
        for resource, count in self.counts().items():
            stored.of(resource).set(count)
        return numbers


@dataclass(frozen=True, slots=True)
class PreparedClaimsPage:
    """`/dryrack/prepared-claims`: the UIDs of the claims that simulated drivers have prepared."""

    claims: Callable[[], Mapping[str, Sequence[str]]]
    """Returns the UIDs by driver."""

    async def __call__(self, request: Request) -> Response | None:
        if request.path != PREPARED_CLAIMS or request.method != "GET":
            return None
        return _json(msgspec.json.encode({"drivers": self.claims()}))


@dataclass(frozen=True, slots=True)
class IndexPage:
    """`/`: every path that leads somewhere."""

    registry: Registry

    async def __call__(self, request: Request) -> Response | None:
        if request.path not in ("", "/") or request.method not in ("GET", "HEAD"):
            return None
        paths = {"/api", "/api/v1", "/apis", "/apis/", "/metrics", "/openapi/v2", "/openapi/v3"}
        paths |= {"/version", *(f"/{kind}" for kind in _HEALTH)}
        for each in self.registry.all():
            if each.group:
                paths |= {f"/apis/{each.group}", f"/apis/{each.group}/{each.version}"}
        return _json(msgspec.json.format(msgspec.json.encode({"paths": sorted(paths)}), indent=2))


@dataclass(frozen=True, slots=True)
class NoSuchPage:
    """
    Says that a path leads nowhere at all.

    Below the groups that are served the answer is a `Status`; for paths of no such group it is
    this text.
    """

    registry: Registry

    async def __call__(self, request: Request) -> Response | None:
        parts = request.path.strip("/").split("/")
        match parts:
            case ["api", *_] | ["apis"]:
                return None
            case ["apis", group, _] if self.registry.serves(group):
                # A version that is not served, or not any more, of a group that is built in.
                raise page_not_found()
            case ["apis", group, *_] if any(each.group == group for each in self.registry.all()):
                return None
            case _:
                return _text(404, "404 page not found\n")


def _text(status: int, text: str) -> Response:
    headers = (("content-type", TEXT), ("x-content-type-options", "nosniff"))
    return Response(status, headers, text.encode())


def _json(body: Any) -> Response:
    return Response(200, (("content-type", "application/json"),), body)
