"""
Credentials of a client, which may change with time.

Tokens expire: a token file is replaced by another program, and a credential command runs again.
`headers` returns the headers to send; after a 401, `renew` returns whether there may be a new
credential.
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

# A command may have to wait for a person; a command that hangs must not block dryrack for ever.
COMMAND_SECONDS_MAX = 120.0
# Tokens count as expired a little early, because the clock of the server may differ.
EARLY_SECONDS = 30.0
# client-go reads a token file once a minute.
FILE_SECONDS = 60.0

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class CredentialError(DryrackError):
    """No credential is available."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate and its key, in PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


class Credentials(Protocol):
    """The identity of a client: headers, and a client certificate."""

    async def headers(self) -> Mapping[str, str]: ...

    async def key_pair(self) -> KeyPair | None: ...

    def renew(self) -> bool:
        """Drop a refused credential; return whether there may be a new one."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """A credential that never changes: a token, a password, a certificate, or none."""

    header: str = field(default="", repr=False)
    pair: KeyPair | None = None

    async def headers(self) -> Mapping[str, str]:
        return {"authorization": self.header} if self.header else {}

    async def key_pair(self) -> KeyPair | None:
        return self.pair

    def renew(self) -> bool:
        return False


class TokenFile:
    """A token in a file that another program renews."""

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
        expires = (self._status or {}).get("expirationTimestamp")
        is_expired = expires and seconds_of(expires) - EARLY_SECONDS <= self._clock.now()
        if self._status is None or is_expired:
            self._status = self._read(await self._run())
        return self._status

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
        variables: Sequence[Raw] = get(self._spec, "env", ())
        spec: Raw = {"interactive": False}
        if self._spec.get("provideClusterInfo"):
            spec["cluster"] = self._cluster
        info = {"apiVersion": self._spec["apiVersion"], "kind": "ExecCredential", "spec": spec}
        return {
            **os.environ,
            **{each["name"]: each["value"] for each in variables},
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
            version = answer.get("apiVersion")
            raise CredentialError(
                f"exec {command!r}: answered as {version!r}; the kubeconfig expects "
                f"{self._spec['apiVersion']!r}"
            )
        if not status.get("token") and not status.get("clientCertificateData"):
            raise CredentialError(f"exec {command!r}: neither a token nor a certificate")
        return dict(status)
