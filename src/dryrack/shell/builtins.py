"""The builtin commands of the shell."""

import fnmatch
import posixpath
import re
from collections.abc import Sequence

from dryrack.shell.commands import (
    command,
    fail,
    find_command,
    parse_options,
    print_text,
    simple_command,
)
from dryrack.shell.interpreter import Running, Shell
from dryrack.shell.patterns import compile_expression
from dryrack.shell.process import Until
from dryrack.shell.streams import Streams, read_line
from dryrack.shell.syntax import parse

_SHELLS = ("sh", "bash", "ash", "dash")


@simple_command("true", ":")
def _true(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    return 0


@simple_command("false")
def _false(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    return 1


@command("exit", "return", "break", "continue")
def _leave(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    usual = 1 if words[0] in ("break", "continue") else shell.status
    text = words[1] if len(words) > 1 else str(usual)
    if not re.fullmatch(r"-?\d+", text):
        streams.error.write(f"{shell.name}: {words[0]}: Illegal number: {text}\n".encode())
        text = "2"
    yield from ()
    shell.leave(words[0], int(text) & 0xFF)


@command("exec")
def _exec(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    if len(words) == 1:
        return 0
    status = yield from shell.run_words(words[1:], streams)
    shell.leave("exit", status)


@command("eval")
def _eval(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:

    return (yield from shell.execute(parse(" ".join(words[1:])), streams))


@command("command", "builtin", "nohup", "sudo")
def _run_command(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    if words[1:2] in (["-v"], ["-V"]):
        status = 1
        for name in words[2:]:
            if name in shell.functions or find_command(name) or shell.machine.find_program(name):
                print_text(streams, f"{name}\n")
                status = 0
        return status
    return (yield from shell.run_words(words[1:], streams))


@command(".", "source")
def _source(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:

    if len(words) < 2:
        return 2
    script = shell.files.read(shell.path(words[1])).decode(errors="replace")
    return (yield from shell.execute(parse(script), streams))


@command(*_SHELLS)
def _shell(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    """Run `sh -c SCRIPT [NAME ARGUMENT…]`, `sh FILE`, or the script on the input."""
    inner = shell.copy()
    inner.name = posixpath.basename(words[0])
    inner.functions = {}
    inner.options = set()
    inner.variables = {
        key: shell.variables[key] for key in shell.exported if key in shell.variables
    }
    # The container's own shell handles the signals that the container gets.
    inner.is_subshell = shell.is_subshell
    arguments = list(words[1:])
    is_script = False
    while arguments and arguments[0][:1] in "-+" and len(arguments[0]) > 1:
        option = arguments.pop(0)
        if option in ("-o", "+o") and arguments:
            inner.options.add(arguments.pop(0))
        elif not option.startswith("--"):
            is_script = is_script or "c" in option
            inner.options |= set(option[1:]) & set("exu")
    if is_script:
        if not arguments:
            return fail(streams, f"{inner.name}: -c requires an argument", 2)
        script = arguments[0]
        inner.name = arguments[1] if len(arguments) > 1 else inner.name
        inner.arguments = arguments[2:]
    elif arguments:
        script = shell.files.read(shell.path(arguments[0])).decode(errors="replace")
        inner.arguments = arguments[1:]
    else:
        return (yield from _interactive(inner, streams))
    return (yield from inner.run_script(script, streams))


def _interactive(shell: Shell, streams: Streams) -> Running:
    """Run the commands on the input, line by line."""
    text = ""
    shell.process.is_prompting = shell.process.is_terminal
    while not shell.has_left:
        if shell.process.is_terminal:
            print_text(streams, "> " if text else f"{shell.directory} # ")
        if not (line := (yield from read_line(streams.input))):
            break
        text += line.decode(errors="replace")
        if (yield from shell.run_line(text, streams)):
            text = ""
    return shell.status


@simple_command("export", "readonly")
def _export(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    names = [each for each in arguments if not each.startswith("-")]
    for each in names:
        name, assigns, value = each.partition("=")
        if assigns:
            shell.variables[name] = value
        shell.exported.add(name)
    if not names:
        for name, value in sorted(shell.environment.items()):
            if shell.name.endswith("bash"):
                quoted = re.sub(r"([$`\"\\])", r"\\\1", value)
                print_text(streams, f'declare -x {name}="{quoted}"\n')
            else:
                quoted = value.replace("'", "'\"'\"'")
                print_text(streams, f"export {name}='{quoted}'\n")
    return 0


@simple_command("local", "declare", "typeset")
def _local(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    for each in arguments:
        name, assigns, value = each.partition("=")
        if assigns:
            shell.variables[name] = value
    return 0


@simple_command("unset")
def _unset(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    for name in arguments:
        shell.variables.pop(name, None)
        shell.exported.discard(name)
    return 0


@simple_command("set")
def _set(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    if not arguments:
        for name, value in sorted(shell.variables.items()):
            quoted = value.replace("'", "'\"'\"'")
            print_text(streams, f"{name}='{quoted}'\n")
        return 0
    while arguments:
        each = arguments.pop(0)
        if each == "--" or each[:1] not in "-+":
            shell.arguments = arguments if each == "--" else [each, *arguments]
            return 0
        names = {arguments.pop(0)} if each[1:] == "o" and arguments else set(each[1:]) - {"o"}
        if "o" in each[1:] and each[1:] != "o" and arguments:
            names.add(arguments.pop(0))
        long = {"errexit": "e", "nounset": "u", "xtrace": "x"}
        names = {long.get(name, name) for name in names}
        shell.options = shell.options | names if each[0] == "-" else shell.options - names
    return 0


@simple_command("shift")
def _shift(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    count = int(arguments[0]) if arguments else 1
    if count > len(shell.arguments):
        return 1
    del shell.arguments[:count]
    return 0


@simple_command("trap")
def _trap(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    words = [each for each in arguments if each != "--"]
    numbers = {"0": "EXIT", "1": "HUP", "2": "INT", "3": "QUIT", "9": "KILL", "15": "TERM"}
    for each in words[1:]:
        name = numbers.get(each, each.upper().removeprefix("SIG"))
        if words[0] == "-":
            shell.traps.pop(name, None)
        else:
            # An empty handler ignores the signal.
            shell.traps[name] = words[0] or ":"
    if not shell.is_subshell:
        shell.process.handles_signals = "TERM" in shell.traps
    return 0


@command("wait")
def _wait(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    jobs = shell.jobs
    if len(words) > 1 and words[1].isdigit():
        number = int(words[1]) - 2
        jobs = [jobs[number]] if 0 <= number < len(jobs) else []
    yield Until(lambda: all(each.status is not None for each in jobs))
    if shell.process.signals:
        yield from shell.handle_signals(streams)
        return 143
    return (jobs[-1].status or 0) if jobs and len(words) > 1 else 0


@simple_command("kill")
def _kill(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    targets = [each for each in arguments if not each.startswith("-")]
    names = [each[1:].removeprefix("SIG") for each in arguments if each.startswith("-")]
    name = (
        {"15": "TERM", "9": "KILL", "2": "INT", "0": "0"}.get(*(names * 2)[:2]) if names else "TERM"
    )
    for target in targets:
        number = int(target) - 2 if target.isdigit() else -1
        if target == "1":
            if name == "KILL":
                shell.process.kill(137)
            elif name != "0":
                shell.process.signal(name or "TERM")
        elif 0 <= number < len(shell.jobs):
            if name != "0":
                shell.jobs[number].close()
        else:
            return fail(streams, f"{shell.name}: can't kill pid {target}: No such process")
    return 0


@command("read")
def _read(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    options, names = parse_options(list(words[1:]), "ptnd")
    if "p" in options:
        streams.error.write(options["p"].encode())
    line = yield from read_line(streams.input)
    text = line.decode(errors="replace").removesuffix("\n")
    names = names or ["REPLY"]
    parts = text.split(maxsplit=len(names) - 1) if len(names) > 1 else [text.strip(" \t")]
    for number, name in enumerate(names):
        shell.variables[name] = parts[number] if number < len(parts) else ""
    return 0 if line.endswith(b"\n") else 1


@simple_command("cd")
def _cd(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    path = shell.path(arguments[0] if arguments else shell.variables.get("HOME", "/root"))
    if not shell.files.is_directory(path):
        problem = "No such file or directory"
        return fail(streams, f"{shell.name}: cd: can't cd to {path}: {problem}")
    shell.directory = path
    shell.variables["PWD"] = path
    return 0


@simple_command("pwd")
def _pwd(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    print_text(streams, f"{shell.directory}\n")
    return 0


@simple_command("umask", "ulimit", "chmod", "chown", "chgrp", "sync", "stty", "clear")
def _ignore(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    return 0


@simple_command("test", "[", "[[")
def _test(shell: Shell, streams: Streams, arguments: list[str]) -> int:
    words = [each for each in arguments if each not in ("]", "]]")]
    try:
        return int(not _holds(shell, words))
    except ValueError as error:
        return fail(streams, f"{shell.name}: [: {error}", 2)


def _holds(shell: Shell, words: list[str]) -> bool:
    for operator in ("||", "-o", "&&", "-a"):
        if operator in words[1:]:
            at = words.index(operator, 1)
            first = _holds(shell, words[:at])
            if operator in ("||", "-o"):
                return first or _holds(shell, words[at + 1 :])
            return first and _holds(shell, words[at + 1 :])
    if words[:1] == ["!"]:
        return not _holds(shell, words[1:])
    if words[:1] == ["("] and words[-1:] == [")"]:
        return _holds(shell, words[1:-1])
    match words:
        case []:
            return False
        case [text]:
            return text != ""
        case ["-z", text]:
            return text == ""
        case ["-n", text]:
            return text != ""
        case ["-v", name]:
            return name in shell.variables
        case ["-t", _]:
            return False
        case [operator, name]:
            return _holds_for_file(shell, operator, shell.path(name))
        case [left, operator, right]:
            return _compare(left, operator, right)
    raise ValueError(f"{words[0]}: unknown operand")


def _holds_for_file(shell: Shell, operator: str, path: str) -> bool:
    match operator:
        case "-e" | "-r" | "-w":
            return shell.files.exists(path)
        case "-f":
            return shell.files.is_file(path)
        case "-d" | "-x":
            return shell.files.is_directory(path)
        case "-s":
            return shell.files.is_file(path) and bool(shell.files.read(path))
        case "-c":
            return path.startswith("/dev/") and shell.files.is_file(path)
        case "-L" | "-h" | "-b" | "-p" | "-S":
            return False
    raise ValueError(f"{operator}: unknown operand")


def _compare(left: str, operator: str, right: str) -> bool:
    match operator:
        case "==" if set(right) & set("*?"):
            return fnmatch.fnmatchcase(left, right)
        case "=" | "==":
            return left == right
        case "!=":
            return left != right
        case "=~":
            return compile_expression(right).search(left) is not None
        case "<":
            return left < right
        case ">":
            return left > right
    try:
        a, b = int(left), int(right)
    except ValueError:
        raise ValueError(
            f"bad number '{left if not left.lstrip('-').isdigit() else right}'"
        ) from None
    match operator:
        case "-eq":
            return a == b
        case "-ne":
            return a != b
        case "-lt":
            return a < b
        case "-le":
            return a <= b
        case "-gt":
            return a > b
        case "-ge":
            return a >= b
    raise ValueError(f"{operator}: unknown operand")
