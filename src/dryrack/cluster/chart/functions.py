"""The functions of Helm that the templates of the chart call."""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import yaml

from dryrack.base.errors import DryrackError
from dryrack.cluster.chart.go_template import is_true, to_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dryrack.cluster.chart.go_template import Function


class ChartError(DryrackError):
    """The chart refuses its values."""


def _fail(message: str) -> None:
    raise ChartError(message)


def _from_yaml(text: str) -> Any:
    return yaml.load(text, Loader=yaml.CSafeLoader)


def _to_yaml(value: Any) -> str:
    text: str = yaml.dump(value, Dumper=yaml.CSafeDumper, width=2**31 - 1, allow_unicode=True)
    return text.removesuffix("...\n").rstrip("\n")


def _to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _indent(count: int, text: str) -> str:
    return "\n".join(" " * count + line for line in text.split("\n"))


def _printf(form: str, *values: Any) -> str:
    return form % tuple(map(to_text, values))


def _merge(target: dict[str, Any], *others: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the target with what it lacks; values of the target take precedence."""
    for other in others:
        for key, value in (other or {}).items():
            if isinstance(value, dict) and isinstance(target.get(key), dict):
                _merge(target[key], value)
            elif not is_true(target.get(key)):
                target[key] = value
    return target


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[0] if match else ""


FUNCTIONS: Mapping[str, Function] = {
    "append": lambda items, item: [*(items or ()), item],
    "concat": lambda *lists: [each for items in lists for each in items or ()],
    "contains": lambda part, text: part in text,
    "default": lambda usual, value=None: value if is_true(value) else usual,
    "dict": lambda *pairs: dict(zip(pairs[::2], pairs[1::2], strict=True)),
    "eq": lambda left, right: left == right,
    "fail": _fail,
    "fromJsonArray": json.loads,
    "fromYaml": _from_yaml,
    "get": lambda mapping, key: mapping.get(key, ""),
    "gt": lambda left, right: left > right,
    "has": lambda item, items: item in items,
    "hasKey": lambda mapping, key: key in mapping,
    "hasPrefix": lambda prefix, text: text.startswith(prefix),
    "index": lambda mapping, key: mapping[key],
    "int": int,
    "join": lambda separator, items: separator.join(map(to_text, items)),
    "keys": list,
    "len": len,
    "list": lambda *items: list(items),
    "lower": str.lower,
    "merge": _merge,
    "ne": lambda left, right: left != right,
    "nindent": lambda count, text: "\n" + _indent(count, text),
    "not": lambda value: not is_true(value),
    "printf": _printf,
    "quote": lambda value: json.dumps(to_text(value), ensure_ascii=False),
    "regexFind": _find,
    "replace": lambda old, new, text: text.replace(old, new),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "sortAlpha": lambda items: sorted(map(to_text, items)),
    "splitList": lambda separator, text: text.split(separator),
    "toJson": _to_json,
    "toYaml": _to_yaml,
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "trunc": lambda length, text: text[:length],
    "uniq": lambda items: list(dict.fromkeys(items)),
}
