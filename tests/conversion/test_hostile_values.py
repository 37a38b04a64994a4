"""No value of a wrong type ends a conversion with an exception."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.conversion.converting import Step, objects
from tests.conversion.test_api_versions import CLASSIC
from tests.conversion.test_device_plugins import POD
from tests.conversion.test_gangs import COSCHEDULING, FORMATS, LABELS
from tests.conversion.test_publishers import FORMATS as PUBLISHERS
from tests.conversion.test_publishers import NODE_DEVICES, SEEDS, to_publisher

from dryrack.conversion import (
    add_extended_resources,
    convert_gangs,
    convert_manifests,
    convert_to_claims,
    convert_versions,
    note_scheduler_names,
)

STEPS: list[Step] = [
    *(partial(convert_versions, target=each) for each in ("v1", "v1beta2", "v1beta1")),
    convert_to_claims,
    add_extended_resources,
    *(partial(convert_gangs, target=each, release="1.37") for each in FORMATS),
    *(partial(note_scheduler_names, target=each) for each in FORMATS),
    *(to_publisher(each) for each in (*PUBLISHERS, "nodedevices")),
]
SLICE = """\
apiVersion: resource.k8s.io/v1alpha3
kind: ResourceSlice
metadata: {name: s}
spec: {driver: d, devices: [{name: a, basic: {capacity: {memory: 80Gi}}}]}
"""
TEXTS = {
    "classic": CLASSIC,
    "labels": LABELS,
    "coscheduling": COSCHEDULING,
    "pod": POD.format(resource="nvidia.com/gpu", count=1),
    "slice": SLICE,
    "kinds": NODE_DEVICES,
    "config": (SEEDS / "config-count.yaml").read_text(),
    "overlay": (SEEDS / "overlay-h100.yaml").read_text(),
}
_wrong: st.SearchStrategy[Any] = st.sampled_from(
    (None, 0, True, "", "x", [], {}, [None], [{}], {"a": 1}, "a\nb")
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict | list):
        inner = list(value.items() if isinstance(value, dict) else enumerate(value))
    return [path, *(each for key, one in inner for each in _paths(one, (*path, key)))]


def _replace(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    if isinstance(value, list):
        return [
            _replace(one, path[1:], new) if at == path[0] else one for at, one in enumerate(value)
        ]
    return {**value, path[0]: _replace(value[path[0]], path[1:], new)}


@pytest.mark.parametrize("name", TEXTS)
@given(st.data())
def test_a_wrong_value_is_a_problem_or_stays(name: str, data: st.DataObject) -> None:
    """Whatever is converted can be read again."""
    documents = objects(TEXTS[name])
    path = data.draw(st.sampled_from(_paths(documents)[1:]))
    changed = _replace(documents, path, data.draw(_wrong))
    step = data.draw(st.sampled_from(STEPS))
    text = yaml.safe_dump_all(changed, sort_keys=False)
    result = convert_manifests([("a.yaml", text.encode())], [step])

    for file in result.files:
        assert objects(file.after or "a: 1") == list(file.objects or [{"a": 1}])
