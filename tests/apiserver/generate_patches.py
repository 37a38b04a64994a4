"""Random JSON patches and JSON merge patches that mostly hit something."""

from __future__ import annotations

from random import Random
from typing import Any

_KEYS = ("a", "b", "c~d", "e/f", "0", "-")
_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")


def random_case(seed: int) -> dict[str, Any]:
    """An object, a patch, and whether it is a merge patch."""
    random = Random(seed)
    live = _map(random, 0)
    if random.random() < 0.4:
        return {"live": live, "patch": _map(random, 0), "merge": True}
    operations = [_operation(random, live) for _ in range(random.randint(1, 4))]
    return {"live": live, "patch": operations, "merge": False}


def _map(random: Random, depth: int) -> dict[str, Any]:
    return {key: _value(random, depth + 1) for key in random.sample(_KEYS, random.randint(1, 4))}


def _value(random: Random, depth: int) -> Any:
    chance = random.random()
    if depth < 4 and chance < 0.3:
        return _map(random, depth)
    if depth < 4 and chance < 0.55:
        return [_value(random, depth + 1) for _ in range(random.randint(0, 3))]
    return random.choice((None, True, False, 0, 1, -2, 1.5, "", "a", "b"))


def _operation(random: Random, live: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"op": random.choice(_OPERATIONS), "path": path_into(random, live)}
    if made["op"] in ("move", "copy"):
        made["from"] = path_into(random, live)
    elif made["op"] != "remove":
        found = _at(live, made["path"])
        made["value"] = found if random.random() < 0.4 else _value(random, 2)
    return made


def path_into(random: Random, live: Any) -> str:
    """The way to something that is there, or nearly."""
    path = ""
    while isinstance(live, dict | list) and live and (not path or random.random() < 0.7):
        if isinstance(live, dict):
            key = random.choice(tuple(live))
            live = live[key]
            path += "/" + key.replace("~", "~0").replace("/", "~1")
        else:
            at = random.randint(-1, len(live))
            path += f"/{at}"
            live = live[at] if at < len(live) else None
    return path + random.choice(("", "", "", "/new", "/-", "/01", "/x", "/-2"))


def _at(live: Any, path: str) -> Any:
    for part in path.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(live, dict):
            live = live.get(key)
        elif isinstance(live, list) and key.isdecimal() and int(key) < len(live):
            live = live[int(key)]
        else:
            return None
    return live
