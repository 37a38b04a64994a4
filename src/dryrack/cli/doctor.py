"""`dryrack doctor`: check this machine and a cluster, and print how to fix problems."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.errors import DryrackError
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, paint, print_data, print_line, print_table, say, shown
from dryrack.cli.views.sources import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.cli.options import DoctorOptions
    from dryrack.cluster.doctor import ClusterFacts, Finding, Subject, Verdict

_STYLES = {"ok": "green", "warning": "yellow", "failed": "bold red", "unknown": "magenta"}


def run(options: DoctorOptions) -> bool:
    """Run the checks; return whether none failed."""
    if options.print_rbac:
        from dryrack.cluster.rights import doctor as rights

        sys.stdout.write(rights())
        return True
    subject = subject_of(options)
    source = Source(kubeconfig=options.kubeconfig, context=options.context, cluster=options.cluster)
    from dryrack.cluster.doctor import MachineQuestion, State, examine, observe_machine

    question = MachineQuestion(
        kubelet=Path(options.kubelet_dir).absolute(), cdi=Path(options.cdi_dir).absolute()
    )
    findings = examine(_observe_cluster(source, subject), observe_machine(question), subject)
    if options.output is Format.TABLE:
        _print(findings)
    else:
        print_data([each.as_data() for each in findings], options.output)
    return all(each.state is not State.FAILED for each in findings)


def subject_of(options: DoctorOptions) -> Subject:
    """Return what the options ask about; raise `UsageError` for invalid names."""
    from dryrack.cluster.doctor import ENGINES, Subject
    from dryrack.kinds.validation.names import driver_name, label, subdomain

    for each in options.for_:
        if each not in ENGINES:
            raise UsageError(f"--for {each!r}: must be {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    for complaint in label(options.namespace) if options.namespace else ():
        raise UsageError(f"--namespace {options.namespace!r}: {complaint}")
    for problem in driver_name("--driver", options.driver):
        raise UsageError(f"{problem}; {problem.fix}" if problem.fix else str(problem))
    node = options.node or os.environ.get("NODE_NAME", "") or socket.gethostname().lower()
    for complaint in subdomain(node):
        raise UsageError(f"--node {node!r}: {complaint}")
    return Subject(
        engines=frozenset(options.for_),
        account=options.as_,
        driver=options.driver,
        namespace=options.namespace,
        node=node,
    )


def _observe_cluster(source: Source, subject: Subject) -> ClusterFacts | Verdict:
    from dryrack.client.https import connected
    from dryrack.client.kubeconfig import NoContextError
    from dryrack.cluster import SystemClock
    from dryrack.cluster.doctor import fail, observe_cluster, skip

    try:
        connection = source.connection()
    except NoContextError as error:
        is_chosen = source.kubeconfig or source.context or os.environ.get("KUBECONFIG")
        message, _, fix = str(error).partition("; ")
        return fail(message, fix) if is_chosen else skip(f"{message}; {fix}")
    except UsageError:
        raise
    except DryrackError as error:
        return fail(str(error), "check --kubeconfig, --context and --name")

    async def observe() -> ClusterFacts | Verdict:
        async with connected(connection) as transport:
            return await observe_cluster(transport, connection.server, subject, SystemClock())

    return asyncio.run(observe())


def _print(findings: Sequence[Finding]) -> None:
    if sys.stdout.isatty():
        width = max(len(each.check) for each in findings)
        for each in findings:
            state = paint(f"{each.state.value:7}", _STYLES.get(each.state.value, "dim"))
            print_line(f"{state}  {each.check:{width}}  {shown(each.message)}")
            if each.fix:
                print_line(f"{'':{width + 11}}fix: {shown(each.fix)}")
    else:
        rows = [(it.check, it.state.value, it.message, it.fix or "-") for it in findings]
        print_table(("CHECK", "STATE", "MESSAGE", "FIX"), rows)
    counts = Counter(each.state.value for each in findings)
    order = ("ok", "warning", "failed", "unknown", "skipped")
    listed = ", ".join(f"{counts[state]} {state}" for state in order if counts[state])
    say(f"{len(findings)} checks: {listed}")
