"""
Find words that make text hard to read in everything that a person reads.

The text is the prose of Markdown files, and in `src` the string literals that contain a space:
help, errors, warnings, events and log lines. Docstrings and comments are not checked, except
the docstrings of commands, which typer prints as help. Each word has advice what to write.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.tidy.rules import File

WORDS: dict[str, str] = {
    r"nobody|somebody|anybody|everybody|whoever|whomever|whom": "name the actor, or write 'you'",
    r"tells?|telling|told": "write print, show, report, return, record, or warn",
    r"says?|said|saying|speaks?|spoken": "write print, show, report, return, record, or warn",
    r"there (is|are) none|(is|are) (?-i:none)|that there (is|are) not": "write 'does not exist'",
    r"(is|are|was|were|be) (not )?there|not there|there already": "write 'exists', 'not found'",
    r"(is|are|was|were) gone": "write 'no longer exists', 'was deleted'",
    r"(?<!control )(?<!control-)(?<!data )planes?": "write 'control plane' or 'virtual cluster'",
    r"rooms?|houses?|museum|weather|dice|by chance": "no metaphors; write package, capacity, …",
    r"(?<!real-)worlds?": "write 'scenario' or 'cluster'",
    r"anew|in vain|thereof|whereof|shall|lest": "write plain English",
    r"(make|makes|made) way|(give|gives|given|gave) (away|out)|(hand|hands|handed) out": (
        "write preempt or allocate"
    ),
    r"(can|could|to) be had": "write 'is available'",
    r"reckon(s|ed)?|deeds?|mend(s|ed)?|heals?|healed": "write count, action, fix, end the fault",
    r"looked at": "write 'checks', 'uses', 'ignores'",
    r"(takes?|took) (no )?part": "write 'ignored', 'uses'",
    r"will do(?! \w)": "write 'you can use'",
    r"(?<!this )of (your|its|their|our) own|of ours": "write 'your own X'",
    r"beside": "write 'next to' or 'in addition to'",
    r"wants|knows|hopes|wishes": "code has no wishes; write needs, requires, reads, has",
    r"(?<!own )words": "write message, text, name",
    r"goes|does not go|come of (it|them)|comes of it": "write 'is bound to', 'is deleted'",
    r"half a (pool|gang)|nearest miss": "write 'incomplete pool', 'closest node'",
    r"at rest|at work": "write 'idle', 'running'",
    r"held against": "write 'compared with'",
    r"(behaviou?|colou|neighbou|favou|honou)rs?(?<!iors)(?<!ior)(?<!lors)(?<!lor)": "US spelling",
    r"(organ|recogn|normal|serial|initial|minim|maxim|summar|author|anonym)is(e[ds]?|ing|ation)": (
        "US spelling"
    ),
    r"(?<![-/`:'\"])catalogues?(?![:/=`'\"])": "US spelling: catalog (the flag is --catalogue)",
}
# Questions, and clauses that begin with "else" or end with "end", in text of the program.
PHRASES: dict[str, str] = {
    r"[;,] else\b|^else\b|\. Else\b": "write 'Default: …'",
    r"; end\b|\band end\.": "write 'and exit'",
    r"\b([Oo]f )?(which|how many|what|whose) ?[\w ]*\?": "no questions; write what to do",
}

# Sentences that Kubernetes has word for word, and that clients compare.
KUBERNETES: tuple[str, ...] = ()

_WORDS = {re.compile(rf"\b({words})\b", re.I): advice for words, advice in WORDS.items()}
_PHRASES = {re.compile(phrase): advice for phrase, advice in PHRASES.items()}
_CODE = re.compile(r"^ *(```|~~~).*?^ *\1|``.*?``|`[^`\n]*`|\]\([^)\n]*\)|<!--.*?-->", re.M | re.S)
_SCRIPT = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`", re.S
)


def dialect(file: File) -> Iterator[str]:
    """Yield the line, the word and the advice for each word that a reader should not meet."""
    for line, text in _texts(file):
        patterns = dict(_WORDS)
        if file.path.suffix != ".md":
            patterns |= _PHRASES
        for pattern, advice in patterns.items():
            for match in pattern.finditer(text):
                if not _is_kubernetes(text):
                    number = line + text.count("\n", 0, match.start()) * (file.path.suffix == ".md")
                    yield f"{number}: '{match[0]}': {advice}"


def _is_kubernetes(text: str) -> bool:
    return any(sentence in text for sentence in KUBERNETES)


def _texts(file: File) -> Iterator[tuple[int, str]]:
    match file.path.suffix:
        case ".md":
            yield 1, _CODE.sub(_blank, file.text)
        # The long strings of an __init__ are the names that it exports.
        case ".py" if file.path.name != "__init__.py":
            skipped = {id(node) for node in _statements(file)}
            yield from _literals(file.tree, skipped)
        case ".js" | ".html":
            for match in _SCRIPT.finditer(file.text):
                if match[0][0] != "/" and " " in match[0].strip():
                    yield file.text.count("\n", 0, match.start()) + 1, match[0][1:-1]


def _blank(match: re.Match[str]) -> str:
    """The lines without the text, so that line numbers stay."""
    return "\n" * match[0].count("\n") or "code"


def _statements(file: File) -> Iterator[ast.expr]:
    """Yield the docstrings, except those of commands and of their options."""
    shown = set()
    for node in ast.walk(file.tree):
        match node:
            case ast.FunctionDef() if _is_command(node):
                shown.add(id(node.body[0]))
            case ast.ClassDef(name=name) if name.endswith("Options") and "cli" in file.path.parts:
                shown.add(id(node.body[0]))
    for node in ast.walk(file.tree):
        match node:
            case ast.Expr(value=ast.Constant() as text) if id(node) not in shown:
                yield text


def _is_command(node: ast.FunctionDef) -> bool:
    made = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return any(isinstance(each, ast.Attribute) and each.attr == "command" for each in made)


def _literals(node: ast.AST, skipped: set[int]) -> Iterator[tuple[int, str]]:
    """The string literals with a space; an f-string is one text, with … for its values."""
    if isinstance(node, ast.JoinedStr):
        parts = [each.value if isinstance(each, ast.Constant) else "…" for each in node.values]
        if " " in (text := "".join(map(str, parts))).strip():
            yield node.lineno, text
        for each in node.values:
            if isinstance(each, ast.FormattedValue):
                yield from _literals(each.value, skipped)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and id(node) not in skipped and " " in node.value.strip():
            yield node.lineno, node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _literals(child, skipped)
