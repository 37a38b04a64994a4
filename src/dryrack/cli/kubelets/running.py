"""`dryrack kubelet`: serve nodes of a cluster until a signal arrives."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cli.files import UsageError
from dryrack.cli.kubelets.places import driver_program, kubelet_directory
from dryrack.cli.service import address_of, log_format_of, serve
from dryrack.cli.views.sources import connection_to

if TYPE_CHECKING:
    from dryrack.cli.kubelets.options import KubeletOptions

_NODES_MAX = 1000


def run(options: KubeletOptions) -> bool:
    """Run the command; return whether it succeeded."""
    if options.print_rbac:
        from dryrack.cluster.rights import KUBELET

        sys.stdout.write(KUBELET.read_text())
        return True
    names = _names(options)
    if not options.kubelet_dir:
        raise UsageError("--kubelet-dir is missing; for example: --kubelet-dir /tmp/kubelets")
    words = driver_program(options.program) if options.program else ()
    directory = kubelet_directory(options.kubelet_dir, max(names, key=len))
    log_format = log_format_of(options.log_format)
    health = address_of("--health-address", options.health_address)
    connection = connection_to(kubeconfig=options.kubeconfig, context=options.context)

    kubeconfig = ""
    if words:
        if options.context:
            raise UsageError(
                "--context with PROGRAM: the program uses the current context of its kubeconfig; "
                "select the context there, with: kubectl config use-context NAME"
            )
        kubeconfig = options.kubeconfig or os.environ.get("KUBECONFIG", "")
        default = Path.home() / ".kube" / "config"
        if not kubeconfig and default.exists():
            kubeconfig = str(default)

    from dryrack.cluster.process.kubelets import KubeletSettings, serve_nodes

    settings = KubeletSettings(
        names=names,
        directory=directory,
        cdi=[str(Path(each).absolute()) for each in options.cdi_dir],
        program=words,
        kubeconfig=kubeconfig and os.path.abspath(kubeconfig),
        keeps_nodes=options.keep_nodes,
        health=health,
    )
    return serve(log_format, lambda: serve_nodes(connection, settings))


def _names(options: KubeletOptions) -> tuple[str, ...]:
    """Return the names of the nodes; raise `UsageError` if there are none, or invalid ones."""
    from dryrack.kinds.validation.names import label_value, subdomain

    if not 0 <= options.node_count <= _NODES_MAX:
        raise UsageError(
            f"--node-count {options.node_count}: must be a number from 1 to {_NODES_MAX}"
        )
    if options.node_count and options.node_name.count("{}") != 1:
        raise UsageError(
            f"--node-name {options.node_name!r}: must contain {{}} once, for the number, as in "
            "gpu-{}"
        )
    numbers = range(1, options.node_count + 1)
    numbered = [options.node_name.replace("{}", str(number)) for number in numbers]
    names = tuple(dict.fromkeys((*options.node, *numbered)))
    if not names:
        raise UsageError("name the nodes to serve, for example --node gpu-1 or --node-count 10")
    for name in names:
        for problem in (*subdomain(name), *label_value(name)):
            raise UsageError(f"--node {name!r}: {problem}")
    return names
