"""Which programs of containers dryrack runs, by their command and image."""

from dryrack.kinds.paths import get
from dryrack.kinds.raw import Raw
from dryrack.shell.commands import find_command
from dryrack.shell.syntax import ShellSyntaxError, Simple, Text, parse, simple_commands

# What these images run if a container names no command. Nothing is known of other images.
_SERVERS = frozenset(("pause", "nginx", "httpd"))
_SHELL_IMAGES = frozenset(("busybox", "alpine", "bash", "ubuntu", "debian"))

_SILENT = frozenset((":", "[", "exit", "sleep", "test", "trap", "true", "wait"))


def is_known(container: Raw) -> bool:
    """Return True if dryrack runs the program of a container."""
    words = [*get(container, "command", ()), *get(container, "args", ())]
    if words:
        return find_command(str(words[0])) is not None
    return _image_of(container) in _SHELL_IMAGES


def is_silent(container: Raw) -> bool:
    """Return True if a program that dryrack runs only waits, and writes nothing."""
    words = [str(each) for each in (*get(container, "command", ()), *get(container, "args", ()))]
    if len(words) > 2 and words[1].startswith("-") and words[1].endswith("c"):
        try:
            commands = list(simple_commands(parse(words[2])))
        except ShellSyntaxError:
            return False
        return all(_is_silent(each) for each in commands)
    return words[:1] == ["sleep"] or words[:2] == ["tail", "-f"]


def _is_silent(command: Simple) -> bool:
    if not command.words or command.redirections:
        return True
    name = "".join(each.text for each in command.words[0] if isinstance(each, Text))
    return name in _SILENT or (name == "export" and len(command.words) > 1)


def is_server(container: Raw) -> bool:
    """Return True if the image is known to run until it is stopped."""
    words = [*get(container, "command", ()), *get(container, "args", ())]
    return words[:1] == ["pause"] or (not words and _image_of(container) in _SERVERS)


def _image_of(container: Raw) -> str:
    name = str(container.get("image", "")).rpartition("/")[2]
    return name.partition("@")[0].partition(":")[0]
