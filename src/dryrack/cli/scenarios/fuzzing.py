"""`dryrack scenario fuzz`: run random scenarios and write those that fail to files."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.cli.files import UsageError
from dryrack.cli.objects import load_documents
from dryrack.cli.output import Format, many, paint, print_data, print_line, say, shown
from dryrack.cli.scenarios.changes import Changes
from dryrack.cli.scenarios.running import quiet
from dryrack.scenario import FuzzInput, UserWorld, fuzz

if TYPE_CHECKING:
    from dryrack.cli.scenarios.commands import FuzzOptions
    from dryrack.scenario import SeedOutcome
    from dryrack.scheduler import SchedulerSettings


def run(options: FuzzOptions) -> bool:
    """Run the scenarios; return whether all of them pass."""
    folder = Path(options.keep_in)
    if not folder.is_dir():
        raise UsageError(f"--keep-in {options.keep_in}: no such directory; create it first")
    given = FuzzInput(
        world=_world_of(options),
        scheduling=partial(_read_settings, options.scheduler_config),
    )
    # A mistake in the file ends the command before the first scenario.
    given.scheduling()
    seeds = range(options.first, options.first + options.seeds)
    outcomes: list[SeedOutcome] = []
    with quiet():
        for each in fuzz(seeds, options.faults, jobs=options.jobs, given=given):
            outcomes.append(each)
            if each.problem:
                file = folder / f"seed-{each.seed}.yaml"
                file.write_text(each.scenario)
                say(f"seed {each.seed}: wrote the smallest scenario that fails to {file}")
                say(f"run it again: {_command(each.seed, file, options.scheduler_config)}")
            if options.output is Format.TABLE:
                _print(each)
    if options.output is not Format.TABLE:
        print_data({"seeds": [asdict(each) for each in outcomes]}, options.output)
    failed_count = sum(bool(each.problem) for each in outcomes)
    faults = len(outcomes) * options.faults
    writes = sum(each.writes for each in outcomes)
    count = many(len(outcomes), "scenario")
    say(f"{count}, {faults} faults, {writes} writes: {failed_count} failed")
    return not failed_count


def _world_of(options: FuzzOptions) -> UserWorld | None:
    """Return the manifests of -f; None if random workloads are wanted."""
    if not options.files:
        for name in ("nodes", "devices", "instance_type"):
            if getattr(options, name):
                word = name.replace("_", "-")
                raise UsageError(f"--{word}: needs your manifests; add -f FILE")
        return None
    documents = [document for document, _ in load_documents(options.files)]
    for document in documents:
        if document.kind == "Node" and (options.nodes or options.instance_type):
            where = f"{document.file}:{document.line}"
            fix = "leave out --nodes and --instance-type"
            raise UsageError(f"{where}: the manifests have a Node; {fix}")
    return UserWorld(
        objects=tuple(each.raw for each in documents),
        nodes=options.nodes or 3,
        devices=options.devices,
        instance_type=options.instance_type,
    )


def _read_settings(file: str) -> SchedulerSettings | None:
    """Return the settings in a file; None without a file. Each process reads it."""
    return Changes(scheduler_config=file).scheduler_settings()


def _command(seed: int, file: Path, config: str) -> str:
    words = ["dryrack", "scenario", "run", "--seed", str(seed)]
    words += ["--scheduler-config", config] if config else []
    return shlex.join([*words, str(file)])


def _print(each: SeedOutcome) -> None:
    seed = f"seed {each.seed}"
    if not each.problem:
        print_line(f"{paint(seed, 'green')}: {each.writes} writes, {each.seconds:.0f} s")
        return
    print_line(f"{paint(seed, 'bold red')}, step {each.step}:")
    for line in each.problem.splitlines():
        print_line(shown(f"  {line}"))
