"""
Who a client is, where that changes with time.

Tokens expire: one in a file is replaced by whoever keeps the file, one of a command is asked for
anew. `headers` tells what to send; after a 401, `renew` says whether there is something new to try.
"""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from dryrack.base.errors import DryrackError
from dryrack.base.ports import Clock
from dryrack.client.timekeeping import seconds_of
from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw

# A command that asks a person something takes its time; one that hangs must not hang us for ever.
COMMAND_SECONDS_MAX = 120.0
# Tokens are taken for expired a little before they are: the server's clock is another one.
EARLY_SECONDS = 30.0
# client-go looks into a token file once a minute.
FILE_SECONDS = 60.0

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class CredentialError(DryrackError):
    """There is no way to say who asks."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate and its key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Credentials(Protocol):
    """See the module's docstring."""

    async def headers(self) -> Mapping[str, str]: ...

    async def key_pair(self) -> KeyPair | None: ...

    def renew(self) -> bool:
        """Forgets what was refused; False if there can be nothing newer."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """What never changes: a token, a password, a certificate, or nothing."""

    header: str = field(default="", repr=False)
    pair: KeyPair | None = None

    async def headers(self) -> Mapping[str, str]:
        return {"authorization": self.header} if self.header else {}

    async def key_pair(self) -> KeyPair | None:
        return self.pair

    def renew(self) -> bool:
        return False


class TokenFile:
    """A token that somebody else keeps fresh in a file."""

    def __init__(self, path: Path, clock: Clock, pair: KeyPair | None = None) -> None:
        self._path = path
        self._clock = clock
        self._pair = pair
        self._token = ""
        self._read_at = float("-inf")

    async def headers(self) -> Mapping[str, str]:
        if self._clock.now() - self._read_at >= FILE_SECONDS:
            self._token = self._read()
            self._read_at = self._clock.now()
        return {"authorization": f"Bearer {self._token}"}

    async def key_pair(self) -> KeyPair | None:
        return self._pair

    def renew(self) -> bool:
        before = self._token
        self._token = self._read()
        self._read_at = self._clock.now()
        return before != self._token

    def _read(self) -> str:
        try:
            token = self._path.read_text().strip()
        except OSError as error:
            raise CredentialError(f"token file {self._path}: {error.strerror}") from error
        if not token:
            raise CredentialError(f"token file {self._path}: empty")
        return token


class Command:
    """A credential plugin: a program that prints an ExecCredential."""

    def __init__(self, spec: Raw, cluster: Raw, clock: Clock) -> None:
        if spec.get("apiVersion") not in _EXEC_VERSIONS:
            known = " or ".join(_EXEC_VERSIONS)
            raise CredentialError(f"exec apiVersion {spec.get('apiVersion')!r}: expected {known}")
        self._spec = spec
        self._cluster = cluster
        self._clock = clock
        self._status: Raw | None = None

    async def headers(self) -> Mapping[str, str]:
        token = (await self._credential()).get("token")
        return {"authorization": f"Bearer {token}"} if token else {}

    async def key_pair(self) -> KeyPair | None:
        status = await self._credential()
        if not status.get("clientCertificateData"):
            return None
        return KeyPair(
            status["clientCertificateData"].encode(), status.get("clientKeyData", "").encode()
        )

    def renew(self) -> bool:
        self._status = None
        return True

    async def _credential(self) -> Raw:
        if self._status is None or self._is_over(self._status):
            self._status = self._read(await self._run())
        return self._status

    def _is_over(self, status: Raw) -> bool:
        expires = status.get("expirationTimestamp")
        if not expires:
            return False
        return seconds_of(expires) - EARLY_SECONDS <= self._clock.now()

    async def _run(self) -> bytes:
        command = self._spec["command"]
        try:
            process = await asyncio.create_subprocess_exec(
                command,
                *get(self._spec, "args", ()),
                env=self._environment(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            hint = self._spec.get("installHint") or "is it installed?"
            raise CredentialError(f"exec {command!r}: {error.strerror}; {hint}") from error
        try:
            async with asyncio.timeout(COMMAND_SECONDS_MAX):
                output, _ = await process.communicate()
        except TimeoutError as error:
            raise CredentialError(f"exec {command!r}: no answer") from error
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode:
            raise CredentialError(f"exec {command!r}: exit code {process.returncode}")
        return output

    def _environment(self) -> dict[str, str]:
        given: Sequence[Raw] = get(self._spec, "env", ())
        asked: Raw = {"interactive": False}
        if self._spec.get("provideClusterInfo"):
            asked["cluster"] = self._cluster
        info = {"apiVersion": self._spec["apiVersion"], "kind": "ExecCredential", "spec": asked}
        return {
            **os.environ,
            **{each["name"]: each["value"] for each in given},
            "KUBERNETES_EXEC_INFO": json.dumps(info),
        }

    def _read(self, output: bytes) -> Raw:
        command = self._spec["command"]
        try:
            answer = json.loads(output)
            status = answer["status"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise CredentialError(f"exec {command!r}: printed no ExecCredential") from error
        if answer.get("apiVersion") != self._spec["apiVersion"]:
            said = answer.get("apiVersion")
            raise CredentialError(
                f"exec {command!r}: answered as {said!r}; the kubeconfig expects "
                f"{self._spec['apiVersion']!r}"
            )
        if not status.get("token") and not status.get("clientCertificateData"):
            raise CredentialError(f"exec {command!r}: neither a token nor a certificate")
        return dict(status)
