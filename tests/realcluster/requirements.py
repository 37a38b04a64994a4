"""The requirements of a node on the machine: root, and some of Debian's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

CNI_PLUGINS = Path("/usr/lib/cni")
# A program of each package, by which the package is detected.
_PACKAGES = {
    "runc": "runc",
    "busybox-static": "busybox",
    "iproute2": "ip",
    "iptables": "iptables",
}
_CNI_PACKAGE = "containernetworking-plugins"
# Where Debian has programs for root; others do not look there, and would miss what is installed.
ROOTS_PATH = "/usr/sbin:/sbin"


class NodeRequirementError(Exception):
    """This machine cannot run a node; the text says what it lacks."""


def ensure() -> None:
    """Install missing packages as root; without root, raise an error with the command."""
    missing = _missing()
    if os.geteuid() != 0:
        wanted = f" and the packages {' '.join(missing)}" if missing else ""
        raise NodeRequirementError(
            f"a node needs root (cgroups, mounts, network namespaces){wanted}; "
            "run this as root, or leave the node out"
        )
    if missing:
        _install(missing)


def _missing() -> list[str]:
    path = f"{os.environ['PATH']}:{ROOTS_PATH}"
    missing = [name for name, program in _PACKAGES.items() if not shutil.which(program, path=path)]
    return missing if (CNI_PLUGINS / "ptp").exists() else [*missing, _CNI_PACKAGE]


def _install(packages: list[str]) -> None:
    sys.stderr.write(f"node: installing {' '.join(packages)}\n")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    for command in (["apt-get", "update", "-qq"], install):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise NodeRequirementError(
                f"{done.stderr.strip()}\ninstall by hand: apt-get install {' '.join(packages)}"
            )
