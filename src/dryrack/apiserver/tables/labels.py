"""Labels and label selectors as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.kinds.paths import get

if TYPE_CHECKING:
    from collections.abc import Mapping

NONE = "<none>"


def labels_text(labels: Mapping[str, str] | None) -> str:
    pairs = sorted((labels or {}).items())
    return ",".join(f"{key}={value}" for key, value in pairs) or NONE


def selector_text(selector: Mapping[str, Any] | None) -> str:
    """A label selector in the syntax of a query; nothing at all is empty."""
    found = selector or {}
    terms = [(key, f"{key}={value}") for key, value in get(found, "matchLabels", {}).items()]
    terms += [(entry["key"], _term(entry)) for entry in get(found, "matchExpressions", ())]
    return ",".join(text for _, text in sorted(terms, key=lambda term: term[0]))


def _term(entry: Mapping[str, Any]) -> str:
    key = entry["key"]
    values = ",".join(sorted(get(entry, "values", ())))
    match entry.get("operator"):
        case "In":
            return f"{key} in ({values})"
        case "NotIn":
            return f"{key} notin ({values})"
        case "DoesNotExist":
            return f"!{key}"
        case _:
            return str(key)
