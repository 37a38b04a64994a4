"""
The registry of commands, and what their implementations share.

A command is a generator with the signature of `ProgramFunction`. Options that do not change the
result here are accepted and ignored.
"""

from collections.abc import Callable, Sequence

from dryrack.shell.interpreter import ProgramFunction, Running, Shell
from dryrack.shell.streams import Streams

_PATHS = ("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/")
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_PROGRAMS: dict[str, ProgramFunction] = {}


def find_command(name: str) -> ProgramFunction | None:
    """Return the command of a name or of a usual path."""
    # The implementations register themselves, and are loaded with the first command.
    from dryrack.shell import builtins, filters, programs  # noqa: F401

    folder, _, base = name.rpartition("/")
    if folder and f"{folder}/" not in _PATHS:
        return None
    return _PROGRAMS.get(base)


def command(*names: str) -> Callable[[ProgramFunction], ProgramFunction]:
    def register(function: ProgramFunction) -> ProgramFunction:
        for name in names:
            _PROGRAMS[name] = function
        return function

    return register


def simple_command(*names: str) -> Callable[[Callable[[Shell, Streams, list[str]], int]], object]:
    """Register a command that neither waits nor reads its input."""

    def register(function: Callable[[Shell, Streams, list[str]], int]) -> object:
        def program(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
            yield from ()
            return function(shell, streams, list(words[1:]))

        for name in names:
            _PROGRAMS[name] = program
        return function

    return register


def parse_options(arguments: list[str], with_value: str = "") -> tuple[dict[str, str], list[str]]:
    """Split arguments into options of one letter or long options, and the rest."""
    options: dict[str, str] = {}
    rest: list[str] = []
    queue = list(arguments)
    while queue:
        each = queue.pop(0)
        if each == "--":
            return options, rest + queue
        if each.startswith("--"):
            name, _, value = each[2:].partition("=")
            options[name] = value
        elif each.startswith("-") and len(each) > 1:
            for number, letter in enumerate(each[1:], 1):
                if letter in with_value:
                    options[letter] = each[number + 1 :] or (queue.pop(0) if queue else "")
                    break
                options[letter] = ""
        else:
            rest.append(each)
    return options, rest


def print_text(streams: Streams, text: str) -> None:
    streams.output.write(text.encode("utf-8", "surrogateescape"))


def fail(streams: Streams, text: str, status: int = 1) -> int:
    streams.error.write(f"{text}\n".encode())
    return status
