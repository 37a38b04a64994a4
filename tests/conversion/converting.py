"""Convert texts in tests, and write manifests in random layouts."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st

from dryrack.conversion import Workspace, convert_manifests, convert_versions
from dryrack.kinds.documents import read

Step = Callable[[Workspace], None]

TO_V1: Step = partial(convert_versions, target="v1")


def convert(text: str, *steps: Step, name: str = "a.yaml") -> str:
    """Return the converted text; fail if it cannot be converted."""
    result = convert_manifests([(name, text.encode())], steps or (TO_V1,))
    assert [str(each) for each in result.problems] == []
    [file] = result.files
    return file.after


def notes(text: str, *steps: Step, name: str = "a.yaml") -> list[str]:
    """Return what the conversion reports."""
    result = convert_manifests([(name, text.encode())], steps or (TO_V1,))
    return [str(each) for each in (*result.notes, *result.problems)]


def objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of a text, as dryrack reads them."""
    reading = read(text, "a.yaml")
    assert reading.problems == ()
    return [each.raw for each in reading.documents]


@st.composite
def layouts(draw: st.DrawFn, value: Any, indent: int = 0) -> str:
    """Draw a text in block style for an object or a list, with comments and blank lines."""
    step = draw(st.sampled_from((2, 2, 4)))
    space = " " * indent
    lines: list[str] = []
    for key, each in value.items() if isinstance(value, dict) else ((None, each) for each in value):
        lines += draw(st.sampled_from(([], [], [], [f"{space}# above"], ["", f"{space}# above"])))
        tail = draw(st.sampled_from(("", "", "", "  # beside")))
        head = f"{space}-" if key is None else f"{space}{key}:"
        if not isinstance(each, dict | list) or not each or not draw(st.integers(0, 4)):
            # JSON is YAML in flow style.
            lines.append(f"{head} {json.dumps(each)}{tail}")
        elif key is None:
            text = draw(layouts(each, indent + 2)).lstrip("\n")
            # The first entry follows the dash; a comment cannot.
            while text.lstrip().startswith("#"):
                text = text.partition("\n")[2]
            lines.append(f"{head} {text.lstrip()}")
        else:
            inner = draw(st.sampled_from((0, step))) if isinstance(each, list) else step
            lines.append(f"{head}{tail}\n{draw(layouts(each, indent + inner))}")
    return "\n".join(lines)
