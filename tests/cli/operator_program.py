"""
An operator as people write them, with the standard library alone.

It uses only what a pod has. It writes what it finds to the file $FACTS as JSON, and then serves
/readyz, and a webhook that labels ConfigMaps.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import ssl
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CERTIFICATES = "/etc/webhook/certs"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._send(200 if self.path == "/readyz" else 404, b"")

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["content-length"])))
        patch = [{"op": "add", "path": "/metadata/labels", "value": {"seen-by": "operator"}}]
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        response = {"uid": review["request"]["uid"], "allowed": True}
        review["response"] = {**response, "patchType": "JSONPatch", "patch": encoded}
        self._send(200, json.dumps(review).encode())

    def _send(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def ask(path: str, account: Path, server: str) -> int:
    """Return the status of a GET request with the token and the CA of the account."""
    context = ssl.create_default_context(cafile=str(account / "ca.crt"))
    headers = {"authorization": f"Bearer {(account / 'token').read_text()}"}
    request = urllib.request.Request(server + path, headers=headers)
    try:
        return int(urllib.request.urlopen(request, context=context).status)
    except urllib.error.HTTPError as error:
        return error.code


def facts(account: Path, words: list[str]) -> dict[str, Any]:
    namespace = (account / "namespace").read_text()
    server = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}".format(**os.environ)
    token = (account / "token").read_text().split(".")[1]
    return {
        "words": words,
        "environment": dict(os.environ),
        "host": socket.gethostname(),
        "pods": ask(f"/api/v1/namespaces/{namespace}/pods", account, server),
        "secrets": ask(f"/api/v1/namespaces/{namespace}/secrets", account, server),
        "claims": json.loads(base64.urlsafe_b64decode(token + "==")),
        "process": os.getpid(),
    }


def main(words: list[str]) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    options = dict(word.removeprefix("--").split("=", 1) for word in words)
    mounts = dict(
        each.split("=", 1) for each in os.environ.get("DRYRACK_MOUNTS", "").split(":") if each
    )
    usual = "/var/run/secrets/kubernetes.io/serviceaccount"
    known = facts(Path(mounts.get(usual, usual)), words)
    known["settings"] = Path(options["config"]).read_text()
    target = Path(os.environ["FACTS"])
    new = target.with_suffix(".new")
    new.write_text(json.dumps(known))
    new.replace(target)
    if "exit" in options:
        sys.exit(int(options["exit"]))
    if options.get("crash-once") and not Path(options["crash-once"]).exists():
        Path(options["crash-once"]).touch()
        sys.exit(3)
    certificates = Path(mounts.get(CERTIFICATES, CERTIFICATES))
    never = threading.Event()
    # As with a rotator of certificates, the Secret can be filled later.
    while not (certificates / "tls.crt").exists():
        never.wait(0.05)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
    port = int(options["webhook"].rpartition(":")[2].strip("/"))
    webhook = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    webhook.socket = context.wrap_socket(webhook.socket, server_side=True)
    threading.Thread(target=webhook.serve_forever, daemon=True).start()
    port = int(options["probe"].rpartition(":")[2])
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
