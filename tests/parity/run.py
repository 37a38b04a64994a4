"""Sends a script to a server and keeps what comes back."""

from __future__ import annotations

import json
import shlex
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from tests.parity.normalise import Normaliser
from tests.parity.script import fill

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.parity.script import Script, Step
    from tests.parity.server import Server

_TYPES = {
    "PATCH": "application/strategic-merge-patch+json",
}
# Headers that a client acts on; the others are about the connection.
_KEPT_HEADERS = ("content-type", "warning", "retry-after")


@dataclass(slots=True)
class Run:
    """One script against one server."""

    script: Script
    server: Server
    kubectl: Path
    _answers: dict[str, Any] = field(default_factory=dict)
    _normaliser: Normaliser = field(default_factory=Normaliser)

    def answers(self) -> Iterable[dict[str, Any]]:
        """The normalised answer of each step, in order."""
        self.server.make_namespace(self.script.namespace)
        for step in self.script.steps:
            yield {"step": step.name, **self._answer(step)}

    def _answer(self, step: Step) -> dict[str, Any]:
        return self._by_kubectl(step) if step.kubectl else self._by_http(step)

    def _by_http(self, step: Step) -> dict[str, Any]:
        method, _, path = self._filled(step.request).partition(" ")
        headers = dict(step.headers)
        content = self._filled(step.text).encode()
        if step.body is not None:
            content = json.dumps(self._filled(step.body)).encode()
        if content and "Content-Type" not in headers:
            headers["Content-Type"] = _TYPES.get(method, "application/json")
        status, received, body = self.server.send(method, path, headers=headers, content=content)
        parsed = _parsed(body, is_watch=_is_watch(path))
        self._answers[step.name] = parsed
        kept = {name: received[name] for name in _KEPT_HEADERS if name in received}
        shown = parsed if isinstance(parsed, str) else self._normaliser.body(parsed)
        return {"status": status, "headers": kept, "body": shown}

    def _by_kubectl(self, step: Step) -> dict[str, Any]:
        words = shlex.split(self._filled(step.kubectl))
        stdin = self._filled(step.text) or json.dumps(self._filled(step.body))
        kubectl = [str(self.kubectl), "--kubeconfig", str(self.server.kubeconfig)]
        done = subprocess.run(
            [*kubectl, "-n", self.script.namespace, *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return {
            "exit": done.returncode,
            "stdout": self._normaliser.text(done.stdout),
            "stderr": self._normaliser.text(done.stderr),
        }

    def _filled(self, value: Any) -> Any:
        return fill(value, self.script.namespace, self._answers)


def _is_watch(path: str) -> bool:
    return parse_qs(urlsplit(path).query).get("watch", ["false"])[0] in ("1", "true")


def _parsed(body: bytes, *, is_watch: bool) -> Any:
    text = body.decode(errors="replace")
    try:
        if is_watch:
            return [json.loads(line) for line in text.splitlines()]
        return json.loads(text)
    except ValueError:
        return text
