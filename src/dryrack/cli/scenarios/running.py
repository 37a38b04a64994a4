"""Scenarios by name or file: run one after the other, and told as they go."""

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
    """How to run, as it was asked for."""

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
    """Whether every scenario came to what it must."""
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
        raise UsageError("--keep: of one scenario at a time, for each would have a plane")
    if wish.keep and wish.is_on_cluster:
        raise UsageError("--keep: leaves a control plane of its own; leave out the cluster")
    if wish.without and not wish.is_on_cluster:
        raise UsageError("--without: only with --kubeconfig or --context")
    _engines(wish)
    if wish.changes.scheduler_config and (wish.is_on_cluster or wish.keep):
        raise UsageError("--scheduler-config: of a run in this process; leave out the cluster")
    if wish.seed and (wish.is_on_cluster or wish.keep):
        raise UsageError("--seed: decides nothing on a cluster; leave it out")


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
        raise UsageError(f"--without {unknown[0]}: use one of: {', '.join(ENGINES)}")
    return tuple(name for name in ENGINES if name not in without)


@contextmanager
def quiet() -> Iterator[None]:
    """Engines tell an administrator what goes wrong; here the verdict does."""
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
    """The scenario of a file, or one that comes with dryrack."""
    path = Path(name)
    if path.is_file():
        return load_scenario(path)
    if name in packaged_names():
        return load_packaged(name)
    raise UsageError(f"{name}: no such file, and no scenario of dryrack's; {_near(name)}")


def _near(name: str) -> str:
    return hint(name, packaged_names())


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"--junit {file}: {why}") from None
