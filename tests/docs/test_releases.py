"""The page about releases has every gate, every field, and every difference of behavior."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from tests.docs.releases import behavior_tables, describe_fields

from dryrack.kinds.releases import DEFAULT_RELEASE, GATED_FIELDS, Release, gates_of

PAGE = (Path(__file__).parents[2] / "docs/reference/releases.md").read_text()


@pytest.mark.parametrize("release", Release)
def test_the_page_has_every_gate_of_a_release(release: Release) -> None:
    """With its stage and default."""
    position = list(Release).index(release) + 2
    cells = {
        row.split(" |")[0].strip("| `"): row.replace("| ", "|").split("|")[position].strip()
        for row in PAGE.splitlines()
        if row.startswith("| `")
    }

    for name, gate in gates_of(release).items():
        words = [gate.stage, "on" if gate.is_on else "off", *(["locked"] if gate.is_locked else [])]
        assert cells[name] == ", ".join(words)


def test_the_page_has_every_field() -> None:
    """With its gate."""
    for field in GATED_FIELDS:
        assert any(
            f"| {field.kind} | `{field.path}`" in row and f"`{field.gate}`" in row
            for row in PAGE.splitlines()
        )


@pytest.mark.parametrize("name", behavior_tables())
def test_every_behavior_has_a_description(name: str) -> None:
    """A field without a comment would be a row without words."""
    kind = type(behavior_tables()[name][DEFAULT_RELEASE])

    assert all(describe_fields(kind).get(each.name) for each in fields(kind))
