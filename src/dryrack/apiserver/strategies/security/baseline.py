"""What the level `baseline` forbids: known ways out of a container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dryrack.apiserver.strategies.security.findings import (
    Finding,
    containers,
    context,
    counted,
    plural,
    quoted,
    setters,
)
from dryrack.kinds.quoting import quoted as go_quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Raw = dict[str, Any]

SECCOMP = ("Localhost", "RuntimeDefault")
_APP_ARMOR = ("RuntimeDefault", "Localhost")
_APP_ARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_PREFIX = "container.seccomp.security.alpha.kubernetes.io/"
_CAPABILITIES = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD"),
        *("NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_SE_LINUX = ("", "container_t", "container_init_t", "container_kvm_t")
_SYSCTLS = {
    0: (
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies"),
        *("net.ipv4.ping_group_range", "net.ipv4.ip_unprivileged_port_start"),
    ),
    27: ("net.ipv4.ip_local_reserved_ports",),
    29: (
        *("net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout"),
        *("net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes"),
    ),
    32: ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"),
}


def app_armor(meta: Raw, spec: Raw) -> Finding | None:
    whole = (context(spec).get("appArmorProfile") or {}).get("type")
    of_each = [
        (name, given["appArmorProfile"].get("type") or "")
        for name, _, given in containers(spec)
        if given.get("appArmorProfile")
    ]
    bad = [(name, kind) for name, kind in of_each if kind not in _APP_ARMOR]
    is_bad = whole is not None and whole not in _APP_ARMOR
    values = sorted({kind for _, kind in bad} | ({whole or ""} if is_bad else set()))
    annotations = sorted(_app_armor_annotations(meta.get("annotations") or {}))
    who = setters([name for name, _ in bad], pod=is_bad)
    if annotations:
        who = " and ".join(filter(None, (who, plural("annotation", annotations))))
    values += annotations
    if not who:
        return None
    detail = f"{who} must not set AppArmor profile type to {quoted(values)}"
    return Finding(plural("forbidden AppArmor profile", values), detail)


def _app_armor_annotations(annotations: Raw) -> Iterator[str]:
    for key, value in annotations.items():
        is_fine = value in ("", "runtime/default") or value.startswith("localhost/")
        if key.startswith(_APP_ARMOR_PREFIX) and not is_fine:
            yield f"{key}={go_quoted(value)}"


def capabilities(meta: Raw, spec: Raw) -> Finding | None:
    added = {
        name: [each for each in _added(given) if each not in _CAPABILITIES]
        for name, _, given in containers(spec)
    }
    names = [name for name, given in added.items() if given]
    if not names:
        return None
    values = sorted({each for given in added.values() for each in given})
    detail = f"must not include {quoted(values)} in securityContext.capabilities.add"
    return Finding("non-default capabilities", f"{counted('container', names)} {detail}")


def _added(given: Raw) -> list[str]:
    found: list[str] = (given.get("capabilities") or {}).get("add") or []
    return found


def host_namespaces(meta: Raw, spec: Raw) -> Finding | None:
    found = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    return Finding("host namespaces", ", ".join(found)) if found else None


def host_paths(meta: Raw, spec: Raw) -> Finding | None:
    volumes = spec.get("volumes") or ()
    names = [each.get("name") or "" for each in volumes if each.get("hostPath") is not None]
    return Finding("hostPath volumes", counted("volume", names)) if names else None


def host_ports(meta: Raw, spec: Raw) -> Finding | None:
    opened = {
        name: [str(port["hostPort"]) for port in each.get("ports") or () if port.get("hostPort")]
        for name, each, _ in containers(spec)
    }
    names = [name for name, ports in opened.items() if ports]
    if not names:
        return None
    ports = sorted({port for given in opened.values() for port in given})
    use = plural("uses", names, "use")
    detail = f"{use} {plural('hostPort', ports)} {', '.join(ports)}"
    return Finding("hostPort", f"{counted('container', names)} {detail}")


def hosts_of_probes(meta: Raw, spec: Raw) -> Finding | None:
    asked = {name: set(_hosts(each)) for name, each, _ in containers(spec)}
    names = sorted(name for name, hosts in asked.items() if hosts)
    if not names:
        return None
    hosts = sorted({host for given in asked.values() for host in given})
    use = plural("uses", names, "use")
    detail = f"{use} {counted('probe or lifecycle host', hosts)}"
    return Finding("probe or lifecycle host", f"{counted('container', names)} {detail}")


def _hosts(container: Raw) -> Iterator[str]:
    handlers = [container.get(key) for key in ("livenessProbe", "readinessProbe", "startupProbe")]
    cycle = container.get("lifecycle") or {}
    for handler in (*handlers, cycle.get("postStart"), cycle.get("preStop")):
        for way in ("httpGet", "tcpSocket"):
            host = ((handler or {}).get(way) or {}).get("host")
            if host:
                yield host


def privileged(meta: Raw, spec: Raw) -> Finding | None:
    names = [name for name, _, given in containers(spec) if given.get("privileged")]
    detail = "must not set securityContext.privileged=true"
    return Finding("privileged", f"{counted('container', names)} {detail}") if names else None


def proc_mount(meta: Raw, spec: Raw) -> Finding | None:
    bad = [
        (name, given["procMount"])
        for name, _, given in containers(spec)
        if given.get("procMount") not in (None, "Default")
    ]
    if not bad:
        return None
    who = counted("container", [name for name, _ in bad])
    values = quoted(sorted({kind for _, kind in bad}))
    return Finding("procMount", f"{who} must not set securityContext.procMount to {values}")


def proc_mount_of_host_users(meta: Raw, spec: Raw) -> Finding | None:
    return None if spec.get("hostUsers") is False else proc_mount(meta, spec)


def se_linux_0(meta: Raw, spec: Raw) -> Finding | None:
    return _se_linux(spec, _SE_LINUX)


def se_linux_31(meta: Raw, spec: Raw) -> Finding | None:
    return _se_linux(spec, (*_SE_LINUX, "container_engine_t"))


def _se_linux(spec: Raw, allowed: tuple[str, ...]) -> Finding | None:
    def is_bad(options: Raw) -> bool:
        is_known = (options.get("type") or "") in allowed
        return not is_known or bool(options.get("user") or options.get("role"))

    whole = context(spec).get("seLinuxOptions") or {}
    of_each = [(name, given.get("seLinuxOptions") or {}) for name, _, given in containers(spec)]
    bad = [(name, options) for name, options in of_each if is_bad(options)]
    every = [*([whole] if is_bad(whole) else []), *(options for _, options in bad)]
    if not every:
        return None
    types = sorted({each.get("type") or "" for each in every} - set(allowed))
    data = [counted("type", types)] if types else []
    data += [f"{key} may not be set" for key in ("user", "role") if any(map(_sets(key), every))]
    who = setters([name for name, _ in bad], pod=is_bad(whole))
    detail = f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
    return Finding("seLinuxOptions", detail)


def _sets(key: str) -> Callable[[Raw], bool]:
    return lambda options: bool(options.get(key))


def seccomp_annotations(meta: Raw, spec: Raw) -> Finding | None:
    annotations = meta.get("annotations") or {}
    keys = [_SECCOMP_POD, *(f"{_SECCOMP_PREFIX}{name}" for name, _, _ in containers(spec))]
    bad = sorted(
        {
            f"{key}={go_quoted(annotations[key])}"
            for key in keys
            if key in annotations and not _is_seccomp(annotations[key])
        }
    )
    if not bad:
        return None
    return Finding("seccompProfile", f"forbidden {plural('annotation', bad)} {', '.join(bad)}")


def _is_seccomp(value: str) -> bool:
    return value in ("runtime/default", "docker/default") or value.startswith("localhost/")


def seccomp(meta: Raw, spec: Raw) -> Finding | None:
    """Whoever sets a profile sets one that is there."""
    whole = context(spec).get("seccompProfile")
    of_each = [
        (name, given["seccompProfile"].get("type") or "")
        for name, _, given in containers(spec)
        if given.get("seccompProfile")
    ]
    bad = [(name, kind) for name, kind in of_each if kind not in SECCOMP]
    is_bad = whole is not None and whole.get("type") not in SECCOMP
    if not bad and not is_bad:
        return None
    values = {kind for _, kind in bad} | ({(whole or {}).get("type") or ""} if is_bad else set())
    who = setters([name for name, _ in bad], pod=is_bad)
    detail = f"must not set securityContext.seccompProfile.type to {quoted(sorted(values))}"
    return Finding("seccompProfile", f"{who} {detail}")


def sysctls(minor: int) -> Callable[[Raw, Raw], Finding | None]:
    """What of the kernel may be set as of a version."""
    allowed = {name for since, names in _SYSCTLS.items() if since <= minor for name in names}

    def check(meta: Raw, spec: Raw) -> Finding | None:
        given = (each.get("name") or "" for each in context(spec).get("sysctls") or ())
        bad = [name for name in given if name not in allowed]
        return Finding("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def host_process(meta: Raw, spec: Raw) -> Finding | None:
    def sets(given: Raw) -> bool:
        return bool((given.get("windowsOptions") or {}).get("hostProcess"))

    names = [name for name, _, given in containers(spec) if sets(given)]
    who = setters(names, pod=sets(context(spec)))
    detail = "must not set securityContext.windowsOptions.hostProcess=true"
    return Finding("hostProcess", f"{who} {detail}") if who else None
