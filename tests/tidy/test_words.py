"""What a person reads has the words of the style guide."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from tests.tidy.rules import File
from tests.tidy.test_tidy import ROOT, tracked
from tests.tidy.words import dialect

# Files that still have such words, one per line; a line that ends in "/" is a folder.
# Remove the line of a file when you rewrite the file. The aim is an empty list.
STILL_ALLOWED = Path(__file__).with_name("words_allowed.txt")


def checked() -> list[PurePosixPath]:
    """Markdown everywhere, and the sources of the program."""
    return [
        path
        for path in tracked()
        if path.suffix == ".md"
        or (path.parts[0] == "src" and path.suffix in (".py", ".js", ".html"))
    ]


def findings(path: PurePosixPath) -> list[str]:
    file = File(path, (ROOT / path).read_text())
    return [f"{path}:{each}" for each in dialect(file)]


def test_words_of_files_that_are_not_on_the_list() -> None:
    """No file that has been rewritten has a word of the list again."""
    allowed = tuple(STILL_ALLOWED.read_text().split())
    found = [
        each
        for path in checked()
        if not any(
            str(path).startswith(one) if one.endswith("/") else str(path) == one for one in allowed
        )
        for each in findings(path)
    ]

    assert "\n".join(found) == ""


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("docs/a.md", "# One\n\nThe node is told of it.\n", "3: 'told': write print"),
        ("docs/a.md", "# One\n\nA field that there is not.\n", "3: 'that there is not'"),
        ("docs/a.md", "# One\n\n```sh\nx\n```\n\nA plane.\n", "7: 'plane': write 'control plane'"),
        ("src/a.py", 'raise ValueError(f"{a}: nobody has {b}")\n', "1: 'nobody': name the actor"),
        ("src/a.py", 'help = "Which cluster; else as kubectl."\n', "1: '; else': write 'Default"),
        ("src/a.py", 'x = "Print the rights; end."\n', "1: '; end': write 'and exit'"),
        ("src/a.py", "x = '--devices: of which machine?'\n", "no questions"),
        ("src/a.py", '@app.command()\ndef a():\n    """Nobody here."""\n', "3: 'Nobody'"),
        ("src/a.js", "// nobody reads\nh('p', 'nobody has it')\n", "2: 'nobody'"),
    ],
)
def test_a_planted_word_is_found(path: str, text: str, complaint: str) -> None:
    """The check finds each kind of text, and names the line."""
    [found] = dialect(File(PurePosixPath(path), text))

    assert complaint in found


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("docs/a.md", "# One\n\nThe field `says` and [this](told.md).\n\n```sh\nnobody\n```\n"),
        ("docs/a.md", "# One\n\nThe control plane.\n"),
        ("src/a.py", '"""Nobody reads it."""\n\n\ndef a():\n    """Told."""\n    # told to all\n'),
        ("src/a.py", 'x = "nobody"\n'),
    ],
)
def test_words_in_code_and_comments_are_not_found(path: str, text: str) -> None:
    """Code, names, docstrings and comments are not part of what this check reads."""
    assert list(dialect(File(PurePosixPath(path), text))) == []
