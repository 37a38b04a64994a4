"""
Lint answers with findings for any file.

The rules' examples are broken at random: a value is replaced by one of another kind, a field
is dropped or renamed. No rule may trip over what it did not expect.
"""

from __future__ import annotations

import copy
import json
import random
import time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.linter.examples import CLASS, SLICE, join
from tests.linter.rule_examples import EXAMPLES

from dryrack.linter import lint

STRANGE: tuple[Any, ...] = (
    None,
    "",
    "x",
    "a/b/c",
    "80Gi",
    "device.",
    0,
    -1,
    2**70,
    1.5,
    True,
    [],
    [None],
    ["x"],
    {},
    {"x": None},
    {"": {}},
    # Long ones, and digits that are none for Kubernetes.
    "0" * 20_000 + "!",
    "9" * 5_000,
    "9" * 5_000 + "%",
    "²",
    "\n" * 20_000,
    "a," * 10_000,
    "(" * 20_000,
    "-a." * 10_000,
)
DOCUMENTS = [
    list(yaml.safe_load_all(example.bad)) for code, example in EXAMPLES.items() if code != "DR001"
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a document with each of its keys."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        each = pending.pop()
        keys = list(each) if isinstance(each, dict) else range(len(each))
        for key in keys:
            found.append((each, key))
            if isinstance(each[key], dict | list):
                pending.append(each[key])
    return found


def broken(seed: int) -> str:
    """An example with one to four places changed."""
    chance = random.Random(seed)
    documents = copy.deepcopy(chance.choice(DOCUMENTS))
    for _ in range(chance.randint(1, 4)):
        holder, key = chance.choice(places(documents))
        match chance.randint(0, 3):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[f"{key}s"] = holder.pop(key)
            case _:
                holder[key] = copy.deepcopy(chance.choice(STRANGE))
    return yaml.safe_dump_all(documents, sort_keys=False)


HOSTILE = {
    "deep": "(" * 4000 + "true" + ")" * 4000,
    "long": 'device.driver == "' + "x" * 200_000 + '"',
    "chain": " && ".join(["device.driver == 'a'"] * 400),
    "costly": 'device.attributes["a"].all(a, ' * 4 + "true" + ")" * 4,
    "regular": 'device.driver.matches("(a+)+$(a+)+$(a+)+$")',
    "selects": "device" + ".a" * 3000,
}


@pytest.mark.parametrize("expression", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_selector_is_judged_and_forgotten(expression: str) -> None:
    """An expression that the API refuses is reported and not evaluated."""
    text = join(SLICE, CLASS.replace('device.driver == "gpu.example.com"', json.dumps(expression)))
    found = lint([("hostile.yaml", text.encode())])

    assert {finding.code for finding in found} <= {"DR106", "DR113", "DR114", "DR401"}
    assert found


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_no_file_makes_lint_stumble(seed: int) -> None:
    """A broken file yields findings, each at a line of the file, and never an exception."""
    text = broken(seed)
    lines = len(text.splitlines())

    for finding in lint([("broken.yaml", text.encode())]):
        assert 1 <= finding.line <= lines + 1
        assert finding.what
        assert finding.fix


OF_KIND = "apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: a\n"
POD = OF_KIND.format(version="v1", kind="Pod") + "spec:\n  containers:\n  - name: c\n    image: i\n"
CLAIM = OF_KIND.format(version="resource.k8s.io/v1", kind="ResourceClaim") + "spec:\n  devices:\n"
# The text before, and lists of what is there once for each number, each with what is before it.
MANY = {
    "repeated keys": (OF_KIND.format(version="v1", kind="ConfigMap"), [("data:\n", "  k: v{n}\n")]),
    "owners": (
        OF_KIND.format(version="v1", kind="Node"),
        [
            (
                "  ownerReferences:\n",
                "  - {{apiVersion: v1, kind: Pod, name: a, uid: u{n}, controller: true}}\n",
            )
        ],
    ),
    "claims of a pod": (
        POD,
        [
            ("    resources:\n      claims:\n", "      - {{name: r{n}}}\n"),
            ("  resourceClaims:\n", "  - {{name: r{n}, resourceClaimName: x{n}}}\n"),
        ],
    ),
    "unknown claims of a pod": (
        POD,
        [
            ("    resources:\n      claims:\n", "      - {{name: s{n}}}\n"),
            ("  resourceClaims:\n", "  - {{name: r{n}, resourceClaimName: x{n}}}\n"),
        ],
    ),
    "requests": (
        CLAIM,
        [
            ("    requests:\n", "    - {{name: d, exactly: {{deviceClassName: x}}}}\n"),
            ("    constraints:\n", "    - {{requests: [d, e], matchAttribute: a/b}}\n"),
        ],
    ),
    "documents that are no objects": ("", [("", "---\nx{n}\n")]),
}


def seconds_for(name: str, count: int) -> float:
    """Return the processor's time for a file with so many items."""
    text, lists = MANY[name]
    for before, item in lists:
        text += before + "".join(item.format(n=number) for number in range(count))
    began = time.thread_time()
    assert lint([("many.yaml", text.encode())])
    return time.thread_time() - began


@pytest.mark.parametrize("name", MANY)
def test_many_items_take_time_in_proportion(name: str) -> None:
    """Four times as many take some four times as long, and not sixteen times."""
    few = seconds_for(name, 1_000)
    many = seconds_for(name, 4_000)

    assert many < 9 * few + 0.5
