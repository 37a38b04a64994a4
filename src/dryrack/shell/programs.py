"""Programs that print something, take time, or change files."""

import math
import posixpath
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from dryrack.shell.arithmetic import calculate
from dryrack.shell.commands import (
    UNITS,
    command,
    fail,
    find_command,
    parse_options,
    print_text,
    simple_command,
)
from dryrack.shell.files import FileError
from dryrack.shell.interpreter import Running, Shell
from dryrack.shell.patterns import compile_expression, expression_of
from dryrack.shell.process import Sleep, Until
from dryrack.shell.streams import Streams
from dryrack.shell.syntax import unescape

_DURATION = re.compile(r"(\d{1,15}(?:\.\d{0,9})?|\.\d{1,9})([smhd]?)")


@simple_command("echo")
def _echo(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    end = "\n"
    is_escaped = False
    while arguments and re.fullmatch(r"-[neE]+", arguments[0]):
        option = arguments.pop(0)
        end = "" if "n" in option else end
        is_escaped = "e" in option or is_escaped
    text = " ".join(arguments)
    print_text(streams, (unescape(text) if is_escaped else text) + end)
    return 0


@simple_command("printf")
def _printf(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    """Print the arguments by a format, which is used again while arguments are left."""
    if not arguments:
        return fail(streams, "printf: usage: printf FORMAT [ARGUMENT...]", 2)
    parts = re.split(r"(%[-+ 0#]{0,5}\d{0,4}(?:\.\d{1,4})?[%sdixXofegb])", unescape(arguments[0]))
    values = arguments[1:]
    while True:
        before = len(values)
        for number, part in enumerate(parts):
            if number % 2 and part != "%%":
                try:
                    part = _format_value(part, values.pop(0) if values else "")
                except ValueError:
                    return fail(streams, "printf: invalid number")
            print_text(streams, "%" if part == "%%" and number % 2 else part)
        if not values or len(values) == before:
            return 0


def _format_value(directive: str, value: str) -> str:
    form, kind = directive[:-1], directive[-1]
    if kind in "dixXo":
        return f"{form}{kind}" % int(value or "0", 0)
    if kind in "feg":
        return f"{form}{kind}" % float(value or "0")
    return f"{form}s" % (unescape(value) if kind == "b" else value)


@command("env", "printenv")
def _env(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    arguments = list(words[1:])
    if words[0].endswith("printenv") and arguments:
        status = 0
        for name in arguments:
            value = shell.environment.get(name)
            if value is None:
                status = 1
            else:
                print_text(streams, f"{value}\n")
        return status
    inner = shell.copy()
    while arguments and (arguments[0].startswith("-") or "=" in arguments[0]):
        each = arguments.pop(0)
        if each == "-i":
            inner.exported = set()
        elif each == "-u" and arguments:
            inner.exported.discard(arguments.pop(0))
        elif "=" in each:
            name, _, value = each.partition("=")
            inner.variables[name] = value
            inner.exported.add(name)
    if arguments:
        return (yield from inner.run_words(arguments, streams))
    for name, value in inner.environment.items():
        print_text(streams, f"{name}={value}\n")
    return 0


@simple_command("hostname")
def _hostname(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    name = shell.machine.host_name
    if "-i" in arguments or "-I" in arguments:
        name = shell.machine.address
    print_text(streams, f"{name}\n")
    return 0


@simple_command("date")
def _date(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    shell.process.has_read_clock = True
    now = datetime.fromtimestamp(shell.process.now, UTC)
    form = next(
        (each[1:] for each in arguments if each.startswith("+")), "%a %b %e %H:%M:%S UTC %Y"
    )
    if any(each.startswith(("-I", "--iso", "--rfc-3339")) for each in arguments):
        form = "%Y-%m-%dT%H:%M:%S+00:00" if any("s" in each for each in arguments) else "%Y-%m-%d"
    nanoseconds = f"{int(shell.process.now % 1 * 1e9):09d}"
    form = re.sub(r"%(\d?)N", lambda it: nanoseconds[: int(it[1] or 9)], form)
    form = form.replace("%s", str(int(shell.process.now))).replace("%Z", "UTC")
    print_text(streams, now.strftime(form) + "\n")
    return 0


@simple_command("uname")
def _uname(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    known = {"s": "Linux", "n": shell.machine.host_name, "r": "6.8.0-dryrack", "m": "x86_64"}
    letters = "".join(each.lstrip("-") for each in arguments) or "s"
    letters = "snrm" if "a" in letters else letters
    print_text(streams, " ".join(known.get(each, "") for each in letters) + "\n")
    return 0


@simple_command("id")
def _id(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    user = shell.machine.user_id
    if "-u" in arguments:
        name = "root" if user == 0 else str(user)
        text = f"uid={user}({name}) gid={user}({name})"
    print_text(streams, f"{text}\n")
    return 0


@simple_command("whoami")
def _whoami(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    user = shell.machine.user_id
    print_text(streams, "root\n" if user == 0 else f"{user}\n")
    return 0


@simple_command("seq")
def _seq(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    try:
        numbers = [int(each) for each in arguments if each != "-w"]
    except ValueError:
        return fail(streams, f"seq: invalid number '{arguments[0]}'")
    first, step, last = {1: (1, 1, *numbers), 2: (numbers[0], 1, numbers[-1])}.get(
        len(numbers), [*numbers, 1, 1, 1][:3]
    )
    end = last + (1 if step > 0 else -1)
    print_text(streams, "".join(f"{each}\n" for each in range(first, end, step or 1)[:100_000]))
    return 0


@simple_command("expr")
def _expr(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    """Print the value of an expression of integers, or whether two texts are equal."""
    words = ["==" if each == "=" else each for each in arguments]
    text = " ".join(words)
    try:
        if re.search(r"[^\W\d]", text):
            first, operator, second = words
            value = int({"==": first == second, "!=": first != second}[operator])
        else:
            value = calculate(text, {})
    except (ValueError, KeyError):
        return fail(streams, "expr: syntax error", 2)
    print_text(streams, f"{value}\n")
    return int(value == 0)


@simple_command("basename")
def _basename(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    name = posixpath.basename(arguments[0].rstrip("/")) if arguments else ""
    print_text(streams, name.removesuffix(arguments[1] if len(arguments) > 1 else "") + "\n")
    return 0


@simple_command("dirname")
def _dirname(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    print_text(streams, (posixpath.dirname("".join(arguments[:1])) or ".") + "\n")
    return 0


@simple_command("which", "type")
def _which(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    status = 0
    for name in arguments:
        if find_command(name) is None and shell.machine.find_program(name) is None:
            status = 1
        else:
            print_text(streams, f"/bin/{name}\n")
    return status


# Time


@command("sleep")
def _sleep(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    seconds = 0.0
    for each in words[1:]:
        match = _DURATION.fullmatch(each)
        if each in ("inf", "infinity"):
            seconds = math.inf
        elif match is None:
            return fail(streams, f"sleep: invalid number '{each}'")
        else:
            seconds += float(match[1]) * UNITS[match[2]]
    if len(words) < 2:
        return fail(streams, "sleep: missing operand")
    yield Sleep(seconds)
    return 0


@command("timeout")
def _timeout(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    options, rest = parse_options(list(words[1:3]), "sk")
    del options
    arguments = [*rest, *words[3:]]
    match = _DURATION.fullmatch(arguments[0]) if arguments else None
    if match is None or len(arguments) < 2:
        return fail(streams, "timeout: usage: timeout SECONDS COMMAND", 125)
    task = shell.process.start(shell.copy().run_words(arguments[1:], streams))
    clock = shell.process.start(_clock(float(match[1]) * UNITS[match[2]]))
    yield Until(lambda: task.status is not None or clock.status is not None)
    if task.status is None:
        task.close()
        return 124
    clock.close()
    return task.status


def _clock(seconds: float) -> Running:
    yield Sleep(seconds)
    return 0


@command("cat")
def _cat(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    _, names = parse_options(list(words[1:]))
    status = 0
    for name in names or ["-"]:
        if name in ("-", "/dev/stdin"):
            while part := (yield from streams.input.read()):
                streams.output.write(part)
            continue
        try:
            streams.output.write(shell.files.read(shell.path(name)))
        except FileError as error:
            status = fail(streams, f"cat: {_open_problem(name, error)}")
    return status


def _open_problem(name: str, error: FileError) -> str:
    is_missing = str(error).startswith("No such")
    return f"can't open '{name}': {error}" if is_missing else f"read error: {error}"


@simple_command("ls")
def _ls(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    options, names = parse_options(arguments)
    status = 0
    for name in names or ["."]:
        path = shell.path(name)
        if not shell.files.exists(path):
            status = fail(streams, f"ls: {name}: No such file or directory")
            continue
        is_listed = shell.files.is_directory(path) and "d" not in options
        if len(names) > 1 and is_listed:
            print_text(streams, f"{name}:\n")
        entries = shell.files.list(path) if is_listed else [name]
        if "a" not in options and "A" not in options and is_listed:
            entries = [each for each in entries if not each.startswith(".")]
        if "l" in options and is_listed:
            print_text(streams, f"total {len(entries)}\n")
        for each in entries:
            below = posixpath.join(path, each) if is_listed else path
            print_text(streams, _long_form(shell, below, each) if "l" in options else f"{each}\n")
    return status


def _long_form(shell: Shell, path: str, name: str) -> str:
    date = datetime.fromtimestamp(shell.process.started_at, UTC).strftime("%b %e %H:%M")
    if shell.files.is_directory(path):
        return f"drwxr-xr-x    2 root     root          4096 {date} {name}\n"
    if path.startswith("/dev/"):
        return f"crw-rw-rw-    1 root     root      195,   0 {date} {name}\n"
    size = len(shell.files.read(path))
    return f"-rw-r--r--    1 root     root     {size:9d} {date} {name}\n"


@simple_command("mkdir")
def _mkdir(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    options, names = parse_options(arguments, "m")
    for name in names:
        try:
            shell.files.make_directory(shell.path(name), with_parents="p" in options)
        except FileError as error:
            return fail(streams, f"mkdir: can't create directory '{name}': {error}")
    return 0


@simple_command("rm", "rmdir")
def _rm(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    options, names = parse_options(arguments)
    for name in names:
        path = shell.path(name)
        if shell.files.is_file(path) or "r" in options or "R" in options:
            if shell.files.exists(path):
                shell.files.remove(path)
        elif "f" not in options:
            problem = "is a directory" if shell.files.exists(path) else "No such file or directory"
            return fail(streams, f"rm: can't remove '{name}': {problem}")
    return 0


@simple_command("touch", "mkfifo")
def _touch(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    for name in parse_options(arguments, "td")[1]:
        path = shell.path(name)
        if not shell.files.exists(path):
            shell.files.write(path, b"")
    return 0


@simple_command("cp", "ln")
def _cp(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    return _copy(shell, streams, arguments, is_moved=False)


@simple_command("mv")
def _mv(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    return _copy(shell, streams, arguments, is_moved=True)


def _copy(shell: Shell, streams: Streams, arguments: list[str], *, is_moved: bool) -> int:
    _, names = parse_options(arguments)
    if len(names) < 2:
        return fail(streams, "cp: missing file operand")
    target = shell.path(names[-1])
    for name in names[:-1]:
        source = shell.path(name)
        if not shell.files.exists(source):
            return fail(streams, f"cp: can't stat '{name}': No such file or directory")
        is_below = shell.files.is_directory(target)
        to = posixpath.join(target, posixpath.basename(source)) if is_below else target
        for path in list(shell.files.walk(source)):
            copied = posixpath.normpath(to + path[len(source) :])
            if shell.files.is_directory(path):
                shell.files.make_directory(copied, with_parents=True)
            else:
                shell.files.write(copied, shell.files.read(path))
        if is_moved:
            shell.files.remove(source)
    return 0


@command("find")
def _find(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    arguments = list(words[1:])
    roots: list[str] = []
    while arguments and not arguments[0].startswith(("-", "!", "(")):
        roots.append(arguments.pop(0))
    status = 0
    for root in roots or ["."]:
        start = shell.path(root)
        if not shell.files.exists(start):
            status = fail(streams, f"find: {root}: No such file or directory")
            continue
        for path in shell.files.walk(start):
            shown = root + path[len(start) :] if root != "/" else path
            yield from _find_one(shell, streams, arguments, (path, shown))
    return status


def _find_one(
    shell: Shell, streams: Streams, arguments: list[str], found: tuple[str, str]
) -> Running:
    path, shown = found
    queue = list(arguments)
    has_action = False
    while queue:
        each = queue.pop(0)
        match each:
            case "-name" | "-iname":
                pattern = compile_expression(expression_of(queue.pop(0)))
                if not pattern.fullmatch(posixpath.basename(path)):
                    return 0
            case "-type":
                if (queue.pop(0) == "d") != shell.files.is_directory(path):
                    return 0
            case "-maxdepth" | "-mindepth":
                queue.pop(0)
            case "-print":
                has_action = True
                print_text(streams, f"{shown}\n")
            case "-exec":
                has_action = True
                end = next((i for i, it in enumerate(queue) if it in (";", "+")), len(queue))
                command = [shown if it == "{}" else it for it in queue[:end]]
                del queue[: end + 1]
                yield from shell.run_words(command, streams)
            case "-delete":
                shell.files.remove(path)
                has_action = True
    if not has_action:
        print_text(streams, f"{shown}\n")
    return 0


@simple_command("mount")
def _mount(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    for each in reversed(shell.files.mounts):
        mode = "ro" if each.is_read_only or each.volume.source is not None else "rw"
        source = "overlay" if each.path == "/" else "tmpfs"
        print_text(streams, f"{source} on {each.path} type {source} ({mode},relatime)\n")
    return 0
