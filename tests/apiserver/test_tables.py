"""Rows against those that a real server was recorded to print."""

from __future__ import annotations

from typing import Any

import pytest
from tests.parity.recording import read
from tests.parity.script import SCRIPTS, Script, Step, load

from dryrack.apiserver.custom.columns import shape_of_columns
from dryrack.apiserver.tables.catalog import SHAPES, shape_of
from dryrack.base.ages import human

_SCRIPT = load(SCRIPTS / "tables.yaml")
_COLUMN_KEYS = ("name", "type", "format", "priority")
# What these rows show is filled in by the server when the object is written.
_DEFAULTED = {"a secret", "a priority class", "a pod that waits for a gate"}


def _resource(step: Step) -> str:
    """`plural.group` of a request."""
    _method, _, path = step.request.partition(" ")
    parts = path.partition("?")[0].strip("/").split("/")
    group = "" if parts[0] == "api" else parts[1]
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    plural = parts[2] if parts[0] == "namespaces" and len(parts) > 2 else parts[0]
    return f"{plural}.{group}" if group else plural


def _answers() -> dict[str, Any]:
    return {answer["step"]: answer for answer in read(_SCRIPT)}


def _written(script: Script) -> list[tuple[Step, dict[str, Any]]]:
    """Each object as it stands after the step that wrote it."""
    objects: dict[tuple[str, str], dict[str, Any]] = {}
    written = []
    for step in script.steps:
        if isinstance(step.body, dict) and "metadata" in step.body:
            key = (_resource(step), step.body["metadata"]["name"])
            made = {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}
            old = objects.get(key, made)
            # The status of a node may be written together with its labels.
            kept = made if key[0] == "nodes" else old
            meta = {**kept["metadata"], **step.body["metadata"]}
            objects[key] = {**old, **step.body, "metadata": meta}
            if step.body.get("spec") and "pods" in key and "status" not in step.body:
                objects[key]["status"] = {"phase": "Pending"}
            written.append((step, objects[key]))
    return written


_ROWS = [
    (step, obj)
    for step, obj in _written(_SCRIPT)
    if _answers()[step.name].get("body", {}).get("kind") == "Table" and step.name not in _DEFAULTED
]


def _shape_of_step(step: Step) -> Any:
    if "shelves" in step.request:
        definition = next(s for s in _SCRIPT.steps if s.name == "a definition").body
        return shape_of_columns(definition["spec"]["versions"][0]["additionalPrinterColumns"])
    return shape_of(_resource(step))


def _shown(cell: Any) -> Any:
    """A cell as the recordings keep it."""
    if cell == "2026-01-01T00:00:00Z":
        return "<time>"
    return "<age>" if cell == "7s" else cell


@pytest.mark.parametrize(("step", "obj"), _ROWS, ids=[step.name for step, _ in _ROWS])
def test_rows_are_those_of_a_real_server(step: Step, obj: dict[str, Any]) -> None:
    """Cells, columns and conditions of a row equal the recorded ones."""
    body = _answers()[step.name]["body"]
    shape = _shape_of_step(step)
    now = 1767225600.0 + 7

    assert [_shown(cell) for cell in shape.cells(obj, now)] == body["rows"][0]["cells"]
    assert [tuple(column.as_json()[key] for key in _COLUMN_KEYS) for column in shape.columns] == [
        tuple(column[key] for key in _COLUMN_KEYS) for column in body["columnDefinitions"]
    ]
    conditions = shape.conditions(obj) if shape.conditions else []
    assert conditions == body["rows"][0].get("conditions", [])


def test_every_shape_has_a_cell_for_each_column() -> None:
    """An object with nothing but a name has a row as long as any other."""
    obj = {"metadata": {"name": "x"}}

    for resource, shape in sorted(SHAPES.items()):
        assert len(shape.cells(obj, 0.0)) == len(shape.columns), resource


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (599, "9m59s"),
        (600, "10m"),
        (3 * 3600 - 1, "179m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 60, "3h1m"),
        (8 * 3600, "8h"),
        (48 * 3600 - 1, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (2 * 365 * 86400 - 1, "729d"),
        (2 * 365 * 86400, "2y"),
        (2 * 365 * 86400 + 86400, "2y1d"),
        (8 * 365 * 86400, "8y"),
    ],
)
def test_ages_have_two_or_three_figures(seconds: int, text: str) -> None:
    """Ages have the units of the real server."""
    assert human(seconds) == text
