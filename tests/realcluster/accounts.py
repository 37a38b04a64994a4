"""Service accounts of limited rights, and kubeconfigs that speak for them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.realcluster import kubeconfig

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.realcluster.controlplane import ControlPlane


class AccountError(Exception):
    """kubectl refused a step; its words are the text."""


def limited(
    plane: ControlPlane, name: str, *, namespace: str, rules: Sequence[dict[str, Any]]
) -> Path:
    """The kubeconfig of a new service account that may do what `rules` say, and nothing else."""
    role = f"{namespace}-{name}"
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    group = "rbac.authorization.k8s.io"
    objects: list[dict[str, Any]] = [
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role},
            "rules": list(rules),
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        },
    ]
    bundle = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    _kubectl(plane, "apply", "-f", "-", stdin=bundle)
    token = _kubectl(plane, "create", "token", name, "-n", namespace, "--duration=1h").strip()
    return kubeconfig.write(
        plane.directory / f"{role}.kubeconfig",
        server=plane.server,
        authority=plane.authority.certificate,
        user=kubeconfig.by_token(token),
    )


def _kubectl(plane: ControlPlane, *arguments: str, stdin: str | None = None) -> str:
    done = plane.kubectl(*arguments, stdin=stdin)
    if done.returncode != 0:
        raise AccountError(done.stderr.strip())
    return done.stdout
