"""
The rules: each takes a file and yields its problems.

Each problem names the replacement, because a ban without a replacement is only an obstacle.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import PurePosixPath

FUNCTION_LINES_MAX = 80
MODULE_LINES_MAX = 900

PURE_PACKAGES = (
    *("base", "kinds", "cel", "allocation", "hardware", "extension", "store", "shell"),
    *("linter", "placement"),
)

MODULE_NAMES_BANNED = frozenset(
    {"util", "utils", "helper", "helpers", "manager", "handler", "common", "misc"}
)

CALLS_BANNED = {
    r"(time\.)?(time|monotonic|perf_counter)(_ns)?": "take the time from a base.ports.Clock",
    r"time\.sleep": "return until when to wait; the caller waits",
    r"(datetime\.)?(datetime|date)\.(now|utcnow|today)": "take the time from a base.ports.Clock",
    r"(uuid\.)?uuid[1-8]": "take identifiers from a base.ports.Chance",
    r"(random|secrets)\.\w+|os\.urandom": "take chance from a base.ports.Chance",
}

# Programs of other projects do not report when they are ready, and a benchmark measures real time.
MAY_SLEEP = (
    "tests/realcluster/readiness.py",
    "tests/publisher/real_publisher.py",
    "tests/kubelet/defective.py",
    "tests/kubelet/programs.py",
    "tests/controllers/slices/test_real_slices.py",
    "tests/bench/",
)

# Joined from parts, so that this file follows its own rule.
MACHINE_PATHS = re.compile(
    "|".join((r"(?<![\w./])/" + r"work/", r"\.\./" + "shared", "/root" + "/"))
)
REGISTRIES = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("crates", "io"),
    )
)


@dataclass(frozen=True)
class File:
    """A tracked file, by its path in the clone."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def is_python(self) -> bool:
        return self.path.suffix == ".py"

    @property
    def is_pure(self) -> bool:
        return self.path.parts[:2] == ("src", "dryrack") and self.path.parts[2] in PURE_PACKAGES


def function_length(file: File) -> Iterator[str]:
    """
    Find functions that are too long, without their docstrings.

    The parameters of a command do not count: they are its options, each with its help.
    """
    for node in ast.walk(file.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            first = node.body[0]
            docstring = _lines(first) if ast.get_docstring(node) else 0
            begin = first.lineno if any(map(_is_command, node.decorator_list)) else node.lineno
            length = node.end_lineno - begin + 1 - docstring
            if length > FUNCTION_LINES_MAX:
                yield f"{node.lineno}: {node.name} has {length} lines; split it"


def _lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _is_command(decorator: ast.expr) -> bool:
    """Return True for `@app.command(…)` and `@app.callback(…)`."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(function, ast.Attribute) and function.attr in ("command", "callback")


def module_length(file: File) -> Iterator[str]:
    length = file.text.count("\n")
    if length > MODULE_LINES_MAX:
        yield f"1: {length} lines; this is more than one module"


def module_name(file: File) -> Iterator[str]:
    if MODULE_NAMES_BANNED & {file.path.stem.strip("_"), *file.path.parts[:-1]}:
        yield "1: the name does not describe the content; name the one concept"


def module_docstring(file: File) -> Iterator[str]:
    if file.tree.body and not ast.get_docstring(file.tree):
        yield "1: no module docstring; state what the module does, and why"


def test_docstring(file: File) -> Iterator[str]:
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        is_test = file.path.name.startswith("test_") and node.name.startswith("test_")
        if is_test and not ast.get_docstring(node):
            yield f"{node.lineno}: {node.name} has no docstring; state what must be true"


def banned_call(file: File) -> Iterator[str]:
    for node in ast.walk(file.tree) if file.is_pure else ():
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            for banned, instead in CALLS_BANNED.items():
                if re.fullmatch(banned, name):
                    yield f"{node.lineno}: {name}() in a package below client; {instead}"


def sleep(file: File) -> Iterator[str]:
    """Find real sleeps. A virtual clock is advanced, and a step of the loop takes no time."""
    if file.path.parts[0] != "tests" or str(file.path).startswith(MAY_SLEEP):
        return
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call) and _is_real_sleep(node, file):
            yield f"{node.lineno}: sleeps; wait for a condition, or advance a virtual clock"


def _is_real_sleep(call: ast.Call, file: File) -> bool:
    match call:
        case ast.Call(
            func=ast.Attribute(value=ast.Name(id="asyncio"), attr="sleep"), args=[how_long]
        ):
            return ast.unparse(how_long) != "0"
        case ast.Call(func=ast.Name(id="sleep"), args=[_, _]):
            # Only the system clock takes time.
            return "SystemClock" in file.text
        case ast.Call(func=ast.Name(id="sleep"), args=[how_long]):
            return ast.unparse(how_long) != "0"
    return ast.unparse(call.func) == "time.sleep"


def machine_path(file: File) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), 1):
        if MACHINE_PATHS.search(line):
            yield f"{number}: a path of one machine; use a relative path, or remove it"


def registry_host(file: File) -> Iterator[str]:
    for number, line in enumerate(file.text.splitlines(), 1):
        if any(host in line for host in REGISTRIES):
            yield f"{number}: names a package registry; each machine configures its own"


def markdown_title(file: File) -> Iterator[str]:
    prose = re.sub(r"^```.*?^```", "", file.text, flags=re.M | re.S)
    titles = re.findall(r"^# .*", prose, flags=re.M)
    if len(titles) != 1 or not prose.lstrip().startswith("# "):
        yield f"1: {len(titles)} titles; a page needs exactly one, on line 1"


# A docstring begins with a verb, or for a class with a noun, not with a clause.
RELATIVE_WORDS = re.compile(
    r"(What(?!-if)|Who|Whose|Whom|Whether|With|Without|Of|The same|That|How|Where|Why|Nobody|"
    r"Somebody|Whoever|Everybody)\b"
)

# Verbs and nouns that have the ending of a participle are allowed.
PARTICIPLE = re.compile(
    r"_*(?!(need|feed|seed|embed|speed|proceed|exceed|string|ring|ping|bring|heading)$)"
    r"([a-z]+ed|[a-z]+ing|made|told|kept|held|given|found|said|seen|shown|known|written|spoken|"
    r"lost|grown|bound|taken|left|sent|chosen|drawn|hidden|gone|done|put)"
)


# These read documents of people, in which anything can have any type.
DECODERS = ("kinds/paths.py", "kinds/documents.py", "config_formats/document_readers.py")


def relative_docstring(file: File) -> Iterator[str]:
    for node in ast.walk(file.tree) if file.path.parts[0] == "src" else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            docstring = ast.get_docstring(node) or ""
            if match := RELATIVE_WORDS.match(docstring):
                line = node.body[0].lineno
                yield f"{line}: the docstring begins with {match[0]!r}; begin with a verb or a noun"


def bare_participles(file: File) -> Iterator[str]:
    """Find functions with names that hide whether they compute, check or change something."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_property = any("property" in ast.unparse(each) for each in node.decorator_list)
            if PARTICIPLE.fullmatch(node.name) and not is_property:
                yield f"{node.lineno}: {node.name} is a participle; name the function verb + noun"


def hand_written_path(file: File) -> Iterator[str]:
    """Find `x.get(…) or {}`, which `kinds.paths.get` replaces."""
    if file.path.parts[0] != "src" or str(file.path).endswith(DECODERS):
        return
    for node in ast.walk(file.tree):
        match node:
            case ast.BoolOp(
                op=ast.Or(),
                values=[
                    ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str())]),
                    ast.Dict(keys=[]) | ast.Tuple(elts=[]) | ast.List(elts=[]),
                ],
            ):
                yield f"{node.lineno}: {ast.unparse(node)}; use kinds.paths.get"


PYTHON_RULES: tuple[Callable[[File], Iterator[str]], ...] = (
    function_length,
    module_length,
    module_name,
    module_docstring,
    test_docstring,
    banned_call,
    sleep,
    relative_docstring,
    hand_written_path,
)
TEXT_RULES: tuple[Callable[[File], Iterator[str]], ...] = (machine_path, registry_host)


def problems(file: File) -> Iterator[str]:
    """Yield every problem of a file, with its line."""
    rules = list(TEXT_RULES)
    if file.is_python:
        rules += PYTHON_RULES
    if file.path.suffix == ".md" and "changelog.d" not in file.path.parts:
        rules.append(markdown_title)
    for rule in rules:
        for problem in rule(file):
            yield f"{file.path}:{problem}"
