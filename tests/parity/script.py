"""
Scripts: the requests of one subject, in the order in which they are sent.

    about: Labels, annotations and data of ConfigMaps.
    steps:
    - name: create
      request: POST /api/v1/namespaces/{ns}/configmaps
      body: {metadata: {name: a}}
    - name: only if it is still the same one
      request: DELETE /api/v1/namespaces/{ns}/configmaps/a
      body: {preconditions: {uid: "{create.metadata.uid}"}}
    - name: as a person sees it
      kubectl: get configmaps -o wide

`{ns}` is the namespace of the script, which exists when it starts. `{step.path}` is a value of
an earlier answer. A watch is a request with a `timeoutSeconds`; its answer is the list of its
events.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

SCRIPTS = Path(__file__).parent / "scripts"
_HOLE = re.compile(r"\{([a-z][\w -]*(?:\.[\w./\[\]-]+)?)\}")


class ScriptError(Exception):
    """A script cannot be read or run."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request, by HTTP or by kubectl."""

    name: str
    request: str = ""
    kubectl: str = ""
    body: Any = None
    # A body that is sent as it stands: bad JSON, YAML, a file for kubectl's standard input.
    text: str = ""
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    about: str
    steps: tuple[Step, ...]

    @property
    def namespace(self) -> str:
        return f"parity-{self.name}"


def load(path: Path) -> Script:
    raw = yaml.safe_load(path.read_text())
    steps = tuple(_step(path, entry) for entry in raw["steps"])
    names = [step.name for step in steps]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ScriptError(f"{path.name}: steps named twice: {', '.join(repeated)}")
    return Script(path.stem, raw["about"], steps)


def load_all(names: list[str]) -> list[Script]:
    paths = [SCRIPTS / f"{name}.yaml" for name in names] or sorted(SCRIPTS.glob("*.yaml"))
    return [load(path) for path in paths]


def _step(path: Path, entry: dict[str, Any]) -> Step:
    unknown = sorted(set(entry) - set(Step.__slots__))
    if unknown or ("request" in entry) == ("kubectl" in entry):
        raise ScriptError(f"{path.name}: step {entry.get('name')!r}: {unknown or 'which request?'}")
    return Step(**{**entry, "headers": tuple(entry.get("headers", {}).items())})


def fill(value: Any, namespace: str, answers: dict[str, Any]) -> Any:
    """`value` with every hole filled from the namespace and the earlier answers."""
    if isinstance(value, dict):
        return {key: fill(inner, namespace, answers) for key, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner, namespace, answers) for inner in value]
    if isinstance(value, str):
        return _HOLE.sub(lambda hole: _looked_up(hole[1], namespace, answers), value)
    return value


def _looked_up(hole: str, namespace: str, answers: dict[str, Any]) -> str:
    if hole == "ns":
        return namespace
    step, _, path = hole.partition(".")
    if step not in answers:
        return f"{{{hole}}}"
    value = answers[step]
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return str(value)
