"""
Parse the shell scripts that containers run: the POSIX grammar, and what bash scripts commonly add.

`parse` turns a script into commands. A word keeps its parts, because variables, substitutions and
quotes are expanded only when the command runs.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_OPERATOR = re.compile(r"&&|\|\||;;|<<<|<<-|<<|>>|>&|<&|&>>|&>|>\||<>|[;&|<>()\n]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-]")
_OPERATION = re.compile(r":?[-=+?]|%%|##|%|#|//|/|:")
_RESERVED = frozenset(
    ("if", "then", "elif", "else", "fi", "while", "until", "for", "do", "done", "case", "esac")
) | {"{", "}", "!", "in"}
_REDIRECTIONS = frozenset(("<", ">", ">>", ">&", "<&", "&>", "&>>", ">|", "<>", "<<", "<<-", "<<<"))
_NESTING_MAX = 100


class ShellSyntaxError(Exception):
    """The script is not valid, or uses a construct that dryrack does not know."""


@dataclass(frozen=True, slots=True)
class Text:
    """Characters; those in quotes are neither split nor matched with file names."""

    text: str
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """`$name`, or `${name…}` with an operation and its word."""

    name: str
    operation: str = ""
    operand: "Word" = ()
    is_quoted: bool = False
    is_length: bool = False


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(script)`, or the same in backquotes."""

    script: "Command"
    is_quoted: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`$((expression))`."""

    expression: "Word"
    is_quoted: bool = False


Part = Text | Parameter | Substitution | Arithmetic
Word = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Redirection:
    """An operator with the descriptor on its left and the file, descriptor or text on its right."""

    operator: str
    descriptor: int
    target: Word


@dataclass(frozen=True, slots=True)
class Simple:
    """Assignments, and the words of a command."""

    assignments: tuple[tuple[str, Word, bool], ...] = ()
    """Name, value, and whether the value is appended."""
    words: tuple[Word, ...] = ()
    redirections: tuple[Redirection, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands that are connected by `|`; `!` negates the exit code."""

    commands: tuple["Command", ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class AndOr:
    """`first && second || third`, from left to right."""

    first: "Command"
    rest: tuple[tuple[str, "Command"], ...]


@dataclass(frozen=True, slots=True)
class Sequence:
    """Commands one after another; those with `&` run in the background."""

    items: tuple[tuple["Command", bool], ...]


@dataclass(frozen=True, slots=True)
class If:
    """`if … elif … else … fi`: conditions with their bodies."""

    branches: tuple[tuple["Command", "Command"], ...]
    otherwise: "Command | None"


@dataclass(frozen=True, slots=True)
class While:
    """`while` and `until`."""

    condition: "Command"
    body: "Command"
    is_until: bool = False


@dataclass(frozen=True, slots=True)
class For:
    """`for name in words`; without words, over the arguments."""

    name: str
    words: tuple[Word, ...] | None
    body: "Command"


@dataclass(frozen=True, slots=True)
class Case:
    """`case word in pattern) … ;; esac`."""

    word: Word
    branches: tuple[tuple[tuple[Word, ...], "Command"], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """`{ … }` and `( … )`, and any compound command with redirections."""

    body: "Command"
    redirections: tuple[Redirection, ...] = ()
    is_subshell: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """`name() { … }`."""

    name: str
    body: "Command"


Command = Simple | Pipeline | AndOr | Sequence | If | While | For | Case | Group | Function


TEST: Word = (Text("[["),)
TEST_END: Word = (Text("]]"),)


def simple_commands(command: Command | None) -> Iterator[Simple]:
    """Yield the simple commands in a command, without those in substitutions."""
    match command:
        case Simple():
            yield command
        case Sequence(items):
            for each, _ in items:
                yield from simple_commands(each)
        case Pipeline(commands):
            for each in commands:
                yield from simple_commands(each)
        case AndOr(first, rest):
            yield from simple_commands(first)
            for _, each in rest:
                yield from simple_commands(each)
        case If(branches, otherwise):
            for condition, body in branches:
                yield from simple_commands(condition)
                yield from simple_commands(body)
            yield from simple_commands(otherwise)
        case While(condition, body):
            yield from simple_commands(condition)
            yield from simple_commands(body)
        case For(body=body) | Group(body=body) | Function(body=body):
            yield from simple_commands(body)
        case Case(branches=cases):
            for _, body in cases:
                yield from simple_commands(body)


def parse(script: str) -> Command:
    """Return the commands of a script; raise a `ShellSyntaxError` if it is not valid."""
    parser = _Parser(script)
    commands = parser.sequence(())
    if parser.token is not None:
        raise ShellSyntaxError(f'unexpected "{_show_token(parser.token)}"')
    return commands


@dataclass(slots=True)
class _Token:
    kind: Literal["operator", "word"]
    text: str
    """The operator, or the word as it is written, if it is not quoted."""
    word: Word = ()
    descriptor: int | None = None


def _show_token(token: _Token | None) -> str:
    if token is None:
        return "end of file"
    return "newline" if token.text == "\n" else token.text


class _Lexer:
    """Splits a script into operators and words."""

    def __init__(self, script: str) -> None:
        self.script = script
        self.at = 0
        self._behind_here_documents: int | None = None

    def next_token(self) -> _Token | None:
        self._skip_blanks()
        script = self.script
        if self.at >= len(script):
            return None
        # A number directly before a redirection is a descriptor.
        number = re.compile(r"[0-9](?=[<>])").match(script, self.at)
        if number is not None:
            self.at += 1
        operator = _OPERATOR.match(script, self.at)
        if operator is not None:
            self.at = operator.end()
            if operator[0] == "\n" and self._behind_here_documents is not None:
                self.at = self._behind_here_documents
                self._behind_here_documents = None
            return _Token("operator", operator[0], descriptor=int(number[0]) if number else None)
        start = self.at
        word = self.word("")
        return _Token("word", script[start : self.at], word)

    def read_here_document(self, delimiter: Word, *, strips_tabs: bool) -> Word:
        """Read the lines below the current one, up to the delimiter."""
        script = self.script
        end = "".join(each.text for each in delimiter if isinstance(each, Text))
        at = self._behind_here_documents
        if at is None:
            at = script.find("\n", self.at) + 1 or len(script)
        lines: list[str] = []
        while at < len(script):
            line, newline, _ = script[at:].partition("\n")
            at += len(line) + len(newline)
            if strips_tabs:
                line = line.lstrip("\t")
            if line == end:
                break
            lines.append(f"{line}\n")
        self._behind_here_documents = at
        text = "".join(lines)
        if any(isinstance(each, Text) and each.is_quoted for each in delimiter):
            return (Text(text, is_quoted=True),)
        return _Lexer(text).quoted_parts("")

    def _skip_blanks(self) -> None:
        script = self.script
        while self.at < len(script):
            if script[self.at] in " \t\r":
                self.at += 1
            elif script.startswith("\\\n", self.at):
                self.at += 2
            elif script[self.at] == "#":
                end = script.find("\n", self.at)
                self.at = len(script) if end < 0 else end
            else:
                return

    def word(self, end: str) -> Word:
        """Read the parts of a word up to a blank or an operator, or up to `end` if it is given."""
        parts: list[Part] = []
        text: list[str] = []

        def flush() -> None:
            if text:
                parts.append(Text("".join(text)))
                text.clear()

        script = self.script
        while self.at < len(script):
            character = script[self.at]
            if end:
                if script.startswith(end, self.at):
                    break
            elif character in " \t\r" or _OPERATOR.match(script, self.at):
                break
            if character == "\\":
                self.at += 2
                if script[self.at - 1 : self.at] != "\n":
                    flush()
                    parts.append(Text(script[self.at - 1 : self.at], is_quoted=True))
            elif character in "'\"":
                flush()
                parts += self._read_quotes(character)
            elif character in "$`":
                part = self._expansion(is_quoted=False)
                if isinstance(part, Text) and not part.is_quoted:
                    text.append(part.text)
                else:
                    flush()
                    parts.append(part)
            else:
                text.append(character)
                self.at += 1
        flush()
        return tuple(parts)

    def _read_quotes(self, quote: str) -> Word:
        self.at += 1
        start = self.at
        if quote == "'":
            self.at = self.script.find("'", start)
            parts: Word = (Text(self.script[start : self.at], is_quoted=True),)
        else:
            # An empty pair of quotes is a word, too.
            parts = self.quoted_parts('"') or (Text("", is_quoted=True),)
        if not start <= self.at < len(self.script):
            raise ShellSyntaxError("unterminated quoted string")
        self.at += 1
        return parts

    def quoted_parts(self, end: str) -> Word:
        """Read text in double quotes, or a here-document: only `$`, backquotes and `\\` count."""
        parts: list[Part] = []
        text: list[str] = []
        script = self.script
        while self.at < len(script) and not (end and script[self.at] == end):
            character = script[self.at]
            if character == "\\" and script[self.at + 1 : self.at + 2] in {*'$`"\\', "\n"}:
                following = script[self.at + 1]
                if following == '"' and not end:
                    text.append("\\")
                text.append("" if following == "\n" else following)
                self.at += 2
            elif character in "$`":
                part = self._expansion(is_quoted=True)
                if isinstance(part, Text):
                    text.append(part.text)
                    continue
                if text:
                    parts.append(Text("".join(text), is_quoted=True))
                    text.clear()
                parts.append(part)
            else:
                text.append(character)
                self.at += 1
        if text:
            parts.append(Text("".join(text), is_quoted=True))
        return tuple(parts)

    def _expansion(self, *, is_quoted: bool) -> Part:
        script = self.script
        if script[self.at] == "`":
            close = re.compile(r"(?:[^`\\]|\\.)*`", re.S).match(script, self.at + 1)
            if close is None:
                raise ShellSyntaxError("unterminated backquote substitution")
            inner = re.sub(r"\\([`$\\])", r"\1", close[0][:-1])
            self.at = close.end()
            return Substitution(parse(inner), is_quoted)
        if script.startswith("$((", self.at):
            expression = self._arithmetic()
            if expression is not None:
                return Arithmetic(expression, is_quoted)
        if script.startswith("$(", self.at):
            parser = _Parser(script, self.at + 2)
            commands = parser.sequence((")",))
            self.at = parser.end_of(")")
            return Substitution(commands, is_quoted)
        if script.startswith("${", self.at):
            return self._read_braces(is_quoted=is_quoted)
        if script.startswith("$'", self.at) and not is_quoted:
            close = re.compile(r"(?:[^'\\]|\\.)*'", re.S).match(script, self.at + 2)
            if close is None:
                raise ShellSyntaxError("unterminated quoted string")
            self.at = close.end()
            return Text(unescape(close[0][:-1]), is_quoted=True)
        name = _PARAMETER.match(script, self.at + 1)
        if name is None:
            self.at += 1
            return Text("$")
        # Only one digit belongs to a parameter without braces.
        text = name[0][0] if name[0].isdigit() else name[0]
        self.at += 1 + len(text)
        return Parameter(text, is_quoted=is_quoted)

    def _arithmetic(self) -> Word | None:
        depth = 0
        for at in range(self.at + 3, len(self.script)):
            if self.script[at] == "(":
                depth += 1
            elif self.script[at] == ")" and depth:
                depth -= 1
            elif self.script.startswith("))", at):
                expression = _Lexer(self.script[self.at + 3 : at]).quoted_parts("")
                self.at = at + 2
                return expression
            elif self.script[at] == ")":
                return None
        return None

    def _read_braces(self, *, is_quoted: bool) -> Parameter:
        self.at += 2
        is_length = self.script[self.at : self.at + 1] == "#" and self.script[
            self.at + 1 : self.at + 2
        ] not in ("}", "")
        self.at += is_length
        name = _PARAMETER.match(self.script, self.at)
        if name is None:
            raise ShellSyntaxError("bad substitution")
        self.at = name.end()
        operation = _OPERATION.match(self.script, self.at)
        operand: Word = ()
        if operation is not None and not is_length:
            self.at = operation.end()
            operand = self.word("}")
        if not self.script.startswith("}", self.at):
            raise ShellSyntaxError("bad substitution")
        self.at += 1
        return Parameter(name[0], operation[0] if operation else "", operand, is_quoted, is_length)


class _Parser:
    """Reads commands from tokens, with one token of look-ahead."""

    def __init__(self, script: str, at: int = 0) -> None:
        self._lexer = _Lexer(script)
        self._lexer.at = at
        self._depth = 0
        self.token = self._lexer.next_token()

    def sequence(self, ends: tuple[str, ...]) -> Sequence:
        """Read commands up to one of the reserved words or operators in `ends`."""
        self._depth += 1
        if self._depth > _NESTING_MAX:
            raise ShellSyntaxError("the script is nested too deeply")
        items: list[tuple[Command, bool]] = []
        self._skip_newlines()
        while self.token is not None and not self._is(*ends):
            command = self._and_or()
            is_background = self._is("&")
            items.append((command, is_background))
            if not self._is("&", ";", "\n"):
                break
            self._advance()
            self._skip_newlines()
        self._depth -= 1
        return Sequence(tuple(items))

    def end_of(self, operator: str) -> int:
        """Return the position behind an operator that must be the current token."""
        if not self._is(operator):
            raise ShellSyntaxError(
                f'unexpected "{_show_token(self.token)}" (expecting "{operator}")'
            )
        return self._lexer.at

    def _and_or(self) -> Command:
        first = self._pipeline()
        rest: list[tuple[str, Command]] = []
        while self._is("&&", "||"):
            assert self.token is not None
            operator = self.token.text
            self._advance()
            self._skip_newlines()
            rest.append((operator, self._pipeline()))
        return AndOr(first, tuple(rest)) if rest else first

    def _pipeline(self) -> Command:
        is_negated = self._is("!")
        if is_negated:
            self._advance()
        commands = [self._command()]
        while self._is("|"):
            self._advance()
            self._skip_newlines()
            commands.append(self._command())
        if len(commands) == 1 and not is_negated:
            return commands[0]
        return Pipeline(tuple(commands), is_negated)

    def _command(self) -> Command:
        token = self.token
        if token is None:
            raise ShellSyntaxError("unexpected end of file")
        compound: Command | None = None
        if token.kind == "operator" and token.text == "(":
            self._advance()
            body = self.sequence((")",))
            self._expect(")")
            compound = Group(body, is_subshell=True)
        elif token.kind == "word":
            match token.text:
                case "{":
                    self._advance()
                    compound = Group(self._body("}"))
                case "if":
                    compound = self._if()
                case "while" | "until":
                    self._advance()
                    condition = self._body("do")
                    compound = While(condition, self._body("done"), token.text == "until")
                case "for":
                    compound = self._for()
                case "case":
                    compound = self._case()
                case "function":
                    self._advance()
                    return self._function()
        if compound is None:
            return self._simple()
        redirections = self._redirections()
        return Group(compound, redirections) if redirections else compound

    def _body(self, end: str) -> Sequence:
        body = self.sequence((end,))
        if not body.items:
            raise ShellSyntaxError(f'unexpected "{_show_token(self.token)}"')
        self._expect(end)
        return body

    def _if(self) -> If:
        branches: list[tuple[Command, Command]] = []
        otherwise: Command | None = None
        self._advance()
        while True:
            condition = self._body("then")
            body = self.sequence(("elif", "else", "fi"))
            branches.append((condition, body))
            if not self._is("elif"):
                break
            self._advance()
        if self._is("else"):
            self._advance()
            otherwise = self.sequence(("fi",))
        self._expect("fi")
        return If(tuple(branches), otherwise)

    def _for(self) -> For:
        self._advance()
        name = self._take_word()
        words: list[Word] | None = None
        self._skip_newlines()
        if self._is("in"):
            self._advance()
            words = []
            while self.token is not None and self.token.kind == "word":
                words.append(self.token.word)
                self._advance()
        while self._is(";", "\n"):
            self._advance()
        self._expect("do")
        return For(name, None if words is None else tuple(words), self._body("done"))

    def _case(self) -> Case:
        self._advance()
        if self.token is None or self.token.kind != "word":
            raise ShellSyntaxError(f'unexpected "{_show_token(self.token)}"')
        word = self.token.word
        self._advance()
        self._skip_newlines()
        self._expect("in")
        self._skip_newlines()
        branches: list[tuple[tuple[Word, ...], Command]] = []
        while not self._is("esac"):
            if self._is("("):
                self._advance()
            patterns: list[Word] = []
            while self.token is not None and self.token.kind == "word":
                patterns.append(self.token.word)
                self._advance()
                if not self._is("|"):
                    break
                self._advance()
            self._expect(")")
            body = self.sequence((";;", "esac"))
            branches.append((tuple(patterns), body))
            if self._is(";;"):
                self._advance()
                self._skip_newlines()
        self._expect("esac")
        return Case(word, tuple(branches))

    def _function(self) -> Function:
        name = self._take_word()
        if self._is("("):
            self._advance()
            self._expect(")")
        self._skip_newlines()
        return Function(name, self._command())

    def _simple(self) -> Command:
        assignments: list[tuple[str, Word, bool]] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while (token := self.token) is not None:
            if token.kind == "operator" and words and words[0] == TEST and words[-1] != TEST_END:
                # Between `[[` and `]]`, operators belong to the test.
                words.append((Text(token.text),))
            elif token.kind == "operator":
                if token.text == "(" and len(words) == 1 and not redirections:
                    name = "".join(each.text for each in words[0] if isinstance(each, Text))
                    self._advance()
                    self._expect(")")
                    self._skip_newlines()
                    return Function(name, self._command())
                if token.text not in _REDIRECTIONS:
                    break
                redirections.append(self._redirection())
                continue
            else:
                self._add_word(token, assignments, words)
            self._advance()
        if not (words or assignments or redirections):
            raise ShellSyntaxError(f'unexpected "{_show_token(self.token)}"')
        return Simple(tuple(assignments), tuple(words), tuple(redirections))

    def _add_word(
        self, token: _Token, assignments: list[tuple[str, Word, bool]], words: list[Word]
    ) -> None:
        match = _ASSIGNMENT.match(token.text) if not words else None
        if match is not None and isinstance(token.word[0], Text):
            rest = token.word[0].text[len(match[0]) :]
            value = (Text(rest), *token.word[1:]) if rest else token.word[1:]
            assignments.append((match[1], value, match[2] == "+="))
        elif not words and not assignments and token.text in _RESERVED:
            raise ShellSyntaxError(f'unexpected "{token.text}"')
        else:
            words.append(token.word)

    def _redirections(self) -> tuple[Redirection, ...]:
        redirections: list[Redirection] = []
        while self.token is not None and self.token.text in _REDIRECTIONS:
            redirections.append(self._redirection())
        return tuple(redirections)

    def _redirection(self) -> Redirection:
        token = self.token
        assert token is not None
        operator = token.text
        descriptor = token.descriptor
        if descriptor is None:
            descriptor = 0 if operator[0] == "<" else 1
        self._advance()
        target = self.token
        if target is None or target.kind != "word":
            raise ShellSyntaxError(f'unexpected "{_show_token(target)}"')
        if operator in ("<<", "<<-"):
            content = self._lexer.read_here_document(target.word, strips_tabs=operator == "<<-")
            self._advance()
            return Redirection("<<", descriptor, content)
        self._advance()
        return Redirection(operator, descriptor, target.word)

    def _take_word(self) -> str:
        if self.token is None or self.token.kind != "word":
            raise ShellSyntaxError(f'unexpected "{_show_token(self.token)}"')
        text = self.token.text
        self._advance()
        return text

    def _is(self, *texts: str) -> bool:
        return self.token is not None and self.token.text in texts

    def _expect(self, text: str) -> None:
        if not self._is(text):
            raise ShellSyntaxError(f'unexpected "{_show_token(self.token)}" (expecting "{text}")')
        self._advance()

    def _advance(self) -> None:
        self.token = self._lexer.next_token()

    def _skip_newlines(self) -> None:
        while self._is("\n"):
            self._advance()


_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\"}
_ESCAPES |= {"e": "\x1b", "'": "'", '"': '"'}


def unescape(text: str) -> str:
    """Replace escape sequences as `echo -e`, `printf` and `$'…'` do."""

    def replacement(match: re.Match[str]) -> str:
        sequence = match[1]
        if sequence[0] == "x" and len(sequence) > 1:
            return chr(int(sequence[1:], 16))
        if sequence[0] in "01234567":
            return chr(int(sequence, 8))
        return _ESCAPES.get(sequence, match[0])

    return re.sub(r"\\(x[0-9a-fA-F]{1,2}|0?[0-7]{1,3}|.)", replacement, text, flags=re.S)
