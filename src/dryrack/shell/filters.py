"""Programs that read text and print a part of it."""

import math
import re
from collections.abc import Generator, Sequence

from dryrack.shell.archive import pack, unpack
from dryrack.shell.commands import (
    command,
    fail,
    parse_options,
    print_text,
)
from dryrack.shell.files import FileError
from dryrack.shell.interpreter import Running, Shell
from dryrack.shell.patterns import compile_expression, to_extended
from dryrack.shell.process import Pause, Sleep
from dryrack.shell.streams import Pipe, Streams, read_all, read_line
from dryrack.shell.syntax import unescape


def _lines(
    shell: Shell, streams: Streams, names: Sequence[str]
) -> Generator[Pause, None, list[str]]:
    """Read the lines of files, or of the input."""
    if not names:
        content = yield from read_all(streams.input)
    else:
        content = b""
        for name in names:
            path = shell.path(name)
            content += (
                (yield from read_all(streams.input)) if name == "-" else shell.files.read(path)
            )
    return content.decode("utf-8", "surrogateescape").splitlines(keepends=True)


@command("grep", "egrep", "fgrep")
def _grep(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    options, rest = parse_options(list(words[1:]), "emABC")
    pattern = options["e"] if "e" in options else (rest.pop(0) if rest else "")
    if "F" in options or words[0].endswith("fgrep"):
        pattern = re.escape(pattern)
    elif not ({"E", "P"} & options.keys() or words[0].endswith("egrep")):
        pattern = to_extended(pattern)
    if "w" in options:
        pattern = rf"\b(?:{pattern})\b"
    if "x" in options:
        pattern = f"(?:{pattern})$"
    try:
        expression = compile_expression(pattern, ignores_case="i" in options)
    except ValueError as error:
        return fail(streams, f"grep: bad regex '{pattern}': {error}", 2)
    count = 0
    if rest:
        source = Pipe.of("".join((yield from _lines(shell, streams, rest))).encode())
    else:
        source = streams.input
    number = 0
    while line := (yield from read_line(source)):
        number += 1
        text = line.decode(errors="replace").removesuffix("\n")
        match = expression.match(text) if "x" in options else expression.search(text)
        if (match is None) != ("v" in options):
            continue
        count += 1
        if not {"q", "c"} & options.keys():
            shown = match[0] if "o" in options and match else text
            print_text(streams, (f"{number}:" if "n" in options else "") + f"{shown}\n")
        if "q" in options or ("m" in options and count >= int(options["m"] or 0)):
            break
    if "c" in options:
        print_text(streams, f"{count}\n")
    return int(count == 0)


@command("head")
def _head(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    options, rest = _count_options(words[1:])
    if "c" in options:
        content = "".join((yield from _lines(shell, streams, rest)))
        print_text(streams, content[: int(options["c"])])
        return 0
    left = int(options.get("n", "10"))
    if rest:
        print_text(streams, "".join((yield from _lines(shell, streams, rest))[:left]))
        return 0
    while left > 0 and (line := (yield from read_line(streams.input))):
        streams.output.write(line)
        left -= 1
    return 0


def _count_options(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Split options, where `-5` is `-n 5`."""
    return parse_options([re.sub(r"^-(\d+)$", r"-n\1", each) for each in words], "nc")


@command("tail")
def _tail(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    options, rest = _count_options(words[1:])
    follows = {"f", "F", "follow"} & options.keys()
    if follows and rest == ["/dev/null"]:
        yield Sleep(math.inf)
    lines = yield from _lines(shell, streams, rest)
    count = options.get("n", "10")
    print_text(
        streams,
        "".join(
            lines[int(count) - 1 :]
            if count.startswith("+")
            else lines[-int(count) :]
            if int(count)
            else []
        ),
    )
    size = len("".join(lines))
    while follows and rest:
        yield Sleep(1.0)
        content = "".join((yield from _lines(shell, streams, rest)))
        print_text(streams, content[size:])
        size = len(content)
    return 0


@command("wc")
def _wc(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    options, rest = parse_options(list(words[1:]))
    text = "".join((yield from _lines(shell, streams, rest)))
    counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode())}
    shown = [str(value) for key, value in counts.items() if not options or key in options]
    print_text(streams, " ".join([*shown, *rest[:1]]) + "\n")
    return 0


@command("sort")
def _sort(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    options, rest = parse_options(list(words[1:]), "kt")
    lines = [each.removesuffix("\n") for each in (yield from _lines(shell, streams, rest))]

    def key(line: str) -> tuple[float, str]:
        match = re.match(r"\s*-?\d+(\.\d+)?", line)
        return (float(match[0]) if match and "n" in options else 0.0, line)

    lines.sort(key=key, reverse="r" in options)
    if "u" in options:
        lines = list(dict.fromkeys(lines))
    print_text(streams, "".join(f"{each}\n" for each in lines))
    return 0


@command("cut")
def _cut(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    options, rest = parse_options(list(words[1:]), "dfcb")
    ranges = options.get("f") or options.get("c") or options.get("b") or ""
    delimiter = options.get("d") or "\t"
    for line in (yield from _lines(shell, streams, rest)):
        text = line.removesuffix("\n")
        if "f" not in options:
            parts, joint = list(text), ""
        elif delimiter in text:
            parts, joint = text.split(delimiter), delimiter
        else:
            print_text(streams, f"{text}\n")
            continue
        chosen: list[str] = []
        for each in ranges.split(","):
            first, dash, last = each.partition("-")
            end = int(last or len(parts)) if dash else int(first or 1)
            chosen += parts[int(first or 1) - 1 : end]
        print_text(streams, joint.join(chosen) + "\n")
    return 0


@command("tr")
def _tr(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    options, sets = parse_options(list(words[1:]))
    text = (yield from read_all(streams.input)).decode("utf-8", "surrogateescape")
    first, second = ([_character_set(each) for each in sets] + ["", ""])[:2]
    if "d" in options:
        text = "".join(each for each in text if each not in first)
    else:
        second += second[-1:] * (len(first) - len(second))
        text = text.translate(str.maketrans(first, second[: len(first)]))
    print_text(streams, text)
    return 0


def _character_set(text: str) -> str:
    text = unescape(text)
    for name, value in (("upper", "A-Z"), ("lower", "a-z"), ("digit", "0-9"), ("space", " \t\n")):
        text = text.replace(f"[:{name}:]", value)
    return re.sub(
        r"(.)-(.)",
        lambda it: "".join(map(chr, range(ord(it[1]), ord(it[2]) + 1))),
        text,
        flags=re.S,
    )


@command("sed")
def _run_sed(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    """Run the commands `s/…/…/`, `p`, `d` and line numbers; anything else is not known."""
    options, rest = parse_options(list(words[1:]), "e")
    script = options["e"] if "e" in options else (rest.pop(0) if rest else "")
    substitution = re.fullmatch(r"s(.)(.*?)(?<!\\)\1(.*?)(?<!\\)\1([gip]*)", script, re.S)
    selection = re.fullmatch(r"(\d+)?(?:,(\d+|\$))?([pd])", script)
    if substitution is None and selection is None:
        return (yield from shell.machine.run_unknown(words, streams))
    result: list[str] = []
    for number, line in enumerate((yield from _lines(shell, streams, rest)), 1):
        if substitution is not None:
            source = (
                substitution[2] if {"E", "r"} & options.keys() else to_extended(substitution[2])
            )
            replaced = re.sub(r"(?<!\\)&", r"\\g<0>", substitution[3])
            count = 0 if "g" in substitution[4] else 1
            try:
                expression = compile_expression(source, ignores_case="i" in substitution[4])
            except ValueError as error:
                return fail(streams, f"sed: bad regex '{source}': {error}")
            result.append(expression.sub(replaced, line.removesuffix("\n"), count) + "\n")
        else:
            assert selection is not None
            first = int(selection[1] or 1)
            last = math.inf if selection[2] == "$" else int(selection[2] or first)
            is_chosen = first <= number <= last
            if is_chosen == (selection[3] == "p"):
                result.append(line)
    if "i" in options and rest:
        shell.files.write(shell.path(rest[0]), "".join(result).encode())
    else:
        print_text(streams, "".join(result))
    return 0


@command("tee")
def _tee(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    options, names = parse_options(list(words[1:]))
    paths = [shell.path(each) for each in names]
    for path in paths:
        shell.files.write(path, b"", is_appended="a" in options)
    while part := (yield from streams.input.read()):
        streams.output.write(part)
        for path in paths:
            shell.files.write(path, part, is_appended=True)
    return 0


@command("tar")
def _tar(shell: Shell, streams: Streams, words: Sequence[str]) -> Running:
    """Pack and unpack archives on the streams, as `kubectl cp` does."""
    arguments = list(words[1:])
    if arguments and not arguments[0].startswith("-"):
        arguments[0] = f"-{arguments[0]}"
    options, names = parse_options(arguments, "fC")
    directory = shell.path(options.get("C") or ".")
    archive = options.get("f", "-")
    if "c" in options:
        try:
            content = pack(shell.files, directory, names, shell.process.now)
        except FileError as error:
            return fail(streams, f"tar: {error}")
        if archive == "-":
            streams.output.write(content)
        else:
            shell.files.write(shell.path(archive), content)
        return 0
    if archive == "-":
        content = yield from read_all(streams.input)
    else:
        content = shell.files.read(shell.path(archive))
    try:
        listing = unpack(shell.files, directory, content, writes="x" in options)
    except FileError as error:
        return fail(streams, f"tar: {error}")
    if "t" in options:
        print_text(streams, "".join(f"{each}\n" for each in listing))
    return 0
