"""The rules of the level `baseline`, which forbid known privilege escalations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dryrack.apiserver.strategies.security.pod import (
    Finding,
    name_items,
    plural,
    quote_all,
    setters,
)
from dryrack.kinds.paths import get
from dryrack.kinds.text.quoting import quoted as go_quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dryrack.apiserver.strategies.security.pod import Check, Pod
    from dryrack.kinds.raw import Raw

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


def app_armor(pod: Pod) -> Finding | None:
    who, types = pod.find_forbidden("appArmorProfile", _APP_ARMOR)
    annotations = sorted(_app_armor_annotations(pod.annotations))
    if annotations:
        who = " and ".join(filter(None, (who, plural("annotation", annotations))))
    if not who:
        return None
    values = [*types, *annotations]
    detail = f"{who} must not set AppArmor profile type to {quote_all(values)}"
    return Finding(plural("forbidden AppArmor profile", values), detail)


def _app_armor_annotations(annotations: Raw) -> Iterator[str]:
    for key, value in annotations.items():
        is_fine = value in ("", "runtime/default") or value.startswith("localhost/")
        if key.startswith(_APP_ARMOR_PREFIX) and not is_fine:
            yield f"{key}={go_quoted(value)}"


def capabilities(pod: Pod) -> Finding | None:
    detail = added_capabilities(pod, _CAPABILITIES)
    return Finding("non-default capabilities", detail) if detail else None


def added_capabilities(pod: Pod, allowed: Collection[str]) -> str:
    """Return which containers add other capabilities than these, as text; empty if none does."""
    added = {
        each.name: [name for name in _added_capabilities_of(each.context) if name not in allowed]
        for each in pod.containers
    }
    names = [name for name, given in added.items() if given]
    values = quote_all(sorted({each for given in added.values() for each in given}))
    detail = f"must not include {values} in securityContext.capabilities.add"
    return f"{setters(names)} {detail}" if names else ""


def _added_capabilities_of(given: Raw) -> list[str]:
    found: list[str] = get(given, "capabilities.add", [])
    return found


def host_namespaces(pod: Pod) -> Finding | None:
    found = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(key)]
    return Finding("host namespaces", ", ".join(found)) if found else None


def host_paths(pod: Pod) -> Finding | None:
    volumes = get(pod.spec, "volumes", ())
    names = [each.get("name") or "" for each in volumes if each.get("hostPath") is not None]
    return Finding("hostPath volumes", name_items("volume", names)) if names else None


def host_ports(pod: Pod) -> Finding | None:
    opened = {
        each.name: [str(port["hostPort"]) for port in _ports(each.raw) if port.get("hostPort")]
        for each in pod.containers
    }
    names = [name for name, ports in opened.items() if ports]
    if not names:
        return None
    ports = sorted({port for given in opened.values() for port in given})
    use = plural("uses", names, "use")
    detail = f"{use} {plural('hostPort', ports)} {', '.join(ports)}"
    return Finding("hostPort", f"{setters(names)} {detail}")


def _ports(container: Raw) -> list[Raw]:
    found: list[Raw] = get(container, "ports", [])
    return found


def hosts_of_probes(pod: Pod) -> Finding | None:
    asked = {each.name: set(_hosts(each.raw)) for each in pod.containers}
    names = sorted(name for name, hosts in asked.items() if hosts)
    if not names:
        return None
    hosts = sorted({host for given in asked.values() for host in given})
    use = plural("uses", names, "use")
    detail = f"{use} {name_items('probe or lifecycle host', hosts)}"
    return Finding("probe or lifecycle host", f"{setters(names)} {detail}")


def _hosts(container: Raw) -> Iterator[str]:
    handlers = [container.get(key) for key in ("livenessProbe", "readinessProbe", "startupProbe")]
    cycle = get(container, "lifecycle", {})
    for handler in (*handlers, cycle.get("postStart"), cycle.get("preStop")):
        for way in ("httpGet", "tcpSocket"):
            host = ((handler or {}).get(way) or {}).get("host")
            if host:
                yield host


def privileged(pod: Pod) -> Finding | None:
    who = setters(pod.containers_where(lambda given: bool(given.get("privileged"))))
    detail = "must not set securityContext.privileged=true"
    return Finding("privileged", f"{who} {detail}") if who else None


def proc_mount(pod: Pod) -> Finding | None:
    def is_bad(given: Raw) -> bool:
        return given.get("procMount") not in (None, "Default")

    who = setters(pod.containers_where(is_bad))
    kinds = {each.context["procMount"] for each in pod.containers if is_bad(each.context)}
    detail = f"must not set securityContext.procMount to {quote_all(sorted(kinds))}"
    return Finding("procMount", f"{who} {detail}") if who else None


def proc_mount_of_host_users(pod: Pod) -> Finding | None:
    return None if pod.spec.get("hostUsers") is False else proc_mount(pod)


def se_linux_0(pod: Pod) -> Finding | None:
    return _se_linux(pod, _SE_LINUX)


def se_linux_31(pod: Pod) -> Finding | None:
    return _se_linux(pod, (*_SE_LINUX, "container_engine_t"))


def _se_linux(pod: Pod, allowed: tuple[str, ...]) -> Finding | None:
    def is_bad(context: Raw) -> bool:
        options = get(context, "seLinuxOptions", {})
        is_known = (options.get("type") or "") in allowed
        return not is_known or bool(options.get("user") or options.get("role"))

    contexts = (pod.context, *(each.context for each in pod.containers))
    every = [context["seLinuxOptions"] for context in contexts if is_bad(context)]
    if not every:
        return None
    types = sorted({each.get("type") or "" for each in every} - set(allowed))
    data = [name_items("type", types)] if types else []
    for key in ("user", "role"):
        data += [f"{key} may not be set"] if any(each.get(key) for each in every) else []
    who = setters(pod.containers_where(is_bad), pod=is_bad(pod.context))
    detail = f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"
    return Finding("seLinuxOptions", detail)


def seccomp_annotations(pod: Pod) -> Finding | None:
    keys = {_SECCOMP_POD, *(f"{_SECCOMP_PREFIX}{each.name}" for each in pod.containers)}
    bad = sorted(
        f"{key}={go_quoted(value)}"
        for key, value in pod.annotations.items()
        if key in keys and not _is_seccomp(value)
    )
    if not bad:
        return None
    return Finding("seccompProfile", f"forbidden {plural('annotation', bad)} {', '.join(bad)}")


def _is_seccomp(value: str) -> bool:
    return value in ("runtime/default", "docker/default") or value.startswith("localhost/")


def seccomp(pod: Pod) -> Finding | None:
    """Report seccomp profiles of types that are not allowed."""
    who, types = pod.find_forbidden("seccompProfile", SECCOMP)
    detail = f"must not set securityContext.seccompProfile.type to {quote_all(types)}"
    return Finding("seccompProfile", f"{who} {detail}") if who else None


def sysctls(minor: int) -> Check:
    """Return a check that allows the sysctls of a version."""
    allowed = {name for since, names in _SYSCTLS.items() if since <= minor for name in names}

    def check(pod: Pod) -> Finding | None:
        given = (each.get("name") or "" for each in get(pod.context, "sysctls", ()))
        bad = [name for name in given if name not in allowed]
        return Finding("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def host_process(pod: Pod) -> Finding | None:
    def sets(given: Raw) -> bool:
        return bool(get(given, "windowsOptions.hostProcess"))

    who = setters(pod.containers_where(sets), pod=sets(pod.context))
    detail = "must not set securityContext.windowsOptions.hostProcess=true"
    return Finding("hostProcess", f"{who} {detail}") if who else None
