"""Run scenarios by name or file, one after the other, and print their progress."""

from __future__ import annotations

import gc
import logging
import shlex
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.base.limits import GARBAGE_THRESHOLDS
from dryrack.base.text import hint
from dryrack.cli.command import join_lists
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, print_data, say
from dryrack.cli.scenarios.changes import Changes
from dryrack.cli.scenarios.commands import DemoOptions, RunOptions
from dryrack.cli.scenarios.junit import junit_xml
from dryrack.cli.scenarios.showing import Narrator, print_summary, print_verdict
from dryrack.cli.views.sources import connection_to
from dryrack.scenario import (
    DEMOS,
    ENGINES,
    ClusterRun,
    EmbeddedRun,
    SilentObserver,
    load_packaged,
    load_scenario,
    packaged_names,
    run_in_real_time,
    run_in_virtual_time,
    run_on_cluster,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dryrack.kinds.releases import Release
    from dryrack.scenario import LoadedScenario, Observer, Outcome


CLUSTER = "scenario"
_START_SECONDS_MAX = 60.0


def run(options: RunOptions) -> bool:
    """Run the scenarios one after the other; return whether all of them pass."""
    is_on_cluster = bool(options.kubeconfig or options.context)
    _check_usage(options, is_on_cluster=is_on_cluster)
    engines = _engines(options)
    changes = Changes(options.replace, options.fleet, options.scheduler_config, options.release)
    release = changes.followed_release
    scenarios = [changes.apply(load(name)) for name in options.names]
    is_table = options.output is Format.TABLE
    outcomes: list[Outcome] = []
    with quiet():
        for loaded in scenarios:
            observer: Observer = Narrator(loaded) if is_table else SilentObserver()
            began = time.monotonic()
            if options.keep:
                outcome = _run_and_keep(loaded, observer, release)
            elif is_on_cluster:
                connection = connection_to(kubeconfig=options.kubeconfig, context=options.context)
                cluster = ClusterRun(connection=connection, engines=engines, observer=observer)
                outcome = run_on_cluster(loaded, cluster)
            else:
                run_embedded = run_in_real_time if options.real_time else run_in_virtual_time
                settings = changes.scheduler_settings()
                embedded = EmbeddedRun(
                    seed=options.seed, observer=observer, scheduling=settings, release=release
                )
                outcome = run_embedded(loaded, embedded)
            if is_table:
                print_verdict(outcome, time.monotonic() - began)
            outcomes.append(outcome)
    if not is_table:
        print_data({"scenarios": [each.document() for each in outcomes]}, options.output)
    elif len(outcomes) > 1:
        print_summary(outcomes)
    if options.junit:
        try:
            Path(options.junit).write_text(junit_xml(outcomes))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise UsageError(f"--junit {options.junit}: {why}; name a writable file") from None
    return all(each.held for each in outcomes)


def _check_usage(options: RunOptions, *, is_on_cluster: bool) -> None:
    """Raise if options exclude each other."""
    if options.keep and len(options.names) > 1:
        raise UsageError("--keep works with one scenario at a time; name only one scenario")
    if options.keep and is_on_cluster:
        fix = "leave out --kubeconfig and --context"
        raise UsageError(f"--keep starts its own virtual cluster; {fix}")
    if options.without and not is_on_cluster:
        raise UsageError("--without needs --kubeconfig or --context; add one, or leave it out")
    if options.scheduler_config and (is_on_cluster or options.keep):
        fix = "leave out --kubeconfig, --context and --keep"
        raise UsageError(f"--scheduler-config works only for a run in this process; {fix}")
    if options.seed and (is_on_cluster or options.keep):
        raise UsageError("--seed has no effect on a cluster; leave it out")
    if options.release and is_on_cluster:
        raise UsageError("--release has no effect on a cluster; leave it out")


def run_demo(options: DemoOptions) -> bool:
    """Run the named scenarios, or the whole demo; return whether all of them pass."""
    return run(
        RunOptions(
            names=options.names or tuple(DEMOS),
            keep=options.keep,
            kubeconfig=options.kubeconfig,
            context=options.context,
            without=options.without,
            release=options.release,
        )
    )


def _run_and_keep(loaded: LoadedScenario, observer: Observer, release: Release | None) -> Outcome:
    """
    Start a virtual cluster, run a scenario there, and leave the cluster running.

    The cluster is another process, as after `dryrack up --detach`, so the scenario runs in real
    time and kubectl shows its results.
    """
    from dryrack.client.kubeconfig import load as load_kubeconfig
    from dryrack.cluster import SystemClock
    from dryrack.cluster.process import state_of

    fleet = loaded.scenario.fleet
    by_type = fleet.catalogue or any(group.profile for group in fleet.nodes)
    devices = [word for each in fleet.devices for word in ("--devices", each)]
    words = ["up", "--detach", "--name", CLUSTER, *(["--catalogue"] if by_type else []), *devices]
    followed = release.value if release else loaded.scenario.release
    words += ["--release", followed] if followed else []
    say(f"$ dryrack {' '.join(words)}")
    command = [sys.executable, "-m", "dryrack", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_START_SECONDS_MAX, check=False
    )
    if done.returncode != 0:
        raise ContentError(done.stderr.strip().removeprefix("dryrack: "))
    path = state_of(CLUSTER).kubeconfig
    connection = load_kubeconfig([path], SystemClock())
    outcome = run_on_cluster(
        loaded, ClusterRun(connection=connection, stays=True, observer=observer)
    )
    say(f"the cluster keeps running; try: export KUBECONFIG={shlex.quote(str(path))}")
    say("  kubectl get pods,resourceclaims -A -o wide")
    say(f"to stop it, run: dryrack down --name {CLUSTER}")
    return outcome


def _engines(options: RunOptions) -> tuple[str, ...]:
    without = [name.strip() for name in join_lists(options.without).split(",") if name.strip()]
    unknown = [name for name in without if name not in ENGINES]
    if unknown:
        fix = f"use one of: {', '.join(ENGINES)}"
        raise UsageError(f"--without {unknown[0]}: unknown component; {fix}")
    return tuple(name for name in ENGINES if name not in without)


@contextmanager
def quiet() -> Iterator[None]:
    """Discard the log lines of components; the results of the scenario report problems."""
    engines = logging.getLogger("dryrack")
    silent = logging.NullHandler()
    thresholds = gc.get_threshold()
    engines.addHandler(silent)
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        engines.removeHandler(silent)


def load(name: str) -> LoadedScenario:
    """Return the scenario of a file, or a packaged scenario."""
    path = Path(name)
    if path.is_file():
        return load_scenario(path)
    if name in packaged_names():
        return load_packaged(name)
    near = hint(name, packaged_names())
    raise UsageError(f"{name}: no file or packaged scenario has this name; {near}")
