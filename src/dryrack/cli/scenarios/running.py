"""Run scenarios by name or file, one after the other, and print their progress."""

from __future__ import annotations

import gc
import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.limits import GARBAGE_THRESHOLDS
from dryrack.base.text import hint
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, print_data
from dryrack.cli.scenarios.changes import Changes
from dryrack.cli.scenarios.junit import junit_xml
from dryrack.cli.scenarios.showing import Narrator, print_summary, print_verdict
from dryrack.cli.views.connecting import connection_to
from dryrack.scenario import (
    ENGINES,
    ClusterRun,
    EmbeddedRun,
    Nobody,
    load_packaged,
    load_scenario,
    packaged_names,
    run_in_real_time,
    run_in_virtual_time,
    run_on_cluster,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dryrack.scenario import LoadedScenario, Observer, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The values of the options."""

    seed: int = 0
    real_time: bool = False
    keep: bool = False
    kubeconfig: str = ""
    context: str = ""
    without: str = ""
    junit: str = ""
    output: Format = Format.TABLE
    changes: Changes = field(default_factory=Changes)

    @property
    def is_on_cluster(self) -> bool:
        return bool(self.kubeconfig or self.context)


def run(names: Sequence[str], wish: Wish) -> bool:
    """Run the scenarios; return whether all of them pass."""
    _check(names, wish)
    loaded = [wish.changes.made_to(load(name)) for name in names]
    with quiet():
        outcomes = [_run(each, wish) for each in loaded]
    if wish.output is not Format.TABLE:
        print_data({"scenarios": [each.document() for each in outcomes]}, wish.output)
    elif len(outcomes) > 1:
        print_summary(outcomes)
    if wish.junit:
        _write(wish.junit, junit_xml(outcomes))
    return all(each.held for each in outcomes)


def _check(names: Sequence[str], wish: Wish) -> None:
    if wish.keep and len(names) > 1:
        raise UsageError("--keep works with one scenario at a time; name only one scenario")
    if wish.keep and wish.is_on_cluster:
        fix = "leave out --kubeconfig and --context"
        raise UsageError(f"--keep starts its own virtual cluster; {fix}")
    if wish.without and not wish.is_on_cluster:
        raise UsageError("--without needs --kubeconfig or --context; add one, or leave it out")
    _engines(wish)
    if wish.changes.scheduler_config and (wish.is_on_cluster or wish.keep):
        fix = "leave out --kubeconfig, --context and --keep"
        raise UsageError(f"--scheduler-config works only for a run in this process; {fix}")
    if wish.seed and (wish.is_on_cluster or wish.keep):
        raise UsageError("--seed has no effect on a cluster; leave it out")


def _run(loaded: LoadedScenario, wish: Wish) -> Outcome:
    tells = wish.output is Format.TABLE
    observer: Observer = Narrator(loaded) if tells else Nobody()
    began = time.monotonic()
    outcome = _outcome(loaded, wish, observer)
    if tells:
        print_verdict(outcome, time.monotonic() - began)
    return outcome


def _outcome(loaded: LoadedScenario, wish: Wish, observer: Observer) -> Outcome:
    if wish.keep:
        from dryrack.cli.scenarios.keeping import run_and_keep

        return run_and_keep(loaded, observer)
    if wish.is_on_cluster:
        connection = connection_to(kubeconfig=wish.kubeconfig, context=wish.context)
        there = ClusterRun(connection=connection, engines=_engines(wish), observer=observer)
        return run_on_cluster(loaded, there)
    run_embedded = run_in_real_time if wish.real_time else run_in_virtual_time
    how = EmbeddedRun(seed=wish.seed, observer=observer, scheduling=wish.changes.scheduling())
    return run_embedded(loaded, how)


def _engines(wish: Wish) -> tuple[str, ...]:
    without = [name.strip() for name in wish.without.split(",") if name.strip()]
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
    raise UsageError(f"{name}: no file or packaged scenario has this name; {_near(name)}")


def _near(name: str) -> str:
    return hint(name, packaged_names())


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"--junit {file}: {why}; name a writable file") from None
