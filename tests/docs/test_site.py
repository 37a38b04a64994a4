"""The documentation site builds, is complete, and loads nothing from other hosts."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

import pytest
from tests.docs import site

pytest.importorskip("material", reason="the site needs the extra docs: pip install -e '.[docs]'")

REMOTE = re.compile(r"(?:https?:)?//")
# Everything that a browser loads without being asked, by its tag and attribute.
LOADED = {
    *(("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src")),
    *(("audio", "src"), ("embed", "src"), ("object", "data"), ("img", "srcset")),
    *(("source", "srcset"), ("link", "href")),
}
TEMPLATE = site.TEMPLATE.read_text().split(site.NAV)[0]


class Loads(HTMLParser):
    """Collect what a page loads from other hosts."""

    def __init__(self) -> None:
        super().__init__()
        self.remote: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if "mermaid" in (values.get("class") or "").split():
            self.remote.append("mermaid: the theme loads its script from another host")
        # A canonical address is named, not loaded.
        loaded = {} if values.get("rel") == "canonical" else values
        self.remote += [
            value
            for name, value in loaded.items()
            if (tag, name) in LOADED and value and REMOTE.match(value)
        ]
        self.remote += remote_styles(values.get("style") or "")


def remote_styles(text: str) -> list[str]:
    """Return the addresses on other hosts that a style sheet loads."""
    named = re.findall(r"""(?:url\(|@import)\s*["']?([^"')\s;]+)""", text)
    return [each for each in named if REMOTE.match(each)]


def remote_loads(page: str) -> list[str]:
    reader = Loads()
    reader.feed(page)
    return reader.remote


def small_site(folder: Path, *, nav: str, **pages: str) -> Path:
    """Write a repository with a template and pages in docs/, and return its folder."""
    (folder / "docs").mkdir()
    (folder / site.TEMPLATE.name).write_text(f"{TEMPLATE}{site.NAV}{nav}")
    for name, text in pages.items():
        (folder / "docs" / f"{name}.md").write_text(text)
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this repository."""
    output = tmp_path_factory.mktemp("docs")
    done = site.build(output)
    assert done.returncode == 0, done.stdout + done.stderr
    return output / "site"


def test_the_site_builds_strictly(built: Path) -> None:
    """Every page is in the navigation, and every link and anchor exists."""
    pages = [place for place in site.pages().values() if place.suffix == ".md"]

    # The page for addresses that do not exist is the theme's.
    assert len(list(built.rglob("*.html"))) == len(pages) + 1


def test_the_site_loads_nothing_from_other_hosts(built: Path) -> None:
    """A reader's browser contacts only the host of the site."""
    remote = {str(page): remote_loads(page.read_text()) for page in built.rglob("*.html")}
    remote |= {str(page): remote_styles(page.read_text()) for page in built.rglob("*.css")}

    assert {page: loads for page, loads in remote.items() if loads} == {}


def test_the_search_finds_every_page(built: Path) -> None:
    """The index of the search has an entry for each page."""
    index = json.loads((built / "search" / "search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    pages = {str(page.parent.relative_to(built)) for page in built.rglob("index.html")}

    assert found == {"" if page == "." else f"{page}/" for page in pages}


@pytest.mark.parametrize(
    ("nav", "text", "problem"),
    [
        ("- index.md\n- a.md\n- b.md\n", "# A\n", "'b.md'"),
        ("- index.md\n", "# A\n", "a.md"),
        ("- index.md\n- a.md\n", "# A\n\n[there](index.md#there)\n", "#there"),
    ],
)
def test_the_build_fails_for_a_site_with_gaps(
    tmp_path: Path, nav: str, text: str, problem: str
) -> None:
    """An entry without a page, a page without an entry, and an anchor that does not exist."""
    root = small_site(tmp_path, nav=nav, index="# Home\n", a=text)
    done = site.build(tmp_path / "out", root)

    assert done.returncode != 0
    assert problem in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# A\n\n[there](there.md)\n", "docs/a.md: link to there.md, which does not exist"),
        ("# A\n\nThese are:\n- one\n", "docs/a.md:4: add an empty line before the list"),
    ],
)
def test_a_page_that_reads_differently_on_the_site_is_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    """A broken link, and a list that the site would show as a part of a paragraph."""
    root = small_site(tmp_path, nav="- a.md\n", a=text)

    with pytest.raises(site.SiteError, match=re.escape(problem)):
        site.stage(tmp_path / "out", root)


def test_a_page_that_loads_from_other_hosts_is_noticed() -> None:
    """The check of the built pages can fail."""
    page = '<link rel="stylesheet" href="//fonts.example/a.css"><a href="https://b.example">b</a>'
    style = "@import 'https://c.example/c.css'; a { background: url(data:image/png;base64,aa) }"

    assert remote_loads(page) == ["//fonts.example/a.css"]
    assert remote_styles(style) == ["https://c.example/c.css"]
    assert remote_loads('<div class="mermaid">') != []


def test_links_are_rewritten_for_the_site() -> None:
    """A link to a page leads to its place on the site; one to the source becomes its text."""
    place = PurePosixPath
    layout = {
        place("README.md"): place("index.md"),
        place("docs/start.md"): place("start.md"),
        place("examples/a/README.md"): place("examples/a/README.md"),
    }
    text = (
        "[a](docs/start.md#x) [`b`](pyproject.toml) [c](examples/a) [d](https://d.example)\n"
        "```\n[e](docs/start.md)\n```\n"
    )

    assert site.staged(text, place("README.md"), site=layout) == (
        "[a](start.md#x) `b` [c](examples/a/README.md) [d](https://d.example)\n"
        "```\n[e](docs/start.md)\n```\n"
    )


def test_a_folder_in_the_navigation_stands_for_its_pages() -> None:
    """The index comes first; a folder with several pages becomes a section."""
    places = [
        PurePosixPath("x") / path for path in ("b.md", "README.md", "a/README.md", "c-d/e/f.md")
    ]
    places += [PurePosixPath("x/c-d/g.md"), PurePosixPath("x/b.yaml"), PurePosixPath("y/z.md")]

    assert site.navigation([{"X": "x/"}, "y/z.md"], sorted(places)) == [
        {
            "X": [
                "x/README.md",
                "x/a/README.md",
                "x/b.md",
                {"c d": ["x/c-d/e/f.md", "x/c-d/g.md"]},
            ]
        },
        "y/z.md",
    ]
