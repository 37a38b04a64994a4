"""
Valid requests, damaged in many ways.

Each starts as a request of a recording, so that most of it is right and the odd part of it gets
far. The same seed makes the same requests. By hand, as many as one likes:

    python -m tests.apiserver.barrage --requests 1000000 --seed 7

prints what was answered, how long the slowest took and how much memory there is, and ends with
the first request that was not answered as it should be.
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml
from tests.apiserver.generate_objects import Maker, kind_of, spoiled
from tests.apiserver.generate_patches import path_into
from tests.apiserver.replay import EmbeddedServer, embedded_server
from tests.parity.script import load_all

from dryrack.apiserver.runtime_config import EVERYTHING
from dryrack.kinds.registry import builtin_kinds
from dryrack.kinds.releases import DEFAULT_RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.parity.script import Step

NAMESPACE = "barrage"
SECONDS_MAX = 1.0
"""Of this thread's own time; the slowest honest request is a list of everything as a table."""

_HOLE = re.compile(r"\{[^{}]*\}")
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_BODIES = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
    *_PATCHES,
)
_ACCEPTS = (
    "application/json",
    "application/yaml",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "*/*;q=0.1, text/html",
    ";;,q=,",
)
_PARAMETERS = (
    *("allowWatchBookmarks", "continue", "dryRun", "fieldManager", "fieldSelector", "force"),
    *("fieldValidation", "gracePeriodSeconds", "labelSelector", "limit", "orphanDependents"),
    *("pretty", "propagationPolicy", "resourceVersion", "resourceVersionMatch", "watch"),
    *("sendInitialEvents", "timeoutSeconds", "container", "tailLines", "sinceTime", "follow"),
    *("ignoreStoreReadErrorWithClusterBreakingPotential", "includeObject", "strange", ""),
)
_VALUES = (
    *("", "true", "false", "0", "1", "-1", "3", "99999999999999999999", "1.5", "x", "é", "\0"),
    *("All", "None", "Strict", "Warn", "Ignore", "Exact", "NotOlderThan", "Background", "Orphan"),
    *("a=b", "a!=b", "a in (b,c)", "!a", "a notin (", "metadata.name=x", "status.phase!=Running"),
    *("eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ", "2026-01-01T00:00:00Z", "Foreground", "a" * 200),
)
_PARTS = ("x", "", "..", "%2e%2e", "é", "status", "scale", "log", "binding", "eviction", "a" * 300)
_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 2**31, 2**63, -(2**63) - 1, 1e308, 10**30),
    *(
        "",
        "x",
        "A b",
        "\0",
        "é",
        "\ud83d\ude00",
        "1Gi",
        "-1",
        "0.5e3",
        "25%",
        "2026-01-01T00:00:00Z",
    ),
    *("10.0.0.0/8", "a/b/c", "x" * 300, "{{}}", "$(A)", "*"),
    *([], [None], [{}], {}, {"": ""}, {"a": {"b": []}}, [[[]]]),
)
_TOLD = {501: b'"NotImplemented"', 504: b'"ResourceVersionTooLarge"'}


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, so that it can be sent again."""

    method: str
    path: str
    headers: dict[str, str]
    content: bytes

    def __str__(self) -> str:
        shown = self.content[:2000].decode(errors="backslashreplace")
        return f"{self.method} {self.path} {self.headers}\n{shown}"


@dataclass(frozen=True, slots=True)
class Answered:
    asked: Asked
    status: int
    body: bytes
    seconds: float

    @property
    def is_well(self) -> bool:
        """
        Return whether the server answers in time, and without an internal error.

        The real server has a few answers of 500 for what nobody should send; they have no reason.
        And it says by 504 that a revision has not come yet, by 501 that something is not there.
        """
        if self.seconds > SECONDS_MAX:
            return False
        if self.status in _TOLD:
            return _TOLD[self.status] in self.body
        return self.status < 500 or (self.status == 500 and b"reason" not in self.body)

    def __str__(self) -> str:
        return f"{self.asked}\n{self.status} after {self.seconds:.3f} s: {self.body[:2000]!r}"


@cache
def _scripts() -> tuple[tuple[Step, ...], ...]:
    """All recorded requests but those that fill a page with themselves."""
    found = (
        tuple(step for step in script.steps if step.request and len(repr(step.body)) < 20_000)
        for script in load_all([])
    )
    # Some scripts have kubectl ask everything.
    return tuple(steps for steps in found if steps)


@cache
def _kinds() -> dict[str, tuple[str, str, str]]:
    return {
        each.plural: (each.group, each.version, each.kind)
        for each in builtin_kinds(DEFAULT_RELEASE)
    }


@dataclass(slots=True)
class Barrage:
    """Makes requests."""

    random: Random
    _waiting: list[Step] = field(default_factory=list)
    _is_spoiling: bool = True

    def asked(self) -> Asked:
        """The next request; a part of a script goes in its order, so that one builds on another."""
        if not self._waiting:
            steps = self.random.choice(_scripts())
            start = self.random.randrange(len(steps))
            self._waiting = list(reversed(steps[start : start + 8]))
        self._is_spoiling = self.random.random() < 0.6
        return self._made(self._waiting.pop())

    def _made(self, step: Step) -> Asked:
        method, _, target = step.request.partition(" ")
        path, _, query = _HOLE.sub(self._word, target.replace("{ns}", NAMESPACE)).partition("?")
        if self._rarely():
            method = self.random.choice(_METHODS)
        headers = {"User-Agent": "barrage", **dict(step.headers)}
        if self._rarely():
            headers["Accept"] = self.random.choice(_ACCEPTS)
        content = self._content(step, method, headers)
        where = f"{self._path(path)}?{self._query(query)}"
        return Asked(method, where, headers, content)

    def _rarely(self) -> bool:
        return self._is_spoiling and self.random.random() < 0.1

    def _word(self, _: object = None) -> str:
        return self.random.choice(("x", "a", "1", "y"))

    def _path(self, path: str) -> str:
        parts = path.split("/")
        if self._rarely():
            parts[self.random.randrange(len(parts))] = self.random.choice(_PARTS)
        if self._rarely():
            parts.append(self.random.choice(_PARTS))
        return quote("/".join(parts) or "/", safe="/%")

    def _query(self, query: str) -> str:
        parameters = [query] if query else []
        while self._is_spoiling and self.random.random() < 0.25:
            name = self.random.choice(_PARAMETERS)
            value = self.random.choice(_VALUES)
            parameters.append(f"{name}={quote(value)}" if self.random.random() < 0.9 else value)
        # Nobody waits for the end of a watch that has none.
        return "&".join(quote(each, safe="=&%,!()") for each in [*parameters, "timeoutSeconds=1"])

    def _content(self, step: Step, method: str, headers: dict[str, str]) -> bytes:
        if not self._is_spoiling:
            return step.text.encode() if step.text else _plain(step.body)
        if step.text and self.random.random() < 0.5:
            return self._torn(step.text.encode())
        body = step.body if step.body is not None else self._another_body()
        if self._rarely():
            headers["Content-Type"] = self.random.choice(_PATCHES)
            if headers["Content-Type"] == _PATCHES[0] and isinstance(body, dict):
                body = self._operations(body)
        elif self._rarely():
            headers["Content-Type"] = self.random.choice(_BODIES)
        return self._written(self._spoilt(copy.deepcopy(body)), headers)

    def _another_body(self) -> Any:
        if self.random.random() < 0.7:
            return {}
        plural = self.random.choice(sorted(_kinds()))
        return Maker(kind_of(*_kinds()[plural], DEFAULT_RELEASE), self.random).object()

    def _operations(self, body: Any) -> list[dict[str, Any]]:
        return [
            {
                "op": self.random.choice(("add", "remove", "replace", "move", "copy", "test")),
                "path": path_into(self.random, body),
                "from": path_into(self.random, body),
                "value": self._odd(),
            }
            for _ in range(self.random.randint(1, 3))
        ]

    def _spoilt(self, body: Any) -> Any:
        while self.random.random() < 0.6:
            body = self._spoilt_once(body)
        return spoiled(self.random, body)

    def _spoilt_once(self, body: Any) -> Any:
        places = list(_places(body))
        if not places or self.random.random() < 0.02:
            return self._odd()
        held, key = self.random.choice(places)
        match self.random.randrange(6):
            case 0 | 1:
                held[key] = self._odd()
            case 2:
                del held[key]
            case 3 if isinstance(held, list):
                held.extend(copy.deepcopy(held) * self.random.choice((1, 1, 40)))
            case 4 if isinstance(held, dict):
                held[self.random.choice(("", "x", "A b", "name", "$patch", "é"))] = copy.deepcopy(
                    held[key]
                )
            case _:
                other, place = self.random.choice(places)
                held[key] = copy.deepcopy(other[place])
        return body

    def _odd(self) -> Any:
        return copy.deepcopy(self.random.choice(_ODD))

    def _written(self, body: Any, headers: dict[str, str]) -> bytes:
        try:
            if "yaml" in headers.get("Content-Type", "") and self.random.random() < 0.5:
                return self._torn(yaml.safe_dump(body).encode(errors="replace"))
            return self._torn(json.dumps(body).encode())
        except (ValueError, yaml.YAMLError):
            return b"{"

    def _torn(self, content: bytes) -> bytes:
        if self.random.random() > 0.03 or not content:
            return content
        at = self.random.randrange(len(content))
        return self.random.choice(
            (content[:at], content[:at] + b"\xff" + content[at:], b"[" * 20_000, content * 2)
        )


def _plain(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    entries: Any = ()
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))[:20]
    for key, inner in entries:
        yield value, key
        yield from _places(inner)


@dataclass(slots=True)
class Target:
    """A server that is asked, and made anew before it holds too much."""

    requests_max: int = 2_000
    _server: EmbeddedServer | None = None
    _count: int = field(default=0)

    def send(self, asked: Asked) -> Answered:
        server = self._fresh()
        began = time.thread_time()
        status, _, body = server.send(
            asked.method, asked.path, headers=asked.headers, content=asked.content
        )
        return Answered(asked, status, body, time.thread_time() - began)

    def _fresh(self) -> EmbeddedServer:
        if self._count % self.requests_max == 0:
            self.close()
            self._server = embedded_server(EVERYTHING)
            self._server.make_namespace(NAMESPACE)
        self._count += 1
        assert self._server is not None
        return self._server

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--keep-going", action="store_true", help="print what is wrong and go on")
    options = parser.parse_args()
    barrage = Barrage(Random(options.seed))
    target = Target()
    told: Counter[int] = Counter()
    slowest = 0.0
    wrong = 0
    for number in range(1, options.requests + 1):
        asked = barrage.asked()
        try:
            answered = target.send(asked)
        except Exception:
            _say(f"request {number}: {asked}")
            if not options.keep_going:
                raise
            import traceback

            _say(traceback.format_exc(limit=-4))
            wrong += 1
            target = Target()
            continue
        told[answered.status] += 1
        slowest = max(slowest, answered.seconds)
        if not answered.is_well:
            _say(f"request {number}: {answered}")
            wrong += 1
            if not options.keep_going:
                return 1
        if number % 10_000 == 0:
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            _say(f"{number}: {dict(sorted(told.items()))}, slowest {slowest:.3f} s, {memory} MiB")
    return 1 if wrong else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
