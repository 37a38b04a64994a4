"""
Named cases: one idea each, as a small change to a valid document.

`cases.yaml` holds the changes and the causes that Kubernetes itself gave for them; this is how to
read it. `python -m tests.kinds.validation.cases` asks the API server's own code again and writes
the causes anew.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import msgspec
import yaml
from tests.golang import build
from tests.kinds.validation import documents
from tests.kinds.validation.judgement import Answer, Cause
from tests.oracle.oracles import Oracle

from dryrack.kinds.releases import Release

FILE = Path(__file__).parent / "cases.yaml"
MODULE = Path(__file__).parents[2] / "oracle" / "validation"
# The release of the module; it is not the first one.
ASKED = Release.V1_37

BASES = {
    "slice": documents.SLICES[0],
    "counters": documents.SLICES[1],
    "fabric": documents.SLICES[2],
    "everywhere": documents.SLICES[3],
    "claim": documents.CLAIMS[0],
    "empty claim": documents.CLAIMS[1],
    "template": documents.TEMPLATES[0],
    "class": documents.CLASSES[0],
    "rule": documents.RULES[0],
    "pod": documents.PODS[0],
}


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What Kubernetes has against an object."""

    panic: bool = False
    causes: tuple[Cause, ...] = ()


class Case(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change to a base, and what Kubernetes has against the result."""

    name: str
    base: str
    # A write of something new, an update of what is stored, or an update of its status.
    write: str = "create"
    # Changes to what is stored, before the update.
    stored: dict[str, Any] = {}
    set: dict[str, Any] = {}
    unset: tuple[str, ...] = ()
    # A list as long as this, of entries like its first one.
    grow: dict[str, int] = {}
    namespace: dict[str, str] = {}
    # In 1.36, which can be asked no more, and in each release with another answer since then.
    panic: bool = False
    causes: tuple[Cause, ...] = ()
    later: dict[str, Outcome] = {}

    def outcome(self, release: Release) -> Outcome:
        """Return what a release has against the object."""
        found = Outcome(panic=self.panic, causes=self.causes)
        for each in list(Release)[: list(Release).index(release) + 1]:
            found = self.later.get(each.value, found)
        return found

    def question(self) -> dict[str, Any]:
        """The case in full, as the API server would be asked."""
        old = copy.deepcopy(BASES[self.base]) if self.write == "create" else self._stored()
        new = copy.deepcopy(old)
        if self.write == "status":
            status = documents.STATUS if self.base == "claim" else documents.RULE_STATUS
            new["status"] = copy.deepcopy(status)
        self._change(new)
        asked: dict[str, Any] = {"object": new, "namespaceLabels": dict(self.namespace)}
        if self.write != "create":
            asked["old"] = old
        if self.write == "status":
            asked["subresource"] = "status"
        return asked

    def _stored(self) -> dict[str, Any]:
        old = documents.stored(BASES[self.base])
        for path, value in self.stored.items():
            _put(old, path, value)
        return old

    def _change(self, document: dict[str, Any]) -> None:
        for path, value in self.set.items():
            _put(document, path, value)
        for path in self.unset:
            container, key = _place(document, path)
            del container[key]
        for path, count in self.grow.items():
            container, key = _place(document, path)
            container[key] = [_numbered(container[key][0], i) for i in range(count)]


def _place(document: Any, path: str) -> tuple[Any, Any]:
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    for step in steps:
        document = document[step]
    return document, last


def _put(document: dict[str, Any], path: str, value: Any) -> None:
    container, key = _place(document, path)
    if value == "stored status":
        value = copy.deepcopy(documents.STATUS)
    container[key] = _expanded(value)


def _expanded(value: Any) -> Any:
    """`{repeated: [x, 3]}` stands for `xxx`."""
    if isinstance(value, dict) and set(value) == {"repeated"}:
        text, count = value["repeated"]
        return text * count
    if isinstance(value, dict):
        return {key: _expanded(each) for key, each in value.items()}
    return [_expanded(each) for each in value] if isinstance(value, list) else value


def _numbered(entry: Any, number: int) -> Any:
    if isinstance(entry, str):
        return f"{entry}{number}"
    named = [key for key in ("name", "uid", "counterSet", "type") if key in entry]
    return {**copy.deepcopy(entry), **{key: f"{entry[key]}{number}" for key in named}}


def load() -> tuple[Case, ...]:
    return msgspec.convert(yaml.safe_load(FILE.read_text()), tuple[Case, ...])


def _with_outcome(case: Case, outcome: Outcome) -> Case:
    """Return the case with an outcome of the release that is asked."""
    before = list(Release)[list(Release).index(ASKED) - 1]
    later = {name: each for name, each in case.later.items() if name != ASKED.value}
    if outcome != msgspec.structs.replace(case, later=later).outcome(before):
        later[ASKED.value] = outcome
    return msgspec.structs.replace(case, later=later)


def record() -> None:
    """Ask Kubernetes, and write down what it says."""
    with Oracle(build(MODULE).path("validate"), Answer) as server:
        asked = [(case, {"case": case.name, **case.question()}) for case in load()]
        answers = [answer for _, answer in server.ask([question for _, question in asked])]
    recorded = [
        _with_outcome(
            case, Outcome(panic=bool(answer.panic), causes=tuple(sorted(answer.causes or ())))
        )
        for (case, _), answer in zip(asked, answers, strict=True)
    ]
    plain = msgspec.to_builtins(recorded)
    FILE.write_text(yaml.safe_dump(plain, sort_keys=False, width=100, allow_unicode=True))


if __name__ == "__main__":
    record()
