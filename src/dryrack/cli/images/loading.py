"""Import an archive into the container runtime of a cluster, with the tool of the cluster."""

from __future__ import annotations

import enum
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

from dryrack.cli.images.installation import ImageError
from dryrack.cli.output import say

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


class Tool(enum.StrEnum):
    """The tools that import images."""

    KIND = "kind"
    MINIKUBE = "minikube"
    K3S = "k3s"
    CONTAINERD = "containerd"


_PROGRAMS = {
    Tool.KIND: "kind",
    Tool.MINIKUBE: "minikube",
    Tool.K3S: "k3s",
    Tool.CONTAINERD: "ctr",
}


def has_program(name: str) -> bool:
    return shutil.which(name) is not None


def find_tool(context: str, has_program: Callable[[str], bool]) -> Tool:
    """Return the tool of the cluster of a kubeconfig context, or the one that is installed."""
    by_context = {"kind-": Tool.KIND, "minikube": Tool.MINIKUBE}
    for prefix, tool in by_context.items():
        if context.startswith(prefix):
            if not has_program(_PROGRAMS[tool]):
                raise ImageError(
                    f"the context {context} is a cluster of {tool}, and {_PROGRAMS[tool]} is not "
                    f"installed; install it, or name another tool with --to"
                )
            return tool
    for tool, program in _PROGRAMS.items():
        if has_program(program):
            return tool
    raise ImageError(
        "none of kind, minikube, k3s and ctr is installed; run this command on a machine that has "
        "one of them, or copy the archive of dryrack image save to a node"
    )


def check_tool(tool: Tool) -> None:
    """Raise if the program of a tool is not installed."""
    if not has_program(_PROGRAMS[tool]):
        raise ImageError(f"{_PROGRAMS[tool]} is not installed; install it, or choose with --to")


def command_of(tool: Tool, archive: Path, cluster: str, context: str) -> Sequence[str]:
    """Return the command that imports an archive; `cluster` is a name for kind and minikube."""
    match tool:
        case Tool.KIND:
            own = context.removeprefix("kind-") if context.startswith("kind-") else ""
            name = cluster or own
            named = ("--name", name) if name else ()
            return ("kind", "load", "image-archive", str(archive), *named)
        case Tool.MINIKUBE:
            profile = ("--profile", cluster) if cluster else ()
            return ("minikube", "image", "load", str(archive), *profile)
        case Tool.K3S:
            return ("k3s", "ctr", "images", "import", str(archive))
        case Tool.CONTAINERD:
            return ("ctr", "-n", "k8s.io", "images", "import", str(archive))


def import_archive(command: Sequence[str]) -> None:
    """Print a command and run it; raise if it fails."""
    say(shlex.join(command))
    done = subprocess.run(command, check=False)
    if done.returncode != 0:
        raise ImageError(f"{command[0]} failed with exit status {done.returncode}; see above")
