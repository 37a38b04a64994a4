"""The guide's own scenario holds."""

from __future__ import annotations

import re
from pathlib import Path

from dryrack.scenario import EmbeddedRun, read_scenario, run_in_virtual_time

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "scenarios.md"


def test_the_scenario_of_the_guide_holds(tmp_path: Path) -> None:
    """As it stands there: a gang waits for a third node, and runs when it comes."""
    block = re.compile(r"^```yaml title=\"gang.yaml\"\n(.*?)^```", re.DOTALL | re.MULTILINE)
    [text] = block.findall(GUIDE.read_text())
    loaded = read_scenario(text, "gang.yaml", name="gang", folder=tmp_path)
    outcome = run_in_virtual_time(loaded, EmbeddedRun())

    assert outcome.failures == ()
    assert outcome.steps[0].began == 30
