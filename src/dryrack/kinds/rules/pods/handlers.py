"""Validation of lifecycle hooks and probes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dryrack.kinds.paths import get
from dryrack.kinds.rules import checks
from dryrack.kinds.validation.problems import forbidden, invalid, not_supported, required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.raw import Raw
    from dryrack.kinds.validation import FieldProblem

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_HEADER = "[-A-Za-z0-9]+"
_HEADER_SYNTAX = (
    "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', "
    f"regex used for validation is '{_HEADER}')"
)


def hooks(at: str, container: Raw, grace_seconds: int | None) -> Iterator[FieldProblem]:
    """Check the lifecycle hooks of a container."""
    for key in ("postStart", "preStop"):
        hook = get(container, "lifecycle", {}).get(key)
        if hook is not None:
            yield from _handler(f"{at}.lifecycle.{key}", hook, grace_seconds)


def probes(at: str, container: Raw) -> Iterator[FieldProblem]:
    """Check the probes of a container."""
    for key in PROBES:
        probe = container.get(key)
        if probe is not None:
            yield from _probe(f"{at}.{key}", key, probe)


def _probe(at: str, key: str, probe: Raw) -> Iterator[FieldProblem]:
    yield from _handler(at, probe, None)
    for name in _COUNTS:
        yield from checks.non_negative(f"{at}.{name}", probe.get(name))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        yield invalid(f"{at}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    once = probe.get("successThreshold", 1)
    if key != "readinessProbe" and once != 1:
        yield invalid(f"{at}.successThreshold", once, "must be 1")
    if key == "readinessProbe" and grace is not None:
        detail = "must not be set for readinessProbes"
        yield invalid(f"{at}.terminationGracePeriodSeconds", grace, detail)


def _handler(at: str, given: Raw, grace_seconds: int | None) -> Iterator[FieldProblem]:
    found = [key for key in _HANDLERS if given.get(key) is not None]
    if not found:
        yield required(at, "must specify a handler type")
        return
    first, *others = found
    if first == "sleep":
        yield from _sleep(f"{at}.sleep", given["sleep"].get("seconds", 0), grace_seconds)
    else:
        yield from _action(f"{at}.{first}", first, given[first])
    for key in others:
        yield forbidden(f"{at}.{key}", "may not specify more than 1 handler type")


def _sleep(at: str, seconds: int, grace_seconds: int | None) -> Iterator[FieldProblem]:
    if grace_seconds is not None and not 0 <= seconds <= grace_seconds:
        bound = f"terminationGracePeriodSeconds ({grace_seconds})"
        yield invalid(at, seconds, f"must be non-negative and less than {bound}")


def _action(at: str, kind: str, given: Raw) -> Iterator[FieldProblem]:
    if kind == "exec" and not given.get("command"):
        yield required(f"{at}.command")
    if kind in ("httpGet", "tcpSocket", "grpc"):
        yield from checks.port(f"{at}.port", given.get("port", 0))
    if kind != "httpGet":
        return
    if given.get("scheme") not in ("HTTP", "HTTPS"):
        yield not_supported(f"{at}.scheme", given.get("scheme") or "", ("HTTP", "HTTPS"))
    for header in get(given, "httpHeaders", ()):
        name = header.get("name") or ""
        if not re.fullmatch(_HEADER, name):
            yield invalid(f"{at}.httpHeaders", name, _HEADER_SYNTAX)
