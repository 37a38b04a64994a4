"""
The address of a cluster and the credentials for it: kubeconfig files, and the account of a pod.

Files are read as in kubectl: `KUBECONFIG` may name several files, and the first with an entry wins;
paths in a file are relative to that file.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from dryrack.base.errors import DryrackError
from dryrack.base.ports import Clock
from dryrack.client.credentials import Command, Credentials, Fixed, KeyPair, TokenFile
from dryrack.kinds.raw import Raw

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_PATHS = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class KubeconfigError(DryrackError):
    """A kubeconfig is invalid, or has no such cluster."""


class NoContextError(KubeconfigError):
    """No kubeconfig exists, or it has no current context."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The address of a cluster, and the credentials for it."""

    server: str
    credentials: Credentials
    authority: bytes | None = None
    """Certificates in PEM; None for those of the machine."""
    is_verified: bool = True
    server_name: str = ""
    namespace: str = "default"


def kubeconfig_paths(environment: Mapping[str, str], home: Path) -> Sequence[Path]:
    """Return the files that kubectl reads."""
    paths = [Path(each) for each in environment.get("KUBECONFIG", "").split(":") if each]
    return paths or [home / ".kube" / "config"]


def load(paths: Sequence[Path], clock: Clock, *, context: str = "") -> Connection:
    """Return the connection of a context, or of the current one."""
    config = _merge([_read(path) for path in paths if path.exists()])
    if not config:
        raise not_found(paths)
    name = context or config["current-context"]
    if not name:
        raise NoContextError(
            f"kubeconfig {_quote(paths)} has no current context; start a cluster with "
            '"dryrack up --merge", or pass --context NAME'
        )
    chosen = _entry(config, "context", name)
    cluster = _entry(config, "cluster", chosen.get("cluster", ""))
    user = _entry(config, "user", chosen["user"]) if chosen.get("user") else {}
    if not cluster.get("server"):
        raise KubeconfigError(f"kubeconfig cluster {chosen.get('cluster')!r}: no server")
    return Connection(
        server=cluster["server"].rstrip("/"),
        credentials=_credentials(user, cluster, clock),
        authority=_content(cluster, "certificate-authority"),
        is_verified=not cluster.get("insecure-skip-tls-verify"),
        server_name=cluster.get("tls-server-name", ""),
        namespace=chosen.get("namespace") or "default",
    )


def current_context(paths: Sequence[Path]) -> str:
    """Return the name of the current context; "" if there is no context."""
    config = _merge([_read(path) for path in paths if path.exists()])
    return str(config.get("current-context", ""))


def not_found(paths: Sequence[Path]) -> NoContextError:
    return NoContextError(
        f'kubeconfig {_quote(paths)} not found; start a cluster with "dryrack up --merge", '
        "or pass --kubeconfig FILE"
    )


def _quote(paths: Sequence[Path]) -> str:
    return ", ".join(f'"{path}"' for path in paths)


def in_cluster(
    environment: Mapping[str, str], clock: Clock, *, account: Path = SERVICE_ACCOUNT
) -> Connection:
    """Return the connection of a pod to its own cluster."""
    host, port = (environment.get(f"KUBERNETES_SERVICE_{part}", "") for part in ("HOST", "PORT"))
    if not host or not port:
        raise KubeconfigError("not in a cluster: KUBERNETES_SERVICE_HOST and _PORT are not set")
    address = f"[{host}]" if ":" in host else host
    try:
        authority = (account / "ca.crt").read_bytes()
        namespace = (account / "namespace").read_text().strip()
    except OSError as error:
        raise KubeconfigError(f"service account {account}: {error.strerror}") from error
    return Connection(
        server=f"https://{address}:{port}",
        credentials=TokenFile(account / "token", clock),
        authority=authority,
        namespace=namespace or "default",
    )


def _read(path: Path) -> Raw:
    try:
        config = yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise KubeconfigError(f"kubeconfig {path}: {error}") from error
    except RecursionError:
        raise KubeconfigError(f"kubeconfig {path}: nested too deep") from None
    if not isinstance(config, dict):
        raise KubeconfigError(f"kubeconfig {path}: no mapping at the top")
    for kind in ("cluster", "context", "user"):
        entries = config.get(f"{kind}s") or []
        if not isinstance(entries, list) or not all(_is_entry(each, kind) for each in entries):
            raise KubeconfigError(
                f"kubeconfig {path}: {kind}s: expected a list of entries with name and {kind}"
            )
    for kind in ("cluster", "user"):
        for entry in config.get(f"{kind}s") or ():
            values = entry.get(kind) or {}
            entry[kind] = {
                key: str(path.parent / value) if key in _PATHS and value else value
                for key, value in values.items()
            }
    return config


def _is_entry(value: object, kind: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get(kind) or {}, dict)


def _merge(configs: Sequence[Raw]) -> Raw:
    if not configs:
        return {}
    merged: Raw = {"current-context": ""}
    for config in configs:
        merged["current-context"] = merged["current-context"] or config.get("current-context") or ""
        for kind in ("cluster", "context", "user"):
            entries = merged.setdefault(kind, {})
            for entry in config.get(f"{kind}s") or ():
                entries.setdefault(entry.get("name"), entry.get(kind) or {})
    return merged


def _entry(config: Raw, kind: str, name: str) -> Raw:
    entries: dict[str, Raw] = config[kind]
    if name not in entries:
        known = ", ".join(sorted(map(str, entries))) or "none"
        raise KubeconfigError(f"kubeconfig: no {kind} {name!r}; there are: {known}")
    return entries[name]


def _credentials(user: Raw, cluster: Raw, clock: Clock) -> Credentials:
    pair = None
    certificate = _content(user, "client-certificate")
    if certificate is not None:
        key = _content(user, "client-key")
        if key is None:
            raise KubeconfigError("kubeconfig: a client-certificate without a client-key")
        pair = KeyPair(certificate, key)
    if user.get("exec"):
        about = {"server": cluster["server"]}
        authority = _content(cluster, "certificate-authority")
        if authority:
            about["certificate-authority-data"] = base64.b64encode(authority).decode()
        return Command(user["exec"], about, clock)
    if user.get("tokenFile"):
        return TokenFile(Path(user["tokenFile"]), clock, pair)
    if user.get("token"):
        return Fixed(f"Bearer {user['token']}", pair)
    if user.get("username"):
        text = f"{user['username']}:{user.get('password', '')}"
        return Fixed(f"Basic {base64.b64encode(text.encode()).decode()}", pair)
    if user.get("auth-provider"):
        raise KubeconfigError("kubeconfig: auth-provider is no longer known; use exec")
    return Fixed(pair=pair)


def _content(entry: Raw, name: str) -> bytes | None:
    """Return the inline data of an entry, or the content of its file."""
    inline = entry.get(f"{name}-data")
    if inline:
        try:
            return base64.b64decode(inline, validate=True)
        except binascii.Error as error:
            raise KubeconfigError(f"kubeconfig: {name}-data: no base64") from error
    if not entry.get(name):
        return None
    try:
        return Path(entry[name]).read_bytes()
    except OSError as error:
        raise KubeconfigError(f"kubeconfig: {name} {entry[name]}: {error.strerror}") from error
