"""
The test bed by hand: up, down, status, build.

    python -m tests.realcluster up --node --feature-gates DRAListTypeAttributes=true
    python -m tests.realcluster down
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from tests.golang import GoBuildError
from tests.realcluster import accounts, cluster, programs
from tests.realcluster.controlplane import Options
from tests.realcluster.processes import ProcessError, recorded
from tests.realcluster.readiness import NotReadyError
from tests.realcluster.releases import RELEASE, RELEASES
from tests.realcluster.requirements import NodeRequirementError

_READ_ONLY = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]


def _directory(name: str) -> Path:
    # Sockets are below it, and their paths must stay under 108 bytes.
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp") / f"dryrack-bed-{name}"


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.realcluster", description=__doc__)
    parser.add_argument("verb", choices=["up", "down", "status", "build"])
    parser.add_argument("--name", default="default", help="which test bed")
    parser.add_argument("--release", choices=sorted(RELEASES), default=RELEASE.minor)
    parser.add_argument("--node", action="store_true", help="a node with a real kubelet (root)")
    parser.add_argument("--kwok", action="store_true", help="KWOK for nodes with its annotation")
    parser.add_argument("--without-scheduler", action="store_true")
    parser.add_argument("--feature-gates", default="", metavar="A=true,B=false")
    parser.add_argument("--runtime-config", default="", metavar="GROUP/VERSION=true")
    parser.add_argument(
        "--limited", action="store_true", help="also a service account that may only read"
    )
    return parser.parse_args(words)


def _switches(text: str) -> dict[str, bool]:
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {name: value.lower() != "false" for name, _, value in pairs}


def _up(arguments: argparse.Namespace) -> int:
    directory = _directory(arguments.name)
    if any(identity.alive() for identity in recorded(directory).running):
        sys.stderr.write(f"test bed {arguments.name} is up already; make real-down stops it\n")
        return 1
    options = Options(
        release=RELEASES[arguments.release],
        feature_gates=_switches(arguments.feature_gates),
        runtime_config=_switches(arguments.runtime_config),
        with_scheduler=not arguments.without_scheduler,
    )
    parts = cluster.Parts(node=arguments.node, kwok=arguments.kwok)
    bed = cluster.start(directory, options, parts, detached=True)
    sys.stdout.write(f"export KUBECONFIG={bed.plane.kubeconfig}\n")
    sys.stderr.write(f"kubectl: {bed.plane.kubectl_path}\n")
    if arguments.limited:
        limited = accounts.limited(bed.plane, "reader", namespace="default", rules=_READ_ONLY)
        sys.stderr.write(f"a service account that may only read: {limited}\n")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    if cluster.stop_recorded(_directory(arguments.name)):
        sys.stderr.write(f"test bed {arguments.name} is down\n")
    else:
        sys.stderr.write(f"test bed {arguments.name} is not up\n")
    return 0


def _status(arguments: argparse.Namespace) -> int:
    directory = _directory(arguments.name)
    processes = [*recorded(directory).running, *recorded(directory / cluster.NODE).running]
    for identity in processes:
        state = "running" if identity.alive() else "ended"
        sys.stdout.write(f"{identity.name}\t{identity.pid}\t{state}\n")
    return 0 if processes and all(identity.alive() for identity in processes) else 1


def _build(arguments: argparse.Namespace) -> int:
    release = RELEASES[arguments.release]
    programs.kubernetes("kubectl", release)
    programs.etcd()
    programs.containerd("containerd")
    programs.kwok()
    programs.helm()
    return 0


def main(words: list[str]) -> int:
    arguments = _arguments(words)
    verbs = {"up": _up, "down": _down, "status": _status, "build": _build}
    try:
        return verbs[arguments.verb](arguments)
    except (GoBuildError, NodeRequirementError, NotReadyError, ProcessError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("given up; what was started is stopped again\n")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
