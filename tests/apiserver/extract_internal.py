"""
How the real server holds the spec of a pod inside, as data: refusals show it so.

    python -m tests.apiserver.extract_internal

Its own structs have other fields than those of the API here and there, in another order, and no
names in JSON. The file is data: it is written by this script and never edited. Needs Go.

For each struct: a list of `[name, name in the API, type]`. A name of "" is a struct whose fields
stand in this one. Types: `string`, `int`, `bool`, a struct by its name, `json` for what is shown as
the API has it; before them `*` for a pointer, `[]` for a list, `<>` for a map.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path

_TARGET = Path(__file__).parents[2] / "src/dryrack/apiserver/strategies/pods/internal.json.gz"
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_NAMED = re.compile(r"^type (\w+) (string|int32|int64|map\[\w+\]\S+)$", re.M)
_FIELD = re.compile(r"^\t(?:(\w+)[ \t]+)?(\*?[\w.\[\]*]+)(?:[ \t]+`[^`]*`)?\s*$")
_TAGGED = re.compile(r'^\t(\w+)[ \t]+\S+[ \t]+`json:"([^",]*)')
_SCALARS = {"int32": "int", "int64": "int", "int": "int", "string": "string", "bool": "bool"}

Row = tuple[str, str, str]


def main() -> None:
    cache = Path(_run("go", "env", "GOMODCACHE")) / "k8s.io"
    inside = _text(cache / "kubernetes@v1.36.4/pkg/apis/core/types.go")
    outside = _text(cache / "api@v0.36.4/core/v1/types.go")
    names = {name: _tags(body) for name, body in _STRUCT.findall(outside)}
    aliases = dict(_NAMED.findall(inside))
    structs = dict(_STRUCT.findall(inside))
    found: dict[str, list[Row]] = {}
    waiting = ["PodSpec"]
    while waiting:
        struct = waiting.pop()
        if struct in found or struct not in structs:
            continue
        found[struct] = list(_rows(structs[struct], names.get(struct, {}), aliases, structs))
        waiting += [kind.lstrip("*[]<>") for _, _, kind in found[struct]]
    content = json.dumps(found, separators=(",", ":"), sort_keys=True).encode()
    _TARGET.write_bytes(gzip.compress(content, mtime=0))


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def _text(path: Path) -> str:
    return re.sub(r"//.*", "", path.read_text())


def _tags(body: str) -> dict[str, str]:
    found = (_TAGGED.match(line) for line in body.splitlines())
    return {each[1]: each[2] for each in found if each}


def _rows(
    body: str, names: dict[str, str], aliases: dict[str, str], structs: dict[str, str]
) -> list[Row]:
    rows: list[Row] = []
    for line in body.splitlines():
        found = _FIELD.match(line)
        if found is None:
            assert not line.strip(), line
            continue
        name, declared = found.groups()
        kind = _type(declared, aliases, structs)
        usual = name[:1].lower() + name[1:] if name else ""
        rows.append((name or "", names.get(name or "", usual), kind))
    return rows


def _type(declared: str, aliases: dict[str, str], structs: dict[str, str]) -> str:
    declared = aliases.get(declared, declared)
    for sign in ("*", "[]"):
        if declared.startswith(sign):
            return sign + _type(declared.removeprefix(sign), aliases, structs)
    if declared.startswith("map["):
        return "<>" + _type(declared.partition("]")[2], aliases, structs)
    if declared in _SCALARS:
        return _SCALARS[declared]
    return declared if declared in structs else "json"


if __name__ == "__main__":
    main()
