"""The example on the page about DRA is complete and correct."""

from __future__ import annotations

import re
from pathlib import Path

import dryrack

PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "dra.md"


def test_the_example_is_allocated_as_the_page_describes(tmp_path: Path) -> None:
    """Lint finds nothing in it, the Pod gets the device, and each number has its explanation."""
    [manifest] = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    file = tmp_path / "dra.yaml"
    file.write_text(manifest)
    numbers = re.findall(r"# \((\d)\)", manifest)
    answer = dryrack.allocate(dryrack.load(file))

    assert dryrack.lint(file) == ()
    assert [(each.claim, each.node) for each in answer.given] == [("default/trainer-gpu", "node-1")]
    assert numbers == re.findall(r"^(\d)\. ", PAGE.read_text(), re.MULTILINE)
