"""The rules of each level, by the version since which they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dryrack.apiserver.strategies.security import baseline, restricted
from dryrack.apiserver.strategies.security.pod import Pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.apiserver.strategies.security.pod import Check, Finding
    from dryrack.apiserver.strategies.security.policies import Standard
    from dryrack.kinds.raw import Raw


class Rule(NamedTuple):
    """A rule since a minor version, and the one of the lower level whose place it takes."""

    since: int
    check: Check
    instead_of: str = ""


# In the order of reports; of several versions of a rule, the last that applies counts.
_BASELINE: dict[str, tuple[Rule, ...]] = {
    "appArmorProfile": (Rule(0, baseline.app_armor),),
    "capabilities": (Rule(0, baseline.capabilities),),
    "hostNamespaces": (Rule(0, baseline.host_namespaces),),
    "hostPathVolumes": (Rule(0, baseline.host_paths),),
    "hostPorts": (Rule(0, baseline.host_ports),),
    "hostProbes": (Rule(34, baseline.hosts_of_probes),),
    "privileged": (Rule(0, baseline.privileged),),
    "procMount": (Rule(0, baseline.proc_mount), Rule(35, baseline.proc_mount_of_host_users)),
    "seLinuxOptions": (Rule(0, baseline.se_linux_0), Rule(31, baseline.se_linux_31)),
    "seccompProfile": (Rule(0, baseline.seccomp_annotations), Rule(19, baseline.seccomp)),
    "sysctls": tuple(Rule(minor, baseline.sysctls(minor)) for minor in (0, 27, 29, 32)),
    "windowsHostProcess": (Rule(0, baseline.host_process),),
}
_RESTRICTED: dict[str, tuple[Rule, ...]] = {
    "allowPrivilegeEscalation": (
        Rule(8, restricted.escalation),
        Rule(25, restricted.unless_windows(restricted.escalation)),
    ),
    "capabilities": (
        Rule(22, restricted.capabilities, "capabilities"),
        Rule(25, restricted.unless_windows(restricted.capabilities), "capabilities"),
    ),
    "procMount": (Rule(35, baseline.proc_mount, "procMount"),),
    "restrictedVolumes": (Rule(0, restricted.volumes, "hostPathVolumes"),),
    "runAsNonRoot": (
        Rule(0, restricted.non_root),
        Rule(35, restricted.unless_own_users(restricted.non_root)),
    ),
    "runAsUser": (
        Rule(23, restricted.user_zero),
        Rule(35, restricted.unless_own_users(restricted.user_zero)),
    ),
    "seccompProfile": (
        Rule(19, restricted.seccomp, "seccompProfile"),
        Rule(25, restricted.unless_windows(restricted.seccomp), "seccompProfile"),
    ),
}


def findings(standard: Standard, meta: Raw, spec: Raw) -> list[Finding]:
    """Return the findings about a pod at a level."""
    if standard.level == "privileged":
        return []
    pod = Pod(meta, spec)
    found = (rule.check(pod) for rule in _rules(standard.level, standard.rules_minor))
    return [each for each in found if each is not None]


def _rules(level: str, minor: int) -> Iterator[Rule]:
    stricter = _applicable_rules(_RESTRICTED, minor) if level == "restricted" else {}
    replaced = {rule.instead_of for rule in stricter.values()}
    for name, rule in _applicable_rules(_BASELINE, minor).items():
        if name not in replaced:
            yield rule
    yield from stricter.values()


def _applicable_rules(rules: dict[str, tuple[Rule, ...]], minor: int) -> dict[str, Rule]:
    held = {name: [each for each in given if each.since <= minor] for name, given in rules.items()}
    return {name: given[-1] for name, given in held.items() if given}
