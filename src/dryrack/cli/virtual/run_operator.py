"""`dryrack run`: run the program of a workload as a local process, in place of its pod."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dryrack.base.numbers import read_int64
from dryrack.cli.files import UsageError
from dryrack.cli.output import say, shown
from dryrack.cli.views.sources import connection_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.cli.virtual.options import RunOptions
    from dryrack.cluster.operators import Workload

_PORT_MAX = 65535
_HTTPS = 443
_EXAMPLE = "for example: dryrack run -n my-operator deployment/manager -- ./bin/manager"


def run(options: RunOptions) -> bool:
    """Run the command; return whether the program ended as it should."""
    from dryrack.client.errors import TransportError
    from dryrack.client.https import connected
    from dryrack.client.kubeconfig import KubeconfigError
    from dryrack.cluster import ensure_own_directory, remedy
    from dryrack.cluster.operators import Machine, OperatorError, OperatorRequest, run_operator
    from dryrack.cluster.process import BackgroundError, home, in_background

    ports = _ports(options.port)
    folders = _folders(options.mount)
    connection = connection_to(kubeconfig=options.kubeconfig, context=options.context)
    workload = _workload(options.workload, options.namespace or connection.namespace)
    server = urlsplit(connection.server)
    if server.scheme != "https" or server.path not in ("", "/") or not server.hostname:
        raise KubeconfigError(
            f"server {connection.server}: a pod reaches the API server at https://HOST:PORT; "
            "name the kubeconfig of such a server with --kubeconfig"
        )
    request = OperatorRequest(
        workload=workload,
        container=options.container,
        ports=ports,
        machine=Machine(
            program=options.program,
            adds_arguments=not options.without_args,
            folders=folders,
            environment=dict(os.environ),
            directory=Path.cwd(),
            host=server.hostname,
            port=server.port or _HTTPS,
            authority=connection.authority or b"",
        ),
    )

    async def work(on_ready: Callable[[], None]) -> bool:
        async with connected(connection) as transport:
            try:
                return await run_operator(
                    transport, request, lambda text: say(shown(text)), on_ready
                )
            except TransportError as error:
                raise OperatorError(f"{error}; {remedy(error, workload.endpoint)}") from None

    if not options.detach:
        return asyncio.run(work(lambda: None))
    name = f"{workload.namespace}.{workload.kind.lower()}.{workload.name}.log"
    # No cluster has a name with an underscore.
    logs = home() / "run_logs"
    ensure_own_directory(logs)
    log_file = logs / name
    try:
        pid = in_background(lambda tell: asyncio.run(work(lambda: tell(""))), log_file, say)
    except BackgroundError as error:
        raise OperatorError(f"{error}; see {log_file}") from None
    say(shown(f"{workload} is ready: process {pid}, log {log_file}; stop it with: kill {pid}"))
    return True


def _workload(text: str, namespace: str) -> Workload:
    from dryrack.cluster.operators import KINDS, Workload, kind_named
    from dryrack.kinds.validation.names import label, subdomain

    word, separator, name = text.partition("/")
    kind = kind_named(word)
    if not separator or not name:
        raise UsageError(f"{text!r}: must be KIND/NAME; {_EXAMPLE}")
    if not kind:
        raise UsageError(f"{text!r}: the kind must be {', '.join(KINDS)}; {_EXAMPLE}")
    for complaint in subdomain(name):
        raise UsageError(f"{text!r}: name {name!r}: {complaint}")
    for complaint in label(namespace):
        raise UsageError(f"--namespace {namespace!r}: {complaint}")
    return Workload(kind, namespace, name)


def _ports(texts: tuple[str, ...]) -> dict[int, int]:
    ports = {}
    for text in texts:
        remote, _, local = text.partition("=")
        numbers = [read_int64(each) or 0 for each in (remote, local)]
        if not all(1 <= each <= _PORT_MAX for each in numbers):
            raise UsageError(f"--port {text!r}: must be CONTAINER=LOCAL, for example 9443=19443")
        ports[numbers[0]] = numbers[1]
    return ports


def _folders(texts: tuple[str, ...]) -> dict[str, Path]:
    folders = {}
    for text in texts:
        path, separator, folder = text.partition("=")
        if not separator or not path.startswith("/") or not folder:
            form = "must be PATH=FOLDER, for example /etc/webhook/certs=./certs"
            raise UsageError(f"--mount {text!r}: {form}")
        folders[path.rstrip("/") or "/"] = Path(folder).absolute()
    return folders
