"""The page about device configuration is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.hardware.dialects.examples import document

from dryrack.hardware.config_formats import read_config, read_dra_config, read_overlay
from dryrack.hardware.config_formats.device_syntax import COUNT_MAX
from dryrack.hardware.config_formats.document_readers import BYTES_MAX
from dryrack.hardware.config_formats.fields import ITEMS_MAX
from dryrack.hardware.config_formats.parsed_slices import DEVICES_MAX

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "device-configuration.md"
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_every_example_is_read(text: str) -> None:
    """Each example gives devices, without a problem."""
    if "kind: NodeOverlay" in text:
        reading = read_overlay(document(text))
    elif "kind: DRAConfig" in text:
        reading = read_dra_config(document(text))
    else:
        reading = read_config(text, file="config.yaml")

    assert not reading.problems
    assert reading.assignments or reading.overlay


def test_the_page_knows_the_limits() -> None:
    """The numbers of the page are those of the reader."""
    for limit in (BYTES_MAX, COUNT_MAX, DEVICES_MAX, ITEMS_MAX):
        assert re.search(rf"\b{limit}\b", PAGE.read_text())
