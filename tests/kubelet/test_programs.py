"""Driver programs that run once for each node, as real processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kubelet.programs import short_directory, until

from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster import SystemClock
from dryrack.kubelet import DriverPrograms, ProgramError, find_program
from dryrack.kubelet.programs import LOG, fill, places_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from dryrack.client.timekeeping import Timekeeper

directory = pytest.fixture(short_directory)


def is_alive(process: int) -> bool:
    """Return whether a process runs; one that has ended and is not reaped does not."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@asynccontextmanager
async def running(directory: Path, script: str, clock: Timekeeper) -> AsyncIterator[DriverPrograms]:
    """Run a script of a shell as the program of node-1."""
    programs = DriverPrograms(("/bin/sh", "-c", script), "/a/kubeconfig", clock)
    task = asyncio.create_task(programs.run("node-1", directory))
    try:
        yield programs
    finally:
        task.cancel()
        await asyncio.wait([task])
        await programs.close()


def test_words_have_the_directories_of_the_node(directory: Path) -> None:
    """Other braces stay, and the program gets its node and its cluster."""

    async def scenario() -> None:
        path = directory / LOG
        script = "echo $NODE_NAME $KUBECONFIG {node} {cdi} {registry} ${HOME:+x} {other}; sleep 99"
        async with running(directory, script, SystemClock()):
            await until(lambda: path.exists() and path.read_text().endswith("\n"))
        words = path.read_text().split()
        assert words[:3] == ["node-1", "/a/kubeconfig", "node-1"]
        assert words[3:5] == [f"{directory}/cdi", f"{directory}/plugins_registry"]
        assert words[-1] == "{other}"

    places = places_of("n", directory, "c")
    assert fill("{plugins}/{kubelet}", places) == f"{directory}/plugins/{directory}"
    asyncio.run(scenario())


def test_a_program_that_exits_starts_again_with_the_backoff_of_a_kubelet(directory: Path) -> None:
    """The first restart comes at once, the next ones after 10, 20, 40 seconds."""

    async def scenario() -> None:
        clock = VirtualClock()
        path = directory / LOG

        def starts() -> int:
            return path.read_text().count("start") if path.exists() else 0

        async with running(directory, "echo start; exit 3", clock):
            await until(lambda: starts() == 2)
            for passed, total in ((9, 2), (2, 3), (17, 3), (4, 4)):
                for _ in range(20):
                    await clock.advance(passed / 20)
                if total > starts():
                    await until(lambda total=total: starts() == total)  # type: ignore[misc]
                assert starts() == total

    asyncio.run(scenario())


def test_the_end_stops_the_program_and_what_it_started(directory: Path) -> None:
    """A program that ignores SIGTERM is killed, and its children too."""

    async def scenario() -> None:
        clock = VirtualClock()
        path = directory / LOG
        script = "trap '' TERM; sleep 1000 & echo $! $$; while true; do sleep 1; done"
        programs = DriverPrograms(("/bin/sh", "-c", script), "", clock)
        task = asyncio.create_task(programs.run("node-1", directory))
        await until(lambda: path.exists() and path.read_text().endswith("\n"))
        processes = [int(word) for word in path.read_text().split()]
        task.cancel()
        async with asyncio.timeout(20):
            while not task.done():
                await clock.advance(1)
        await programs.close()
        await until(lambda: not any(map(is_alive, processes)))

    asyncio.run(scenario())


def test_a_reboot_kills_the_program_and_starts_it_at_once(directory: Path) -> None:
    """There is no back-off after a reboot."""

    async def scenario() -> None:
        path = directory / LOG

        def started() -> list[int]:
            return [int(each) for each in path.read_text().split()] if path.exists() else []

        async with running(directory, "echo $$; exec sleep 1000", VirtualClock()) as programs:
            for count in (1, 2, 3):
                await until(lambda count=count: len(started()) == count)  # type: ignore[misc]
                programs.reboot("node-1")
            await until(lambda: len(started()) == 4)
            assert not any(map(is_alive, started()[:3]))

    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_nothing_stays_when_the_process_is_killed(directory: Path) -> None:
    """Neither the program, nor its children, nor the guard survive SIGKILL."""
    code = (
        "import asyncio, sys; from pathlib import Path; from dryrack.cluster import SystemClock; "
        "from dryrack.kubelet import DriverPrograms; "
        "words = ('/bin/sh', '-c', 'sleep 1000 & echo $! $$; wait'); "
        "it = DriverPrograms(words, '', SystemClock()); "
        "asyncio.run(it.run('node-1', Path(sys.argv[1])))"
    )
    path = directory / LOG

    with subprocess.Popen([sys.executable, "-c", code, str(directory)]) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")

        def started() -> list[str]:
            return children.read_text().split()

        async def scenario() -> None:
            await until(lambda: path.exists() and path.read_text().endswith("\n"))
            # The guard is the second child.
            await until(lambda: len(started()) == 2)
            words = [*started(), *path.read_text().split()]
            process.kill()
            await until(lambda: not any(is_alive(int(each)) for each in words))

        asyncio.run(scenario())


def test_a_program_that_does_not_exist_is_refused(directory: Path) -> None:
    """The message names the program and the fix; a name is looked up as a shell does."""
    with pytest.raises(ProgramError, match="no-such: no such program; name an executable file"):
        find_program((str(directory / "no-such"),))
    assert os.path.isabs(find_program(("sh",))[0])
