"""Write the reference page of the values of the Helm chart, from its schema and values.yaml."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.chart.variations import leaves

from dryrack.cluster.chart import default_values

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEAD = """\
# Values of the Helm chart

This page lists the values of the chart in `deploy/chart`.
The guide [Install dryrack on a real cluster](../guides/install-chart.md) shows how to use them.
The chart refuses unknown values and values of another type.
It also refuses combinations that cannot work, with a message that names the values to change.

`helm upgrade --set KEY=VALUE` and `dryrack manifests --set KEY=VALUE` set one value.
"""
_PODS = [
    "labels",
    "podAnnotations",
    "priorityClassName",
    "resources",
    "nodeSelector",
    "tolerations",
    "affinity",
    "extraArgs",
]
_COMMON = "All parts"
_SECTIONS = {
    "publisher": "Publisher",
    "scheduler": "Scheduler",
    "provisioner": "Provisioner",
    "plugin": "Kubelet plugin",
    "dashboard": "Dashboard",
    "simulation": "Simulation",
}


def page() -> str:
    """The page: one table for the chart, and one for each part."""
    sections: dict[str, list[str]] = {"Chart": [], _COMMON: []}
    sections |= {title: [] for title in _SECTIONS.values()}
    for path, node in leaves():
        part = path[0] if path[0] in _SECTIONS else ""
        is_common = part and path[1] in _PODS
        key = f"PART.{path[1]}" if is_common else ".".join(path)
        title = _COMMON if is_common else _SECTIONS.get(part, "Chart")
        default = "" if path == ("global",) else _default(path)
        if is_common and path[1] in ("resources", "tolerations", "priorityClassName"):
            default = "See values.yaml"
        row = f"| `{key}` | {_type(node)} | {default} | {node['description']} |"
        if row not in sections[title]:
            sections[title].append(row)
    texts = [_HEAD]
    for title, rows in sections.items():
        note = "`PART` is `publisher`, `scheduler`, `provisioner`, `plugin`, or `dashboard`.\n\n"
        head = "| Value | Type | Default | Description |\n|---|---|---|---|\n"
        body = "\n".join(rows)
        texts.append(f"## {title}\n\n{note if title == _COMMON else ''}{head}{body}\n")
    return "\n".join(texts)


def _type(node: Mapping[str, Any]) -> str:
    if "enum" in node:
        return ", ".join(f"`{each}`" if each else '`""`' for each in node["enum"])
    return "list" if node["type"] == "array" else str(node["type"])


def _default(path: tuple[str, ...]) -> str:
    value: Any = default_values()
    for key in path:
        value = value[key]
    return f"`{value if value and isinstance(value, str) else json.dumps(value)}`"
