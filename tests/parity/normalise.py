"""
Answers without what differs between two runs of the same server.

Identities keep their identity: the first uid that a script sees is `<uid 1>` wherever it
occurs again, and the same holds for revisions, generated names, and the addresses and ports of
services. Only times, ages, the revision of a list, which moves with the whole cluster, and
descriptions of columns are blanked out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

_UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\b")
# Of what was just made, and of times in scripts, which are other numbers of days ago each day.
_AGE = re.compile(r"(?<![\w.-])(?:(?:\d+m)?\d+s\b(?: ago)?|(?:\d+y)?\d+d\b)")
_GAPS = re.compile(r" {2,}")
_ADDRESS = re.compile(r"(?:https://)?\b(?:\d{1,3}\.){3}\d{1,3}:\d{4,5}\b")
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----\n?")
# The volume of a service account's token has a random name that occurs nowhere else.
_TOKEN_VOLUME = re.compile(r"\bkube-api-access-[a-z0-9]{5}\b")
# Revisions inside sentences.
_SPOKEN_REVISION = re.compile(
    r"(?<=precondition \()\d+|(?<=in record \()\d+|(?<=current: )\d+|"
    r'(?<=resourceVersion\\":\\")\d+|(?<=Resource Version:)\s+\d+'
)
_TOO_OLD = re.compile(r"(?<=too old resource version: )\d+ \(\d+\)")
_SCRATCH = re.compile(r"(?:/[\w.-]+)+/(LIVE|MERGED)-\d+")
_LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}")
_BLANKS = (
    (_CERTIFICATE, "<certificate>"),
    (_ADDRESS, "<server>"),
    (_TOKEN_VOLUME, "kube-api-access-<random>"),
    (_SPOKEN_REVISION, "<revision>"),
    (_TOO_OLD, "<old revision> (<revision>)"),
    (_SCRATCH, r"<\1>"),
    (_LOCAL_TIME, "<time>"),
    (_TIME, "<time>"),
)
# What a server takes from a range for a service, at random or in order.
_ADDRESSES = ("clusterIP", "clusterIPs")
_PORTS = ("nodePort", "healthCheckNodePort")
_SERVICE = re.compile(r"^10\.200\.")
_SHORT_AGE = re.compile(r"^(?:\d+m)?\d+s$")


def _steady(key: str, items: list[Any]) -> list[Any]:
    """Owners of fields in an order that depends neither on time nor on Go's maps."""
    if key == "managedFields":
        return sorted(items, key=_owner)
    if key == "causes" and all(_is_conflict(item) for item in items):
        # A conflict names its owner; those of one owner are in order already.
        return sorted(items, key=lambda cause: str(cause["message"]))
    return items


def _is_conflict(item: Any) -> bool:
    return isinstance(item, dict) and item.get("reason") == "FieldManagerConflict"


def _owner(entry: dict[str, Any]) -> tuple[str, ...]:
    parts = ("operation", "manager", "apiVersion", "subresource")
    return tuple(entry.get(name, "") for name in parts)


@dataclass(slots=True)
class Normaliser:
    """Remembers what one script has seen."""

    _tokens: dict[tuple[str, str], str] = field(default_factory=dict)
    _generated: dict[str, str] = field(default_factory=dict)

    def body(self, value: Any) -> Any:
        self._note_generated(value)
        return self._value("", value)

    def text(self, value: str) -> str:
        """Return the output of kubectl with equal gaps: columns are as wide as their content."""
        aged = _AGE.sub("<age>", self._string(value))
        return "\n".join(_GAPS.sub("  ", line).rstrip() for line in aged.splitlines())

    def _value(self, key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self._value(key, inner) for inner in _steady(key, value)]
        if isinstance(value, str):
            return self._keyed(key, value)
        if key in _PORTS and value:
            # A number like all ports: the how manieth of those that the script has seen.
            return int(self._token("port", str(value)).strip("<port >"))
        return value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        is_list = "items" in value or "rows" in value
        if _is_bare_table(value):
            # Its revision is all that is left of an object that a controller may write meanwhile.
            value = value | {"metadata": {"resourceVersion": "<list revision>"}}
        made = {self._string(key): self._value(key, inner) for key, inner in value.items()}
        if is_list and made.get("metadata", {}).get("resourceVersion"):
            made["metadata"]["resourceVersion"] = "<list revision>"
        for column in made.get("columnDefinitions") or ():
            # Prose that no program reads.
            column["description"] = "<description>"
        if made.get("type") == "BOOKMARK":
            # A bookmark contains the revision of the whole cluster, not that of one object.
            made["object"]["metadata"]["resourceVersion"] = "<list revision>"
        return made

    def _keyed(self, key: str, value: str) -> str:
        if key == "resourceVersion" and value.isdigit() and value != "0":
            return self._token("revision", value)
        if key in _ADDRESSES and _SERVICE.match(value):
            return self._token("address", value)
        if key == "continue" and value:
            return "<continue>"
        if key == "cells" and _SHORT_AGE.match(value):
            return "<age>"
        return self._string(value)

    def _string(self, value: str) -> str:
        for name, token in self._generated.items():
            value = value.replace(name, token)
        value = _UUID.sub(lambda found: self._token("uid", found[0]), value)
        for pattern, blank in _BLANKS:
            value = pattern.sub(blank, value)
        return value

    def _note_generated(self, value: Any) -> None:
        if isinstance(value, list):
            for inner in value:
                self._note_generated(inner)
        elif isinstance(value, dict):
            prefix = value.get("generateName")
            name = value.get("name")
            if isinstance(prefix, str) and isinstance(name, str) and name.startswith(prefix):
                number = len(self._generated) + 1
                self._generated.setdefault(name, f"{prefix}<generated {number}>")
            for inner in value.values():
                self._note_generated(inner)

    def _token(self, kind: str, value: str) -> str:
        number = sum(1 for known, _ in self._tokens if known == kind) + 1
        return self._tokens.setdefault((kind, value), f"<{kind} {number}>")


def _is_bare_table(value: dict[str, Any]) -> bool:
    """Return whether it is a table whose rows have no objects."""
    rows = value.get("rows")
    return (
        isinstance(rows, list)
        and bool(value.get("metadata", {}).get("resourceVersion"))
        and not any(row.get("object") for row in rows)
    )
