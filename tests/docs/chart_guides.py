"""Read from the guides what they show of the chart: Helm commands, values, and calls of dryrack."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from tests.docs.console import files

from dryrack.cluster.chart import CHART, default_values, merge_values, set_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_CODE = re.compile(r"^```(?:sh|console|yaml)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")
_SECTIONS = "|".join(default_values())
_VALUE = re.compile(rf"(?:--set )?({_SECTIONS})((?:\.(?!py$|yaml$)[A-Za-z]+)+)(?:=(.*))?")
# A dryrack command begins a line, follows a prompt, `run:`, a pipe, or an operator of the shell.
_CALL = re.compile(r"(?:^|[|;&]\s*|\bdo |\brun: )(?:sudo )?(?:KUBECONFIG=\S+ )?(dryrack [a-z].*)")
_CALL_ENDS = frozenset("|;&<>")


@dataclass(frozen=True)
class HelmCall:
    """A Helm command for the chart, with the values that it sets."""

    line: str
    release: str
    namespace: str
    values: dict[str, Any]


def lines(page: Path) -> Iterator[str]:
    """Yield the lines of the code blocks, without prompts; a continued line is one line."""
    for block in _CODE.findall(page.read_text()):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            yield line.strip().removeprefix("$ ")


def helm_calls(page: Path) -> list[HelmCall]:
    """Return the commands of a page that install the chart."""
    shown = files(page)
    return [
        _helm_call(line, shown)
        for line in lines(page)
        if line.startswith("helm ") and "deploy/chart" in line
    ]


def _helm_call(line: str, shown: Mapping[str, str]) -> HelmCall:
    words = iter(shlex.split(line, comments=True)[1:])
    namespace, names = "", []
    values: dict[str, Any] = {}
    for word in words:
        if word in ("--namespace", "-n"):
            namespace = next(words)
        elif word == "-f":
            name = next(words)
            text = shown[name] if name in shown else (ROOT / name).read_text()
            values = merge_values(values, yaml.safe_load(text))
        elif word == "--set":
            values = merge_values(values, set_value(next(words)))
        elif word == "--timeout":
            next(words)
        elif not word.startswith("-"):
            names.append(word)
    return HelmCall(line, names[-2], namespace, values)


def assignments(page: Path) -> list[str]:
    """Return `KEY=VALUE` of all values of the chart that the prose of a page names with a value."""
    return [f"{key}={value}" for key, value in _mentioned(page) if value is not None]


def unknown_values(page: Path) -> list[str]:
    """Return values of the chart that the prose of a page names and that do not exist."""
    return [key for key, _ in _mentioned(page) if not _exists(key)]


def _mentioned(page: Path) -> Iterator[tuple[str, str | None]]:
    for code in _INLINE.findall(_FENCED.sub("", page.read_text())):
        if match := _VALUE.fullmatch(code):
            yield match[1] + match[2], match[3]


def _exists(key: str) -> bool:
    here: Any = default_values()
    for name in key.split("."):
        if not isinstance(here, dict) or (here and name not in here):
            return False
        # An empty object, such as nodeSelector, has keys of the user.
        here = here.get(name, {})
    return True


def dryrack_calls(page: Path) -> list[list[str]]:
    """Return the arguments of the dryrack commands in the code blocks of a page."""
    return [words for line in lines(page) for words in _arguments(line)]


def abbreviated_calls(page: Path) -> list[list[str]]:
    """Return the arguments of the dryrack commands in the prose; they can lack arguments."""
    prose = _FENCED.sub("", page.read_text())
    codes = [code.replace("\\|", "|") for code in _INLINE.findall(prose)]
    return [words for code in codes for words in _arguments(code)]


def _arguments(line: str) -> Iterator[list[str]]:
    for call in _CALL.findall(line):
        words = re.sub(r"\d?>(&\d|\s*/dev/null)", "", call)
        lexer = shlex.shlex(words, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        lexer.commenters = "#"
        yield list(takewhile(lambda word: not set(word) <= _CALL_ENDS, list(lexer)[1:]))


def chart_command(values_file: Path) -> str:
    """Return the Helm command in the comment at the top of a values file."""
    [command] = re.findall(r"^#   (helm .*)$", values_file.read_text(), flags=re.MULTILINE)
    return str(command)


VALUES_FILES = sorted((CHART.parent / "values").glob("*.yaml"))
