"""`dryrack driver test`: run the conformance suite against a program."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dryrack.base.errors import ContentError
from dryrack.cli.drivers.results import print_results
from dryrack.cli.files import UsageError
from dryrack.cli.output import print_table, say, show_progress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from dryrack.cli.drivers.commands import TestOptions
    from dryrack.kubelet import Bench, Result, Site

_NODE = "node-1"
_KUBECONFIG = Path("home", "default", "kubeconfig")
_START_SECONDS_MAX = 60.0
# Leaves room for the registration socket of a driver with a name of usual length.
_DIRECTORY_BYTES_MAX = 48
# A person needs time to start the driver.
_ATTACH_SECONDS_MAX = 600.0
_EXAMPLE = (
    "for example: dryrack driver test -- dra-example-kubeletplugin --node-name {node} "
    "--kubelet-plugins-directory-path {plugins} --kubelet-registrar-directory-path {registry} "
    "--cdi-root {cdi}"
)
# A cluster without these drops the fields that belong to them.
_OPTIONAL_GATES = (
    "DRAPartitionableDevices=false,DRAConsumableCapacity=false,DRADeviceTaints=false,"
    "DRADeviceTaintRules=false,DRADeviceBindingConditions=false"
)


def run(options: TestOptions) -> bool:
    """Print the results; return False if the driver breaks the contract."""
    from dryrack.kubelet import REQUIREMENTS, Site, start_guard

    focus = "^random-sequences$" if options.replay else options.focus
    try:
        chosen = [each for each in REQUIREMENTS if re.search(focus, each.name)]
    except re.error as error:
        raise UsageError(f"--focus {focus!r}: {error}") from None
    if not chosen:
        raise UsageError(f"--focus {focus!r}: no requirement; see: dryrack driver test --list")
    if options.list_only:
        print_table(("REQUIREMENT", "CONTRACT"), [(each.name, each.contract) for each in chosen])
        return True
    settings = _settings(options)
    directory = Path(options.keep or tempfile.mkdtemp(prefix="dryrack-")).absolute()
    if len(os.fsencode(directory)) > _DIRECTORY_BYTES_MAX:
        raise UsageError(
            f"--keep {options.keep}: the path has more than {_DIRECTORY_BYTES_MAX} bytes; sockets "
            "are below it, so use a shorter one"
        )
    directory.mkdir(parents=True, exist_ok=True)
    with start_guard(None if options.keep else directory) as environment:
        site = Site(directory, _NODE, directory / _KUBECONFIG, environment)
        results, driver = asyncio.run(_run(site, options, settings, focus))
    print_results(results, options.output, driver)
    return not any(each.outcome == "failed" for each in results)


def _settings(options: TestOptions) -> Mapping[str, Any]:
    """Return the fields of the bench that options set; raise `UsageError` for wrong ones."""
    from dryrack.kubelet import parse_sequence

    if options.attach == bool(options.program):
        problem = "--attach: omit the program; you start it" if options.attach else "no program"
        raise UsageError(problem if options.attach else f"{problem}; {_EXAMPLE}")
    _check_program(options.program)
    if options.patience <= 0:
        raise UsageError(f"--timeout {options.patience:g}: must be more than 0")
    replay: tuple[str, ...] = ()
    if options.replay:
        try:
            replay = parse_sequence(_read("--replay", options.replay).splitlines())
        except ValueError as error:
            raise UsageError(f"--replay {options.replay}: {error}") from None
    parameters = None
    if options.config:
        try:
            parameters = yaml.safe_load(_read("--config", options.config))
        except yaml.YAMLError as error:
            raise UsageError(f"--config {options.config}: {error}") from None
        if not isinstance(parameters, dict):
            raise UsageError(f"--config {options.config}: must contain one object")
    for name in options.filename:
        _read("-f", name)
    return {
        "patience": options.patience,
        "start_patience": _ATTACH_SECONDS_MAX if options.attach else 0.0,
        "device_class": options.device_class,
        "parameters": parameters,
        "seed": options.seed,
        "sequences": options.sequences,
        "replay": replay,
    }


def _check_program(words: Sequence[str]) -> None:
    if not words or shutil.which(words[0]) is not None:
        return
    path = Path(words[0])
    if path.is_dir():
        raise UsageError(f"{words[0]}: is a directory; name the program after --")
    if path.exists():
        raise UsageError(f"{words[0]}: not executable; run: chmod +x {words[0]}")
    raise UsageError(f"{words[0]}: no such program; name it after --")


def _read(option: str, name: str) -> str:
    try:
        return Path(name).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise UsageError(f"{option} {name}: {reason}") from None


async def _run(
    site: Site, options: TestOptions, settings: Mapping[str, Any], focus: str
) -> tuple[list[Result], str]:
    from dryrack.kubelet import BenchError, run_suite

    async with _bench(site, options, settings, "") as bench:

        @asynccontextmanager
        async def run_limited() -> AsyncIterator[Bench]:
            directory = site.directory / "limited"
            other_site = replace(site, directory=directory, kubeconfig=directory / _KUBECONFIG)
            async with _bench(other_site, options, settings, _OPTIONAL_GATES) as other:
                yield other

        bench.limited = run_limited
        if options.attach:
            _show_places(site)
        results: list[Result] = []
        try:
            async with bench.run_driver():
                async for each in run_suite(bench, focus=focus):
                    results.append(each)
                    show_progress(f"{len(results)}: {each.name} {each.outcome}")
        except BenchError as error:
            raise ContentError(str(error)) from None
        show_progress("")
        return results, bench.driver


@asynccontextmanager
async def _bench(
    site: Site, options: TestOptions, settings: Mapping[str, Any], feature_gates: str
) -> AsyncIterator[Bench]:
    """Yield a bench with a cluster of its own."""
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import SystemClock, connection_of
    from dryrack.kubelet import Bench

    site.make_directories()
    words = options.program
    has_uid = any("{uid}" in each for each in words)
    async with _cluster(site, options.filename, feature_gates):
        connection = connection_of(os.environ, kubeconfig=str(site.kubeconfig))
        async with connected(connection) as transport:
            bench = Bench(
                Client(transport),
                SystemClock(),
                _NODE,
                site.kubelet,
                site.cdi,
                site.program(words, "driver.log") if words else None,
                site.program(words, "driver-2.log") if has_uid else None,
                **settings,
            )
            if options.change:
                bench.change = site.program(("sh", "-c", options.change), "change.log")
            yield bench
            if bench.program is not None:
                await bench.program.stop()


def _show_places(site: Site) -> None:
    """Print what a person needs to start the driver."""
    say("Start the driver now, for example in another terminal, with these places:\n")
    for name, place in site.places.items():
        say(f"  {name:<12}{place}")
    say(f"\n  export NODE_NAME={_NODE} KUBECONFIG={site.kubeconfig}\n")


@asynccontextmanager
async def _cluster(site: Site, files: Sequence[str], feature_gates: str) -> AsyncIterator[None]:
    """Run a virtual cluster with one node for the length of a block."""
    directory = site.directory
    home = {"DRYRACK_HOME": str(directory / "home")}
    command = [sys.executable, "-m", "dryrack", "up", "--nodes", "1", "--no-dashboard"]
    command += [word for name in files for word in ("--config", name)]
    if feature_gates:
        command += ["--feature-gates", feature_gates]
    log_file = directory / "cluster.log"
    with log_file.open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, **site.environment, **home},
            stdout=log,
            stderr=log,
            # Ctrl-C reaches this process, which stops the cluster.
            start_new_session=True,
        )
    try:
        await _until_ready(process, log_file)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def _until_ready(process: asyncio.subprocess.Process, log: Path) -> None:
    try:
        async with asyncio.timeout(_START_SECONDS_MAX):
            while "ready after" not in _content(log):
                await asyncio.sleep(0.05)
                if process.returncode is not None:
                    raise ContentError(f"the cluster did not start: {_content(log).strip()}")
    except TimeoutError:
        raise ContentError(f"the cluster did not start within {_START_SECONDS_MAX:g} s") from None


def _content(log: Path) -> str:
    return log.read_text(errors="replace")
