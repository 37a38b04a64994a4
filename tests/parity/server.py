"""A server that is asked: by raw HTTP, with the certificate of a kubeconfig."""

from __future__ import annotations

import http.client
import json
import ssl
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# What the server writes into managedFields for requests that name no manager.
USER_AGENT = "parity"
_ANSWER_SECONDS_MAX = 30.0
_ACCOUNT_SECONDS_MAX = 30


@dataclass(frozen=True, slots=True)
class Server:
    """A server that may be an API server."""

    kubeconfig: Path
    host: str
    port: int
    tls: ssl.SSLContext

    @classmethod
    def of(cls, kubeconfig: Path) -> Server:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        user = config["users"][0]["user"]
        address = urlsplit(cluster["server"])
        assert address.hostname, f"{kubeconfig}: the server has no host"
        assert address.port, f"{kubeconfig}: the server has no port"
        tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        tls.load_cert_chain(user["client-certificate"], user["client-key"])
        return cls(kubeconfig, address.hostname, address.port, tls)

    def send(
        self, method: str, path: str, *, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        with self._answer(method, path, headers, content) as answer:
            received = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, received, answer.read()

    @contextmanager
    def _answer(
        self, method: str, path: str, headers: Mapping[str, str], content: bytes
    ) -> Iterator[http.client.HTTPResponse]:
        connection = http.client.HTTPSConnection(
            self.host, self.port, timeout=_ANSWER_SECONDS_MAX, context=self.tls
        )
        try:
            sent = {"User-Agent": USER_AGENT, "Accept": "application/json", **headers}
            connection.request(method, path, body=content or None, headers=sent)
            yield connection.getresponse()
        finally:
            connection.close()

    def make_namespace(self, name: str) -> None:
        """The namespace, with the default account that a controller makes for it."""
        body = json.dumps({"metadata": {"name": name}}).encode()
        headers = {"Content-Type": "application/json"}
        self.send("POST", "/api/v1/namespaces", headers=headers, content=body)
        path = f"/api/v1/namespaces/{name}/serviceaccounts?watch=true"
        selected = f"fieldSelector=metadata.name%3Ddefault&timeoutSeconds={_ACCOUNT_SECONDS_MAX}"
        with self._answer("GET", f"{path}&{selected}", {}, b"") as events:
            assert events.readline(), f"no default account in {name}"
