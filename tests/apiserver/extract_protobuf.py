"""
The numbers that fields have on the wire, from Kubernetes' own sources, as data for the server.

    python -m tests.apiserver.extract_protobuf

Types come from the `.proto` files, names in JSON and what is left out when empty from the tags of
the Go types. The file is data: it is written by this script and never edited. Needs Go.

For each message: a list of `[number, name, type, flags]`. A name of "" is a part whose fields
stand in the object itself. A type is a scalar (`string`, `bytes`, `int`, `bool`, `double`), a
message, or `<value` for a map with text as keys. Flags: `r` repeated, `o` left out when empty.
"""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from pathlib import Path

from dryrack.kinds.releases import Release

_TARGET = Path(__file__).parents[2] / "src/dryrack/apiserver/protobuf/messages.json.gz"
# A number is never given to another field, so that one table is right for all releases.
_VERSIONS = tuple(f"v0.{each.patch_version.partition('.')[2]}" for each in Release)
_API = (
    *("admissionregistration/v1", "apps/v1", "authentication/v1", "authorization/v1"),
    *("autoscaling/v1", "autoscaling/v2", "batch/v1", "certificates/v1", "coordination/v1"),
    *("core/v1", "discovery/v1", "events/v1", "flowcontrol/v1", "networking/v1", "node/v1"),
    *("policy/v1", "rbac/v1"),
    *("resource/v1", "resource/v1beta1", "resource/v1beta2", "resource/v1alpha3"),
    *("scheduling/v1", "scheduling/v1alpha2", "scheduling/v1alpha3", "scheduling/v1beta1"),
    *("storage/v1", "storagemigration/v1"),
)
_OTHERS = (
    ("apimachinery", "pkg/apis/meta/v1"),
    ("apimachinery", "pkg/runtime"),
    ("apimachinery", "pkg/api/resource"),
    ("apimachinery", "pkg/util/intstr"),
    ("apiextensions-apiserver", "pkg/apis/apiextensions/v1"),
    ("kube-aggregator", "pkg/apis/apiregistration/v1"),
)
_SCALARS = {"int32": "int", "int64": "int", "uint32": "int", "float": "double"}
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.M | re.S)
_FIELD = re.compile(r"^\s*(optional|repeated|map)\s*(<[^>]+>|\S+) (\w+) = (\d+);", re.M)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_TAGGED = re.compile(r'^\s*(.*?)\s+`.*?json:"([^"]*)".*?protobuf:"\w+,(\d+),', re.M)

Tags = dict[int, tuple[str, bool]]
Row = tuple[int, str, str, str]


def main() -> None:
    cache = Path(_run("go", "env", "GOMODCACHE")) / "k8s.io"
    messages: dict[str, list[Row]] = {}
    for version in _VERSIONS:
        for module, folder in (*(("api", each) for each in _API), *_OTHERS):
            _run("go", "mod", "download", f"k8s.io/{module}@{version}")
            directory = cache / f"{module}@{version}" / folder
            package = ".".join(("k8s.io", module, *folder.split("/")))
            # Not every release has every version of a group.
            found = _package(package, directory) if directory.exists() else {}
            for name, rows in found.items():
                known = {row[0]: row for row in messages.get(name, ())}
                messages[name] = [*(known | {row[0]: row for row in rows}).values()]
    content = json.dumps(messages, separators=(",", ":"), sort_keys=True).encode()
    _TARGET.write_bytes(gzip.compress(content, mtime=0))


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()


def _package(package: str, directory: Path) -> dict[str, list[Row]]:
    proto = re.sub(r"//.*", "", (directory / "generated.proto").read_text())
    sources = [path.read_text() for path in sorted(directory.glob("*.go"))]
    tags = _all_tags("\n".join(sources))
    return {
        f"{package}.{name}": _rows(package, body, tags.get(name, {}))
        for name, body in _MESSAGE.findall(proto)
    }


def _all_tags(source: str) -> dict[str, Tags]:
    return {name: _tags(body) for name, body in _STRUCT.findall(source)}


def _tags(body: str) -> Tags:
    found: Tags = {}
    for declared, tag, number in _TAGGED.findall(re.sub(r"^\s*//.*\n", "", body, flags=re.M)):
        name, *options = tag.split(",")
        is_pointer = declared.split()[-1].startswith("*")
        found[int(number)] = (name, "omitempty" in options and not is_pointer)
    return found


def _rows(package: str, body: str, tags: Tags) -> list[Row]:
    rows = []
    for label, kind, proto_name, number in _FIELD.findall(body):
        name, is_omitted = tags.get(int(number), (proto_name, False))
        flags = ("r" if label == "repeated" else "") + ("o" if is_omitted else "")
        rows.append((int(number), name, _type(package, label, kind), flags))
    return rows


def _type(package: str, label: str, kind: str) -> str:
    if label == "map":
        key, value = (part.strip() for part in kind.strip("<>").split(","))
        assert key == "string", f"a map by {key}"
        return "<" + _type(package, "", value)
    if kind.startswith("."):
        return kind.removeprefix(".")
    if kind[0].isupper():
        return f"{package}.{kind}"
    return _SCALARS.get(kind, kind)


if __name__ == "__main__":
    main()
