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
from dryrack.kinds.registry import BUILTINS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dryrack.kinds.registry import Kind

_ALL = "api/all"
_STAGES = {"": "api/ga", "beta": "api/beta", "alpha": "api/alpha"}
_VERSION = re.compile(r"v\d+(?:(alpha|beta)\d+)?")
# What Go's ParseBool takes; a key without a value is switched on.
_TRUE = frozenset(("", "1", "t", "T", "true", "TRUE", "True"))
_FALSE = frozenset(("0", "f", "F", "false", "FALSE", "False"))


class RuntimeConfigError(DryrackError):
    """A runtime configuration that no API server starts with."""


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


def parse(text: str) -> RuntimeConfig:
    """
    Parse `--runtime-config`: KEY=true or KEY=false, separated by commas.

    A key is GROUP/VERSION, GROUP/VERSION/RESOURCE, or api/all, api/ga, api/beta, api/alpha.
    Raises `RuntimeConfigError` for what is not known.
    """
    given = dict(_pairs(text))
    if given == {_ALL: "false"}:
        raise RuntimeConfigError(
            f"runtime config {text!r}: only {_ALL}=false leaves nothing to serve; "
            "name the versions that stay, as in api/ga=true"
        )
    return RuntimeConfig({key: _switch(key, value) for key, value in given.items()})


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for pair in text.split(","):
        if pair:
            key, _, value = pair.partition("=")
            yield key.strip(), value.strip()


def _switch(key: str, value: str) -> bool:
    stages = (_ALL, *_STAGES.values())
    if key not in stages:
        _check_key(key)
    is_on = value in _TRUE
    is_off = value in _FALSE
    # Of the keys for many versions a real server takes these two words alone.
    if not (value in ("true", "false") if key in stages else is_on or is_off):
        raise RuntimeConfigError(
            f"runtime config: invalid value {key}={value}; write {key}=true or {key}=false"
        )
    return is_on


def _check_key(key: str) -> None:
    group, _, rest = key.partition("/")
    version, _, plural = rest.partition("/")
    if not rest or "/" in plural:
        raise RuntimeConfigError(
            f"runtime config: invalid key {key}; write GROUP/VERSION, GROUP/VERSION/RESOURCE, "
            "api/all, api/ga, api/beta or api/alpha"
        )
    known = {(each.group, each.version): None for each in BUILTINS}
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
