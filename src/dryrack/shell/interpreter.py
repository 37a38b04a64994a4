"""
Run parsed scripts: expand words, redirect streams, and execute compound commands.

Commands are generators (see `process`), so that a script can sleep in virtual time, run jobs in the
background, and connect commands by pipes. What the shell itself does not know, `commands` and the
machine of the container do.
"""

import posixpath
import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

from dryrack.shell import syntax
from dryrack.shell.arithmetic import calculate
from dryrack.shell.files import FileError, Files
from dryrack.shell.patterns import compile_expression, expression_of
from dryrack.shell.process import STEP, Pause, Process, Program, Task, Until
from dryrack.shell.streams import Call, ClosedPipeError, Pipe, Streams, Writer
from dryrack.shell.syntax import Command, ShellSyntaxError, Word, parse

Running = Generator[Pause, None, int]
_DEPTH_MAX = 60
_WORDS_MAX = 10_000
_VALUE_CHARACTERS_MAX = 1 << 20
_LEAVING = frozenset(("break", "exit", "return", "exec", "kill", "eval", "."))


class Machine(Protocol):
    """The parts of a container besides its files."""

    @property
    def host_name(self) -> str: ...

    @property
    def address(self) -> str: ...

    @property
    def user_id(self) -> int: ...

    def run_unknown(self, words: Sequence[str], streams: Streams) -> Running:
        """Run a program that dryrack does not know."""
        ...

    def find_program(self, name: str) -> "ProgramFunction | None":
        """Return a program that only this container has."""
        ...


class ProgramFunction(Protocol):
    """A command that is not part of the shell."""

    def __call__(self, shell: "Shell", streams: Streams, words: Sequence[str]) -> Running: ...


class _LeaveError(Exception):
    """Control leaves a loop, a function, or the shell."""

    def __init__(self, kind: str, value: int) -> None:
        super().__init__(kind)
        self.kind = kind
        self.value = value


@dataclass(slots=True)
class _Field:
    """A part of a word after expansion."""

    text: str
    is_quoted: bool
    separates: bool = False
    """True between the arguments of `"$@"`."""


@dataclass(slots=True)
class Shell:
    """The state of a shell; a subshell has a copy."""

    process: Process
    files: Files
    machine: Machine
    variables: dict[str, str]
    exported: set[str] = field(default_factory=set)
    arguments: list[str] = field(default_factory=list)
    name: str = "sh"
    functions: dict[str, Command] = field(default_factory=dict)
    options: set[str] = field(default_factory=set)
    traps: dict[str, str] = field(default_factory=dict)
    jobs: list[Task] = field(default_factory=list)
    directory: str = "/"
    status: int = 0
    depth: int = 0
    ignores_errors: int = 0
    """Above zero in a condition, where `set -e` does not count."""
    is_subshell: bool = False
    has_left: bool = False
    """True after `exit` in a shell that reads its input."""

    @property
    def environment(self) -> Mapping[str, str]:
        return {key: value for key, value in self.variables.items() if key in self.exported}

    def path(self, name: str) -> str:
        """Return the absolute path of a file."""
        path = posixpath.normpath(posixpath.join(self.directory, name))
        return "/" + path.lstrip("/")

    # Entry points

    def run_script(self, script: str, streams: Streams) -> Program:
        """Run a script to its end, as `sh -c` does."""
        try:
            commands = parse(script)
        except ShellSyntaxError as error:
            streams.error.write(f"{self.name}: syntax error: {error}\n".encode())
            return 2
        try:
            status = yield from self.execute(commands, streams)
        except _LeaveError as leave:
            status = leave.value if leave.kind in ("exit", "return") else self.status
        except ClosedPipeError:
            status = 141
        return (yield from self._run_trap("EXIT", status, streams))

    def run_words(self, words: Sequence[str], streams: Streams) -> Program:
        """Run one command whose words are expanded already, as the kubelet starts a container."""
        try:
            return (yield from self._run_command(list(words), streams))
        except _LeaveError as leave:
            return leave.value
        except ClosedPipeError:
            return 141

    def run_line(self, text: str, streams: Streams) -> Generator[Pause, None, bool]:
        """Run what a person has typed; return False if the command is not complete yet."""
        try:
            commands = parse(text)
        except ShellSyntaxError as error:
            if "end of file" in str(error) or "unterminated" in str(error):
                return False
            streams.error.write(f"{self.name}: syntax error: {error}\n".encode())
            self.status = 2
            return True
        try:
            yield from self.execute(commands, streams)
        except _LeaveError as leave:
            self.status = leave.value
            self.has_left = leave.kind == "exit"
        return True

    def _run_trap(self, name: str, status: int, streams: Streams) -> Running:
        handler = self.traps.pop(name, "")
        if handler:
            self.status = status
            try:
                yield from self.execute(parse(handler), streams)
            except _LeaveError as leave:
                if leave.kind == "exit":
                    return leave.value
        return status

    def handle_signals(self, streams: Streams) -> Running:
        """Run the traps of the signals that have arrived."""
        while self.process.signals and not self.is_subshell:
            name = self.process.signals.pop(0)
            if handler := self.traps.get(name, ""):
                status = self.status
                yield from self.execute(parse(handler), streams)
                self.status = status
        return self.status

    # Commands

    def execute(self, command: Command, streams: Streams) -> Running:
        """Execute a command, and set `$?`."""
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            streams.error.write(f"{self.name}: too many nested commands\n".encode())
            raise _LeaveError("exit", 2)
        try:
            self.status = yield from self._execute(command, streams)
        finally:
            self.depth -= 1
        return self.status

    def _execute(self, command: Command, streams: Streams) -> Running:
        match command:
            case syntax.Sequence(items):
                for each, is_background in items:
                    if is_background:
                        self._start_job(each, streams)
                    else:
                        yield from self.execute(each, streams)
                return self.status
            case syntax.Simple():
                return (yield from self._execute_simple(command, streams))
            case syntax.AndOr(first, rest):
                return (yield from self._execute_and_or(first, rest, streams))
            case syntax.Pipeline(commands, is_negated):
                return (yield from self._execute_pipeline(commands, is_negated, streams))
            case syntax.If(branches, otherwise):
                return (yield from self._execute_if(branches, otherwise, streams))
            case syntax.While():
                return (yield from self._execute_while(command, streams))
            case syntax.For(name, words, body):
                values = (
                    self.arguments if words is None else (yield from self.expand(words, streams))
                )
                return (yield from self._execute_for(name, list(values), body, streams))
            case syntax.Case(word, branches):
                return (yield from self._execute_case(word, branches, streams))
            case syntax.Group(body, redirections, is_subshell):
                return (yield from self._execute_group(body, redirections, is_subshell, streams))
            case syntax.Function(name, body):
                self.functions[name] = body
                return 0

    def _test(self, command: Command, streams: Streams) -> Running:
        """Execute a command whose failure is an answer, which `set -e` does not count."""
        self.ignores_errors += 1
        try:
            return (yield from self.execute(command, streams))
        finally:
            self.ignores_errors -= 1

    def _execute_and_or(
        self, first: Command, rest: Sequence[tuple[str, Command]], streams: Streams
    ) -> Running:
        status = yield from self._test(first, streams)
        for number, (operator, each) in enumerate(rest):
            if (status == 0) == (operator == "&&"):
                is_last = number == len(rest) - 1
                run = self.execute if is_last else self._test
                status = yield from run(each, streams)
        return status

    def _execute_if(
        self,
        branches: Sequence[tuple[Command, Command]],
        otherwise: Command | None,
        streams: Streams,
    ) -> Running:
        for condition, body in branches:
            if (yield from self._test(condition, streams)) == 0:
                return (yield from self.execute(body, streams))
        return 0 if otherwise is None else (yield from self.execute(otherwise, streams))

    def _check_status(self, status: int) -> None:
        if status and "e" in self.options and not self.ignores_errors:
            raise _LeaveError("exit", status)

    def _execute_simple(self, command: syntax.Simple, streams: Streams) -> Running:
        words = yield from self.expand(command.words, streams)
        opened = yield from self._redirect(command.redirections, streams)
        if opened is None:
            self._check_status(1)
            return 1
        status = 0
        values: dict[str, str] = {}
        for name, word, is_appended in command.assignments:
            value = yield from self._expand_text(word, streams)
            value = self.variables.get(name, "") + value if is_appended else value
            values[name] = value[:_VALUE_CHARACTERS_MAX]
            if any(isinstance(each, syntax.Substitution) for each in word):
                status = self.status
        if "x" in self.options:
            shown = [*(f"{name}={value}" for name, value in values.items()), *words]
            streams.error.write(f"+ {' '.join(shown)}\n".encode())
        if not words:
            self.variables |= values
            self._check_status(status)
            return status
        is_local = words[0] not in ("export", "local", "readonly")
        before = dict(self.variables), set(self.exported)
        self.variables |= values
        self.exported |= values.keys()
        try:
            status = yield from self._run_command(words, opened)
        finally:
            if values and is_local:
                self.variables, self.exported = before
        if self.process.signals:
            yield from self.handle_signals(streams)
        self._check_status(status)
        return status

    def _run_command(self, words: list[str], streams: Streams) -> Running:
        from dryrack.shell.commands import find_command

        if not words:
            return 0
        name = words[0]
        if name in self.functions:
            arguments = self.arguments
            self.arguments = words[1:]
            try:
                return (yield from self.execute(self.functions[name], streams))
            except _LeaveError as leave:
                if leave.kind != "return":
                    raise
                return leave.value
            finally:
                self.arguments = arguments
        program = self.machine.find_program(name) or find_command(name)
        if program is not None:
            try:
                return (yield from program(self, streams, words))
            except FileError as error:
                streams.error.write(f"{posixpath.basename(name)}: {error}\n".encode())
                return 1
        script = self.path(name) if "/" in name else ""
        if script and self.files.is_file(script):
            shell = self.copy()
            shell.arguments = words[1:]
            text = self.files.read(script).decode(errors="replace")
            return (yield from shell.run_script(text, streams))
        return (yield from self.machine.run_unknown(words, streams))

    def _execute_pipeline(
        self, commands: Sequence[Command], is_negated: bool, streams: Streams
    ) -> Running:
        if len(commands) == 1:
            return int((yield from self._test(commands[0], streams)) == 0)
        tasks: list[Task] = []
        source = streams.input
        for number, command in enumerate(commands):
            is_last = number == len(commands) - 1
            pipe = Pipe()
            output: Writer = streams.output if is_last else pipe
            connected = replace(streams, input=source, output=output)
            shell = self.copy()
            program = _run_in_pipe(shell, command, connected, None if number == 0 else source)
            tasks.append(self.process.start(_close_pipe_after(program, None if is_last else pipe)))
            source = pipe
        yield Until(lambda: all(each.status is not None for each in tasks))
        statuses = [each.status or 0 for each in tasks]
        if "pipefail" in self.options:
            status = next((each for each in reversed(statuses) if each), 0)
        else:
            status = statuses[-1]
        if is_negated:
            return int(status == 0)
        self._check_status(status)
        return status

    def _execute_while(self, command: syntax.While, streams: Streams) -> Running:
        status = 0
        is_main = not self.is_subshell and self.depth < _DEPTH_MAX
        if is_main and _is_endless(command) and "e" not in self.options:
            self.process.is_endless = not self.process.is_signaled
        while True:
            holds = (yield from self._test(command.condition, streams)) == 0
            if holds == command.is_until:
                return status
            try:
                status = yield from self.execute(command.body, streams)
            except _LeaveError as leave:
                if self._leaves_loop(leave):
                    return 0
            yield STEP
            if self.process.signals:
                yield from self.handle_signals(streams)

    def _execute_for(
        self, name: str, values: Sequence[str], body: Command, streams: Streams
    ) -> Running:
        status = 0
        for value in values:
            self.variables[name] = value
            try:
                status = yield from self.execute(body, streams)
            except _LeaveError as leave:
                if self._leaves_loop(leave):
                    return 0
            yield STEP
        return status

    def _leaves_loop(self, leave: _LeaveError) -> bool:
        """Return True for `break`, and False for `continue`; raise what belongs further out."""
        if leave.kind not in ("break", "continue"):
            raise leave
        if leave.value > 1:
            raise _LeaveError(leave.kind, leave.value - 1)
        return leave.kind == "break"

    def _execute_case(
        self,
        word: Word,
        branches: Sequence[tuple[tuple[Word, ...], Command]],
        streams: Streams,
    ) -> Running:
        text = yield from self._expand_text(word, streams)
        for patterns, body in branches:
            for pattern in patterns:
                fields = yield from self._expand_word(pattern, streams)
                if compile_expression(_pattern(fields)).fullmatch(text):
                    return (yield from self.execute(body, streams))
        return 0

    def _execute_group(
        self,
        body: Command,
        redirections: Sequence[syntax.Redirection],
        is_subshell: bool,
        streams: Streams,
    ) -> Running:
        opened = yield from self._redirect(redirections, streams)
        if opened is None:
            return 1
        if not is_subshell:
            return (yield from self.execute(body, opened))
        shell = self.copy()
        try:
            status = yield from shell.execute(body, opened)
        except _LeaveError as leave:
            status = leave.value if leave.kind == "exit" else shell.status
        self._check_status(status)
        return status

    def _start_job(self, command: Command, streams: Streams) -> None:
        shell = self.copy()
        detached = replace(streams, input=Pipe.of(b""))
        task = self.process.start(_run_in_pipe(shell, command, detached, None))
        self.jobs.append(task)
        self.variables["!"] = str(len(self.jobs) + 1)
        self.status = 0

    def copy(self) -> "Shell":
        return replace(
            self,
            variables=dict(self.variables),
            exported=set(self.exported),
            arguments=list(self.arguments),
            functions=dict(self.functions),
            options=set(self.options),
            traps={},
            jobs=[],
            is_subshell=True,
        )

    def leave(self, kind: str, value: int) -> NoReturn:
        """Leave a loop, a function, or the shell."""
        raise _LeaveError(kind, value)

    # Redirections

    def _redirect(
        self, redirections: Sequence[syntax.Redirection], streams: Streams
    ) -> Generator[Pause, None, Streams | None]:
        opened = streams
        for each in redirections:
            text = yield from self._expand_text(each.target, streams)
            try:
                opened = self._open(each, text, opened)
            except FileError as error:
                streams.error.write(f"{self.name}: can't open {text}: {error}\n".encode())
                return None
        return opened

    def _open(self, each: syntax.Redirection, text: str, streams: Streams) -> Streams:
        match each.operator:
            case "<<":
                return replace(streams, input=Pipe.of(text.encode()))
            case "<<<":
                return replace(streams, input=Pipe.of(f"{text}\n".encode()))
            case "<" | "<>":
                path = self.path(text)
                content = b"" if path == "/dev/null" else self.files.read(path)
                return replace(streams, input=Pipe.of(content))
            case ">&" if text in ("1", "2"):
                writer = streams.output if text == "1" else streams.error
            case ">&" if text == "-":
                writer = Call(lambda data: None)
            case _:
                writer = self._open_file(text, is_appended=">>" in each.operator, streams=streams)
        if each.operator in ("&>", "&>>") or (each.operator == ">&" and not text.isdigit()):
            return replace(streams, output=writer, error=writer)
        if each.descriptor == 2:
            return replace(streams, error=writer)
        return replace(streams, output=writer) if each.descriptor == 1 else streams

    def _open_file(self, name: str, *, is_appended: bool, streams: Streams) -> Writer:
        path = self.path(name)
        terminals = {"/dev/stdout": streams.output, "/proc/1/fd/1": streams.output}
        terminals |= {"/dev/stderr": streams.error, "/proc/1/fd/2": streams.error}
        if path in terminals:
            return terminals[path]
        self.files.write(path, b"", is_appended=is_appended)
        return Call(lambda data: self.files.write(path, data, is_appended=True))

    # Expansion

    def expand(self, words: Sequence[Word], streams: Streams) -> Generator[Pause, None, list[str]]:
        """Expand words to arguments: variables, substitutions, fields, and file names."""
        arguments: list[str] = []
        if words and words[0] == syntax.TEST:
            # Between `[[` and `]]`, words are neither split nor matched with file names.
            for word in words:
                text = yield from self._expand_text(word, streams)
                arguments += [text]
            return arguments
        for word in words:
            for braced in _expand_braces(word):
                fields = yield from self._expand_word(braced, streams)
                for group in _split(fields, self.variables.get("IFS", " \t\n")):
                    arguments += self._expand_file_names(group)
        return arguments

    def _expand_file_names(self, fields: Sequence[_Field]) -> list[str]:
        text = "".join(each.text for each in fields)
        if not any(set(each.text) & set("*?[") for each in fields if not each.is_quoted):
            return [text]
        names = [""] if text.startswith("/") else [self.directory]
        is_absolute = text.startswith("/")
        for part in _pattern(fields).strip("/").split("/"):
            expression = compile_expression(part)
            names = [
                posixpath.join(name, each) if name else f"/{each}"
                for name in names
                if self.files.is_directory(name or "/")
                for each in self.files.list(name or "/")
                if expression.fullmatch(each) and (part[0] == "\\" or not each.startswith("."))
            ]
        if not is_absolute:
            names = [posixpath.relpath(each, self.directory) for each in names]
        return sorted(names) or [text]

    def _expand_text(self, word: Word, streams: Streams) -> Generator[Pause, None, str]:
        fields = yield from self._expand_word(word, streams)
        return "".join(" " if each.separates else each.text for each in fields)

    def _expand_word(self, word: Word, streams: Streams) -> Generator[Pause, None, list[_Field]]:
        fields: list[_Field] = []
        for number, part in enumerate(word):
            match part:
                case syntax.Text(text, is_quoted):
                    if number == 0 and not is_quoted and re.match(r"~(/|$)", text):
                        text = self.variables.get("HOME", "/root") + text[1:]
                    fields.append(_Field(text, is_quoted))
                case syntax.Substitution(script, is_quoted):
                    collected = bytearray()
                    inner = replace(streams, output=Call(collected.extend))
                    shell = self.copy()
                    try:
                        self.status = yield from shell.execute(script, inner)
                    except _LeaveError as leave:
                        self.status = leave.value
                    text = collected.decode(errors="replace").rstrip("\n")
                    fields.append(_Field(text, is_quoted))
                case syntax.Arithmetic(expression, is_quoted):
                    text = yield from self._expand_text(expression, streams)
                    fields.append(_Field(str(self._calculate(text, streams)), is_quoted))
                case syntax.Parameter(name="@" | "*" as name, is_quoted=True):
                    for index, argument in enumerate(self.arguments):
                        if index:
                            fields.append(_Field("", True, separates=name == "@"))
                        fields.append(_Field(argument, True))
                    if not self.arguments and name == "*":
                        fields.append(_Field("", True))
                case syntax.Parameter():
                    text = yield from self._expand_parameter(part, streams)
                    fields.append(_Field(text, part.is_quoted))
        return fields

    def _expand_parameter(
        self, part: syntax.Parameter, streams: Streams
    ) -> Generator[Pause, None, str]:
        value = self._value(part.name)
        if part.is_length:
            return str(len(value or ""))
        operation = part.operation
        if not operation:
            if value is None and "u" in self.options and part.name not in "@*":
                streams.error.write(f"{self.name}: {part.name}: parameter not set\n".encode())
                raise _LeaveError("exit", 127 if self.name == "bash" else 2)
            return value or ""
        if operation[-1] in "-=+?" and operation != "":
            is_set = value is not None and (operation[0] != ":" or value != "")
            if operation[-1] == "+":
                return (yield from self._expand_text(part.operand, streams)) if is_set else ""
            if is_set:
                return value or ""
            operand = yield from self._expand_text(part.operand, streams)
            if operation[-1] == "?":
                problem = operand or "parameter not set"
                streams.error.write(f"{self.name}: {part.name}: {problem}\n".encode())
                raise _LeaveError("exit", 2)
            if operation[-1] == "=":
                self.variables[part.name] = operand
            return operand
        fields = yield from self._expand_word(part.operand, streams)
        return _edit(value or "", operation, fields)

    def _value(self, name: str) -> str | None:
        match name:
            case "?":
                return str(self.status)
            case "#":
                return str(len(self.arguments))
            case "$":
                return "1"
            case "-":
                return "".join(sorted(each for each in self.options if len(each) == 1))
            case "@" | "*":
                return " ".join(self.arguments)
            case "0":
                return self.name
        if name.isdigit():
            return self.arguments[int(name) - 1] if int(name) <= len(self.arguments) else None
        return self.variables.get(name)

    def _calculate(self, text: str, streams: Streams) -> int:
        try:
            return calculate(text, self.variables)
        except ValueError:
            streams.error.write(f"{self.name}: arithmetic syntax error\n".encode())
            raise _LeaveError("exit", 2) from None


def _run_in_pipe(shell: Shell, command: Command, streams: Streams, source: Pipe | None) -> Program:
    try:
        return (yield from shell.execute(command, streams))
    except _LeaveError as leave:
        return leave.value if leave.kind == "exit" else shell.status
    except ClosedPipeError:
        return 141
    finally:
        if source is not None:
            source.is_broken = True


def _close_pipe_after(program: Program, pipe: Pipe | None) -> Program:
    try:
        return (yield from program)
    finally:
        if pipe is not None:
            pipe.is_complete = True


def _split(fields: Sequence[_Field], separators: str) -> list[list[_Field]]:
    """Split what is not quoted into fields, at blanks or what IFS names."""
    groups: list[list[_Field]] = [[]]
    for each in fields:
        if each.separates:
            groups.append([])
        elif each.is_quoted:
            groups[-1].append(each)
        else:
            parts = (
                re.split(f"[{re.escape(separators)}]+", each.text) if separators else [each.text]
            )
            for number, part in enumerate(parts):
                if number:
                    groups.append([])
                if part:
                    groups[-1].append(_Field(part, False))
    return [each for each in groups if each]


def _expand_braces(word: Word) -> list[Word]:
    """Expand `{a,b}` and `{1..3}`, as bash does."""
    for number, part in enumerate(word):
        if not isinstance(part, syntax.Text) or part.is_quoted:
            continue
        match = re.search(r"\{(-?\d{1,9})\.\.(-?\d{1,9})\}|\{([^{},]*(?:,[^{},]*)+)\}", part.text)
        if match is None:
            continue
        if match[3] is not None:
            choices = match[3].split(",")
        else:
            first, last = int(match[1]), int(match[2])
            step = 1 if last >= first else -1
            choices = [str(each) for each in range(first, last + step, step)[:_WORDS_MAX]]
        before, after = part.text[: match.start()], part.text[match.end() :]
        return [
            expanded
            for each in choices
            for expanded in _expand_braces(
                (*word[:number], syntax.Text(before + each + after), *word[number + 1 :])
            )
        ]
    return [word]


def _pattern(fields: Sequence[_Field]) -> str:
    """Return a regular expression for a pattern of the shell."""
    return "".join(
        re.escape(each.text) if each.is_quoted else expression_of(each.text) for each in fields
    )


def _edit(value: str, operation: str, fields: Sequence[_Field]) -> str:
    """Return `${value OPERATION operand}` for the operations that cut or replace a part."""
    text = "".join(each.text for each in fields)
    size = len(value)
    if operation in ("#", "##", "%", "%%"):
        expression = compile_expression(_pattern(fields))
        is_longest = len(operation) == 2
        for length in range(size, -1, -1) if is_longest else range(size + 1):
            if operation[0] == "#" and expression.fullmatch(value[:length]):
                return value[length:]
            if operation[0] == "%" and expression.fullmatch(value[size - length :]):
                return value[: size - length]
        return value
    if operation == ":":
        offset, _, count = text.partition(":")
        begin = int(offset.strip() or 0)
        begin = max(0, size + begin) if begin < 0 else begin
        return value[begin : begin + int(count)] if count.strip() else value[begin:]
    old, _, new = text.partition("/")
    return value.replace(old, new, -1 if operation == "//" else 1) if old else value


def _is_endless(loop: syntax.While) -> bool:
    """Return True if only a signal can end a loop."""
    condition = loop.condition
    if not isinstance(condition, syntax.Sequence) or len(condition.items) != 1 or loop.is_until:
        return False
    test = condition.items[0][0]
    if test not in _ALWAYS_TRUE:
        return False
    return not any(_may_leave(each) for each in syntax.simple_commands(loop.body))


_ALWAYS_TRUE = tuple(syntax.Simple(words=((syntax.Text(each),),)) for each in ("true", ":"))


def _may_leave(command: syntax.Simple) -> bool:
    if not command.words:
        return False
    first = command.words[0]
    return not isinstance(first[0], syntax.Text) or len(first) > 1 or first[0].text in _LEAVING
