"""`dryrack driver test`: run the conformance suite against a program."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as Xml

from dryrack.base.errors import ContentError
from dryrack.base.escaping import visible, visible_lines, xml_lines
from dryrack.cli.drivers.commands import ReportFormat
from dryrack.cli.files import UsageError
from dryrack.cli.output import (
    Format,
    print_data,
    print_line,
    print_table,
    say,
    show_progress,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from dryrack.cli.drivers.commands import TestOptions
    from dryrack.kubelet import Result

_NODE = "node-1"
_START_SECONDS_MAX = 60.0
_EXAMPLE = (
    "for example: dryrack driver test -- dra-example-kubeletplugin --node-name {node} "
    "--kubelet-plugins-directory-path {plugins} --kubelet-registrar-directory-path {registry} "
    "--cdi-root {cdi}"
)


def run(options: TestOptions) -> bool:
    """Print the results; return False if the driver breaks the contract."""
    from dryrack.kubelet import REQUIREMENTS

    focus = options.focus
    try:
        chosen = [each for each in REQUIREMENTS if re.search(focus, each.name)]
    except re.error as error:
        raise UsageError(f"--focus {focus!r}: {error}") from None
    if not chosen:
        raise UsageError(f"--focus {focus!r}: no requirement; see: dryrack driver test --list")
    if options.list_only:
        print_table(("REQUIREMENT", "CONTRACT"), [(each.name, each.contract) for each in chosen])
        return True
    if not options.program:
        raise UsageError(f"no program; {_EXAMPLE}")
    with _directory(options.keep) as directory:
        results = asyncio.run(_run(options, directory, len(chosen)))
    _print(results, options.output)
    return not any(each.outcome == "failed" for each in results)


@contextmanager
def _directory(keep: str) -> Iterator[Path]:
    if keep:
        Path(keep).mkdir(parents=True, exist_ok=True)
        yield Path(keep).absolute()
        return
    # The paths of sockets are limited, so the directory has a short one.
    with tempfile.TemporaryDirectory(prefix="dryrack-") as directory:
        yield Path(directory)


async def _run(options: TestOptions, directory: Path, count: int) -> list[Result]:
    from dryrack.client.client import Client
    from dryrack.client.https import connected
    from dryrack.cluster import SystemClock, connection_of
    from dryrack.kubelet import Bench, BenchError, Program, run_suite

    async with _cluster(directory) as kubeconfig:
        kubelet = directory / "kubelet"
        places = {
            "node": _NODE,
            "kubelet": kubelet,
            "plugins": kubelet / "plugins",
            "registry": kubelet / "plugins_registry",
            "cdi": directory / "cdi",
            "kubeconfig": kubeconfig,
        }
        environment = {"NODE_NAME": _NODE, "KUBECONFIG": str(kubeconfig)}
        words = [_fill(each, places) for each in options.program]
        if shutil.which(words[0]) is None:
            raise UsageError(f"{words[0]}: no such program; name it after --")
        connection = connection_of(os.environ, kubeconfig=str(kubeconfig))
        async with connected(connection) as transport:
            bench = Bench(
                Client(transport),
                SystemClock(),
                _NODE,
                kubelet,
                directory / "cdi",
                Program(words, environment, directory / "driver.log"),
                patience=options.patience,
            )
            results: list[Result] = []
            try:
                async with bench.run_driver():
                    async for each in run_suite(bench, focus=options.focus, seed=options.seed):
                        results.append(each)
                        show_progress(f"{len(results)} of {count}: {each.name}")
            except BaseExceptionGroup as errors:
                problems = [each for each in errors.exceptions if isinstance(each, BenchError)]
                if not problems:
                    raise
                raise ContentError(str(problems[0])) from None
            show_progress("")
            return results


@asynccontextmanager
async def _cluster(directory: Path) -> AsyncIterator[Path]:
    """Yield the kubeconfig of a virtual cluster with one node, which stops at the end."""
    environment = {**os.environ, "DRYRACK_HOME": str(directory / "home")}
    command = [sys.executable, "-m", "dryrack", "up", "--nodes", "1", "--no-dashboard"]
    with (directory / "cluster.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, stdout=log, stderr=log
        )
    kubeconfig = directory / "home" / "default" / "kubeconfig"
    try:
        async with asyncio.timeout(_START_SECONDS_MAX):
            while b"ready after" not in (directory / "cluster.log").read_bytes():
                await asyncio.sleep(0.05)
                if process.returncode is not None:
                    raise ContentError((directory / "cluster.log").read_text())
        yield kubeconfig
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


def _fill(word: str, places: Mapping[str, object]) -> str:
    """Return a word with the places; other braces stay."""
    return re.sub(r"\{(\w+)\}", lambda found: str(places.get(found[1], found[0])), word)


def _print(results: Sequence[Result], form: ReportFormat) -> None:
    counts = {name: sum(each.outcome == name for each in results) for name in _COUNTED}
    if form is ReportFormat.JSON:
        document = {"requirements": [each.document() for each in results], "counts": counts}
        print_data(document, Format.JSON)
        return
    if form is ReportFormat.JUNIT:
        print_line(junit_xml(results))
        return
    print_table(
        ("REQUIREMENT", "OUTCOME", "SECONDS", "REASON"),
        [(e.name, str(e.outcome), f"{e.seconds:.2f}", e.reason or "-") for e in results],
    )
    for each in results:
        if each.outcome == "failed":
            say(f"\n{each.name}: {each.contract}\n  sent: {shown(each.sent)}")
            say("\n".join(f"  got:  {shown(line)}" for line in each.got.splitlines()))
            say(f"  run it again: dryrack driver test --focus '^{each.name}$' -- PROGRAM ...")
    say("\n" + ", ".join(f"{count} {name}" for name, count in counts.items()))


_COUNTED = ("passed", "failed", "skipped")


def junit_xml(results: Sequence[Result]) -> str:
    """Return the results as JUnit XML."""
    suite = Xml.Element(
        "testsuite",
        name="dryrack driver test",
        tests=str(len(results)),
        failures=str(sum(each.outcome == "failed" for each in results)),
        skipped=str(sum(each.outcome == "skipped" for each in results)),
    )
    for each in results:
        case = Xml.SubElement(suite, "testcase", name=each.name, time=f"{each.seconds:.3f}")
        if each.outcome == "failed":
            failure = Xml.SubElement(case, "failure", message=visible(each.contract))
            failure.text = visible_lines(f"sent: {each.sent}\ngot: {each.got}")
        elif each.outcome == "skipped":
            Xml.SubElement(case, "skipped", message=visible(each.reason))
    Xml.indent(suite)
    return xml_lines(Xml.tostring(suite, encoding="unicode", xml_declaration=True))
