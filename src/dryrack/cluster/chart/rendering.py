"""Render the chart: the same objects as `helm template` with the same values."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dryrack.cluster.chart.functions import FUNCTIONS, ChartError
from dryrack.cluster.chart.go_template import Block, Scope, Templates
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
    "provisioner": "provisioner/",
    "plugin": "plugin/",
    "dashboard": "dashboard/",
    "simulation": "simulation/",
}

_FIRST_KINDS = ("Namespace", "ServiceAccount", "ConfigMap", "CustomResourceDefinition")


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


@cache
def _schema() -> dict[str, Any]:
    return dict(json.loads((CHART / "values.schema.json").read_text()))


@cache
def _facts() -> dict[str, Any]:
    """Return the content of Chart.yaml, as `.Chart`."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    return {key[0].upper() + key[1:]: value for key, value in chart.items()}


@cache
def _templates() -> Mapping[str, Block]:
    """Return the templates of the chart by name."""
    folder = CHART / "templates"
    files = [folder / "_helpers.tpl", *sorted(folder.rglob("*.yaml"))]
    templates = Templates(FUNCTIONS)
    names = [(each.relative_to(folder).as_posix(), each.read_text()) for each in files]
    return {name: templates.read(name, text) for name, text in names}


def render(release: Release, values: Mapping[str, Any], part: str = "") -> str:
    """
    Return the manifests of all parts or of one, in YAML, without the hooks of Helm.

    Raise `ValuesError` for values that the schema refuses, and `ChartError` for combinations that
    the chart refuses.
    """
    merged = merge_values(default_values(), values)
    if problems := list(schema_problems(merged, _schema(), _schema())):
        raise ValuesError("\n".join(problems))
    _render("validate.yaml", release, merged)
    rendered = {name: _render(name, release, merged) for name in _templates()}
    chosen = [text for name, text in rendered.items() if name.startswith(PARTS.get(part, ""))]
    documents = [doc.strip() for text in chosen for doc in re.split(r"^---$", text, flags=re.M)]
    # Hooks are for Helm: kubectl would run them at once.
    documents = [each for each in documents if "helm.sh/hook:" not in each]
    return "".join(f"---\n{each}\n" for each in sorted(filter(None, documents), key=_order))


def _order(document: str) -> int:
    """Return the place of an object: what others need comes first, as with Helm."""
    kind = re.search(r"^kind: (\w+)$", document, flags=re.M)
    name = kind[1] if kind else ""
    return _FIRST_KINDS.index(name) if name in _FIRST_KINDS else len(_FIRST_KINDS)


def render_file(name: str, release: Release, values: Mapping[str, Any]) -> str:
    """Return the output of one template, without a check of the values."""
    return _render(name, release, merge_values(default_values(), values))


def _render(name: str, release: Release, values: Mapping[str, Any]) -> str:
    names = {"Name": release.name, "Namespace": release.namespace, "Service": release.service}
    dot = {"Values": values, "Release": names, "Chart": _facts(), "Files": _Files()}
    return _templates()[name](Scope(dot, {"$": dot}))
