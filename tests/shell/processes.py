"""Scripts as processes of a container in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dryrack.shell.files import Files, Mount, Volume
from dryrack.shell.interpreter import ProgramFunction, Running, Shell
from dryrack.shell.process import Process, Sleep
from dryrack.shell.streams import Call, Pipe, Streams

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass
class Container:
    """A container whose unknown programs run for five seconds."""

    host_name: str = "pod-1"
    address: str = "10.0.0.1"
    user_id: int = 0
    data: Volume = field(default_factory=Volume)

    def find_program(self, name: str) -> ProgramFunction | None:
        return None

    def run_unknown(self, words: Sequence[str], streams: Streams) -> Running:
        streams.error.write(f"unknown: {words[0]}\n".encode())
        yield Sleep(5.0)
        return 0

    def start(
        self,
        script: str,
        *,
        shell: str = "sh",
        stdin: bytes = b"",
        environment: dict[str, str] | None = None,
    ) -> Process:
        """Start a script; nothing of it has run yet."""
        process = Process(0.0)
        root = Volume({"etc": None, "tmp": None, "etc/hostname": b"pod-1\n"})
        variables = {"PATH": "/bin", "HOME": "/root"} | (environment or {})
        runner = Shell(
            process,
            Files(root, (Mount("/data", self.data),)),
            self,
            variables,
            exported=set(variables),
        )
        streams = Streams(
            Pipe.of(stdin),
            Call(lambda data: process.write(1, data)),
            Call(lambda data: process.write(2, data)),
        )
        process.start(runner.run_words([shell, "-c", script], streams))
        return process


def run(script: str, *, until: float = 10_000.0, **options: object) -> Process:
    """Run a script in a new container."""
    process = Container().start(script, **options)  # type: ignore[arg-type]
    process.run(until)
    return process


def output_of(process: Process, descriptor: int | None = None) -> str:
    chunks = process.output
    return b"".join(each.data for each in chunks if descriptor in (None, each.descriptor)).decode()
