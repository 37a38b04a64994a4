"""
Runtime configuration: which built-in API versions are served.

A real server serves stable versions alone, unless its `--runtime-config` says otherwise; the same
values are read here. A version that is not served is not in discovery, OpenAPI or under any path,
but a body of that version gets another refusal than a body of an unknown kind.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE, Release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.kinds.registry import Kind

_ALL = "api/all"
_STAGES = {"": "api/ga", "beta": "api/beta", "alpha": "api/alpha"}
_VERSION = re.compile(r"v\d+(?:(alpha|beta)\d+)?")
# The values of Go's ParseBool; a key without a value is switched on.
_TRUE = frozenset(("", "1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class RuntimeConfigError(DryrackError):
    """A runtime configuration that is not valid."""


@dataclass(frozen=True, slots=True)
class RuntimeConfig:
    """The defaults of the release, and what was switched on or off, by the keys of `parse`."""

    switches: Mapping[str, bool] = field(default_factory=dict)

    def serves(self, kind: Kind) -> bool:
        """Return whether a kind is served in its version; the narrowest switch decides."""
        version = f"{kind.group}/{kind.version}"
        stage = _stage(kind.version)
        for key in (f"{version}/{kind.plural}", version, stage, _ALL):
            if key in self.switches:
                return self.switches[key]
        return stage == _STAGES[""]


EVERYTHING = RuntimeConfig({_ALL: True})


def parse(text: str, release: Release = DEFAULT_RELEASE) -> RuntimeConfig:
    """
    Parse `--runtime-config`: KEY=true or KEY=false, separated by commas.

    A key is GROUP/VERSION, GROUP/VERSION/RESOURCE, or api/all, api/ga, api/beta, api/alpha.
    Raises a `RuntimeConfigError` for an unknown key or value.
    """
    values: dict[str, str] = {}
    for pair in text.split(","):
        if pair:
            key, _, value = pair.partition("=")
            values[key.strip()] = value.strip()
    if values == {_ALL: "false"}:
        raise RuntimeConfigError(
            f"runtime config {text!r}: only {_ALL}=false leaves nothing to serve; "
            "name the versions that stay, as in api/ga=true"
        )
    switches: dict[str, bool] = {}
    for key, value in values.items():
        is_stage = key in (_ALL, *_STAGES.values())
        if not is_stage:
            _check_key(key, release)
        # A real server takes only these two words for keys of many versions.
        is_valid = value in ("true", "false") if is_stage else value in _TRUE | _FALSE
        if not is_valid:
            raise RuntimeConfigError(
                f"runtime config: invalid value {key}={value}; write {key}=true or {key}=false"
            )
        switches[key] = value in _TRUE
    return RuntimeConfig(switches)


def _check_key(key: str, release: Release) -> None:
    group, _, rest = key.partition("/")
    version, _, plural = rest.partition("/")
    if not rest or "/" in plural:
        raise RuntimeConfigError(
            f"runtime config: invalid key {key}; write GROUP/VERSION, GROUP/VERSION/RESOURCE, "
            "api/all, api/ga, api/beta or api/alpha"
        )
    known = {(each.group, each.version): None for each in builtin_kinds(release)}
    versions = [of for name, of in known if name == group]
    if not versions:
        groups = ", ".join(sorted({name for name, _ in known if name}))
        raise RuntimeConfigError(
            f"runtime config: unknown api groups {group}/{version}; there are {groups}"
        )
    if version not in versions:
        served = ", ".join(f"{group}/{each}" for each in versions)
        raise RuntimeConfigError(
            f"runtime config: group version {group}/{version} that has not been registered; "
            f"there is {served}"
        )
    if plural != plural.lower():
        raise RuntimeConfigError(
            f"runtime config: invalid key {key}; a resource is its lowercase plural, "
            f"{plural.lower()!r}"
        )


def _stage(version: str) -> str:
    found = _VERSION.fullmatch(version)
    assert found, f"{version}: built-in versions have the usual form"
    return _STAGES[found[1] or ""]
