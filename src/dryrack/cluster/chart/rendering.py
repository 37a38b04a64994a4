"""Render the chart: the same objects as `helm template` with the same values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dryrack.cluster.chart.functions import FUNCTIONS, ChartError
from dryrack.cluster.chart.go_template import Scope, Templates
from dryrack.cluster.chart.values import ValuesError, merge_values, schema_problems

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CHART", "PARTS", "ChartError", "Release", "default_values", "render", "render_file"]

# The wheel contains the chart; an editable install uses the chart of the clone.
_PACKAGE = Path(__file__).parents[2]
_PACKAGED = _PACKAGE / "chart"
CHART = _PACKAGED if _PACKAGED.is_dir() else _PACKAGE.parents[1] / "deploy" / "chart"
# The name of a part, and the beginning of the names of its templates.
PARTS: Mapping[str, str] = {
    "crds": "crds.",
    "classes": "classes.",
    "publisher": "publisher/",
    "scheduler": "scheduler/",
    "plugin": "plugin/",
    "dashboard": "dashboard/",
}


@dataclass(frozen=True, slots=True)
class Release:
    """The release that the objects belong to; without a service they get no labels."""

    name: str
    namespace: str
    service: str = "Helm"


class _Files:
    """The files of the chart, as `.Files`."""

    Get = staticmethod(lambda name: (CHART / name).read_text())


@cache
def default_values() -> dict[str, Any]:
    """Return values.yaml; do not change it."""
    return dict(yaml.safe_load((CHART / "values.yaml").read_text()))


def render(release: Release, values: Mapping[str, Any], part: str = "") -> str:
    """
    Return the manifests of all parts or of one, in YAML.

    Raise `ValuesError` for values that the schema refuses, and `ChartError` for combinations that
    the chart refuses.
    """
    merged = merge_values(default_values(), values)
    schema = json.loads((CHART / "values.schema.json").read_text())
    if problems := list(schema_problems(merged, schema, schema)):
        raise ValuesError("\n".join(problems))
    templates = CHART / "templates"
    names = sorted(each.relative_to(templates).as_posix() for each in templates.rglob("*.yaml"))
    rendered = {name: _render(name, release, merged) for name in ("validate.yaml", *names)}
    chosen = [text for name, text in rendered.items() if name.startswith(PARTS.get(part, ""))]
    return "".join(f"---\n{text.strip().removeprefix('---').strip()}\n" for text in chosen if text.strip())


def render_file(name: str, release: Release, values: Mapping[str, Any]) -> str:
    """Return the output of one template, without a check of the values."""
    return _render(name, release, merge_values(default_values(), values))


def _render(name: str, release: Release, values: Mapping[str, Any]) -> str:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    templates = _templates()
    block = templates.read(name, (CHART / "templates" / name).read_text())
    dot = {
        "Values": values,
        "Release": {
            "Name": release.name,
            "Namespace": release.namespace,
            "Service": release.service,
        },
        "Chart": {key[0].upper() + key[1:]: value for key, value in chart.items()},
        "Files": _Files(),
        "Template": {"Name": name},
    }
    return block(Scope(dot, {"$": dot}))


@cache
def _templates() -> Templates:
    templates = Templates(FUNCTIONS)
    helpers = "_helpers.tpl"
    templates.read(helpers, (CHART / "templates" / helpers).read_text())
    return templates
