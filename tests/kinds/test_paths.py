"""Values of raw objects, by their path."""

from typing import Any

import pytest

from dryrack.kinds.paths import get, metadata_of, spec_of, status_of

OBJECT: dict[str, Any] = {
    "metadata": {"name": "a", "labels": None},
    "spec": {"replicas": 0, "template": {"spec": {"nodeName": ""}}, "list": [{"a": 1}]},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "a"),
        ("spec.replicas", 0),
        ("spec.template.spec.nodeName", ""),
        ("metadata.labels", "default"),
        ("metadata.labels.app", "default"),
        ("status.phase", "default"),
        ("spec.replicas.value", "default"),
        ("spec.list.a", "default"),
    ],
)
def test_a_path_leads_to_its_value_or_the_default(path: str, expected: object) -> None:
    """Only a missing or null part gives the default; empty values and zero stay."""
    assert get(OBJECT, path, "default") == expected


def test_parts_of_an_object_are_never_none() -> None:
    """The parts of an object are mappings, also if they are null or missing."""
    obj: dict[str, Any] = {"metadata": {"name": "a"}, "spec": None}

    assert (metadata_of(obj), spec_of(obj), status_of(obj)) == ({"name": "a"}, {}, {})
