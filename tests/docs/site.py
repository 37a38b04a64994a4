"""
Build the documentation site from the pages of the repository.

    python -m tests.docs.site [DIRECTORY]

DIRECTORY (default: build/docs) receives the staged pages in `pages`, the completed
configuration in `mkdocs.yml`, and the HTML in `site`.

A page is written once and read in two places: in the repository and on the site. Pages are
therefore staged: a link to a file that is a page of the site becomes a link to that page, and a
link to any other file of the repository becomes plain text, because the site does not contain
that file. mkdocs then builds strictly: it fails for a broken link, for an anchor that does not
exist, and for a page that `nav` in mkdocs.template.yml does not list.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
TEMPLATE = ROOT / "mkdocs.template.yml"
OUTPUT = ROOT / "build" / "docs"

# Pages and files outside docs/ and examples/, with their place on the site.
ELSEWHERE = {
    "README.md": "index.md",
    "COVERAGE.md": "reference/api-coverage.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "CHANGELOG.md": "contributing/changelog.md",
    "SECURITY.md": "contributing/security.md",
    "CODE_OF_CONDUCT.md": "contributing/code-of-conduct.md",
    "LICENSE": "LICENSE.txt",
    "NOTICE": "NOTICE.txt",
}
FENCE = re.compile(r"^ *(```|~~~)")
LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]"
    r"\((?!https?:|mailto:|#)(?P<target>[^()\s#]+)(?P<anchor>#[^()\s]*)?\)"
)
LIST_ITEM = re.compile(r" *(?:[-*+]|\d+\.) ")
NAV = "\nnav:\n"


class SiteError(ValueError):
    """A page cannot be part of the site."""


def pages(root: Path = ROOT) -> dict[PurePosixPath, PurePosixPath]:
    """Return every file of the site: its path in the repository, and its path on the site."""
    found = {
        PurePosixPath(path): PurePosixPath(place)
        for path, place in ELSEWHERE.items()
        if (root / path).is_file()
    }
    for folder, place in (("docs", ""), ("examples", "examples")):
        for file in sorted((root / folder).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                within = PurePosixPath(file.relative_to(root / folder).as_posix())
                found[PurePosixPath(folder) / within] = PurePosixPath(place) / within
    return found


def staged(
    text: str, path: PurePosixPath, *, site: dict[PurePosixPath, PurePosixPath], root: Path = ROOT
) -> str:
    """Return the page at `path` as the site shows it, with its links rewritten."""

    def rewritten(link: re.Match[str]) -> str:
        target = PurePosixPath(os.path.normpath(path.parent / link["target"]))
        here = site[path].parent
        if target in site:
            place = os.path.relpath(site[target], here)
            return f"{link['image']}[{link['text']}]({place}{link['anchor'] or ''})"
        index = target / "README.md"
        if index in site:
            return f"[{link['text']}]({os.path.relpath(site[index], here)}{link['anchor'] or ''})"
        if not (root / target).exists():
            raise SiteError(f"{path}: link to {link['target']}, which does not exist")
        return link["text"]

    lines = []
    fence = ""
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1] == fence else fence
        elif mark:
            fence = mark[1]
        elif LIST_ITEM.match(line) and _is_paragraph(before):
            raise SiteError(f"{path}:{number}: add an empty line before the list")
        else:
            line = LINK.sub(rewritten, line)
        lines.append(line)
        before = line
    return "\n".join(lines) + "\n"


def _is_paragraph(line: str) -> bool:
    """Return whether a list after `line` would become a part of its paragraph."""
    return bool(line.strip()) and not line.startswith((" ", "#")) and not LIST_ITEM.match(line)


def navigation(entries: list[Any], places: list[PurePosixPath]) -> list[Any]:
    """Return the `nav` section with each folder replaced by its pages."""
    expanded: list[Any] = []
    for entry in entries:
        match entry:
            case str() if entry.endswith("/"):
                expanded += folder(PurePosixPath(entry), places)
            case str():
                expanded.append(entry)
            case dict():
                [(title, inner)] = entry.items()
                below = inner if isinstance(inner, list) else [inner]
                expanded.append({title: navigation(below, places)})
            case _:
                raise SiteError(f"mkdocs.template.yml: nav: {entry!r} is not a page or a section")
    return expanded


def folder(path: PurePosixPath, places: list[PurePosixPath]) -> list[Any]:
    """Return the pages of a folder: its index, then pages and folders by name."""
    within = [place for place in places if path in place.parents and place.suffix == ".md"]
    entries: dict[str, Any] = {}
    for place in within:
        first, *rest = place.relative_to(path).parts
        if not rest:
            entries[first] = str(place)
            continue
        below = folder(path / first, places)
        alone = len(below) == 1 and isinstance(below[0], str)
        entries[first] = below[0] if alone else {first.replace("-", " "): below}
    return [entries[name] for name in sorted(entries, key=lambda name: (not is_index(name), name))]


def is_index(name: str) -> bool:
    return name in ("index.md", "README.md")


def stage(output: Path, root: Path = ROOT) -> Path:
    """Write the pages and the configuration to `output`, and return the configuration."""
    shutil.rmtree(output / "pages", ignore_errors=True)
    site = pages(root)
    for path, place in site.items():
        target = output / "pages" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.suffix == ".md":
            target.write_text(staged((root / path).read_text(), path, site=site, root=root))
        else:
            shutil.copyfile(root / path, target)
    settings, nav = (root / TEMPLATE.name).read_text().split(NAV)
    expanded = navigation(yaml.safe_load(nav), sorted(site.values()))
    configuration = output / "mkdocs.yml"
    configuration.write_text(settings + NAV + yaml.safe_dump(expanded, sort_keys=False))
    return configuration


def build(output: Path, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Build the site into `output / "site"`; return whether mkdocs succeeded."""
    configuration = stage(output, root)
    # Not --quiet: it hides the warnings from --strict, too.
    command = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    return subprocess.run(
        [*command, "--config-file", str(configuration)],
        # The theme otherwise prints an announcement about another version of mkdocs.
        env={**os.environ, "NO_MKDOCS_2_WARNING": "true", "DISABLE_MKDOCS_2_WARNING": "true"},
        capture_output=True,
        text=True,
        check=False,
    )


def main(arguments: list[str]) -> int:
    output = Path(arguments[0]).resolve() if arguments else OUTPUT
    try:
        done = build(output)
    except SiteError as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 1
    told = (done.stdout + done.stderr).splitlines(keepends=True)
    sys.stderr.writelines(line for line in told if not line.startswith("INFO"))
    if done.returncode == 0:
        sys.stdout.write(f"{output / 'site' / 'index.html'}\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
