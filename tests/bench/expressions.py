"""Selectors to measure: usual ones, and ones that an attacker might write."""

from __future__ import annotations

from typing import Any

GPU = "gpu.example.com"
ATTRIBUTES = f'device.attributes["{GPU}"]'

DEVICE: dict[str, Any] = {
    "driver": GPU,
    "attributes": {
        "model": {"string": "h100"},
        "index": {"int": 3},
        "ecc": {"bool": True},
        "firmware": {"version": "1.10.2"},
        "topology.example.com/root": {"string": "pci0000:17"},
    },
    "capacity": {"memory": {"value": "80Gi"}, "lanes": {"value": "16"}},
    "consumableCapacity": True,
}

EXPRESSIONS: dict[str, dict[str, Any]] = {
    name: {**DEVICE, "expression": expression}
    for name, expression in {
        "driver": f'device.driver == "{GPU}"',
        "attribute": f'{ATTRIBUTES}.model == "h100"',
        "driver, model and memory": (
            f'device.driver == "{GPU}" && {ATTRIBUTES}.model == "h100" && '
            f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
        ),
        "version": f'{ATTRIBUTES}.firmware.isGreaterThan(semver("1.9.0"))',
        "one of a list": f'{ATTRIBUTES}.model in ["h200", "h100", "a100"]',
        "pattern": f'{ATTRIBUTES}.model.matches("^h[0-9]+$")',
        "optional": f"{ATTRIBUTES}.?numa.orValue(0) == 0",
        "bound": f'cel.bind(a, {ATTRIBUTES}, a.ecc && a.index < 4 && a.model != "l4")',
        "loop": f"{ATTRIBUTES}.all(name, name.size() < 10)",
        "missing, but guarded": f'"numa" in {ATTRIBUTES} && {ATTRIBUTES}.numa == 1',
    }.items()
}

_TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
_LINKS = "".join(f"cel.bind(v{n + 1}, dyn([v{n}, v{n}]), " for n in range(18))
_DOUBLED = "".join(f"cel.bind(v{n + 1}, v{n} + v{n} + v{n} + v{n}, " for n in range(8))

HOSTILE: dict[str, dict[str, Any]] = {
    name: {**DEVICE, "expression": expression}
    for name, expression in {
        "loops in loops": "".join(f"{_TEN}.all(v{n}, " for n in range(6))
        + "v0 + v5 >= 0"
        + ")" * 6,
        "text that grows": f'cel.bind(v0, "aaaaaaaa", {_DOUBLED}v8.size() > 0' + ")" * 9,
        "nearly 10 KiB": " || ".join(['device.driver == "x"'] * 420),
        "lists in lists": "[" * 120 + "]" * 120 + " == []",
        "not not not": "!" * 3000 + "true",
        "lists that hold each other twice": f"cel.bind(v0, dyn([1]), {_LINKS}v18 == v18" + ")" * 19,
        "bound in a loop": "lists.range(300).all(x, lists.range(300).all(y, "
        "cel.bind(z, x + y, z >= x && z >= y)))",
        "texts in a loop": "lists.range(600).all(w, lists.range(600).all(x, "
        "string(x * 600 + w) + string(w) != ''))",
        "failures in a loop": "lists.range(600).all(w, lists.range(600).all(x, 1 / (x - x) == 1))",
        "sets of a thousand": "sets.equivalent(lists.range(700), lists.range(700))",
        "many numbers": "[" + ",".join(["1"] * 5000) + "].size() > 0",
        "open at the end": " || ".join(['device.driver == "x"'] * 420) + " || (",
        "only parentheses": "(" * 10_240,
        "pattern that backtracks": '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaab".matches("(a*)*(a*)*c")',
    }.items()
}
