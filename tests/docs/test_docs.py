"""Examples run as shown, links have targets, and generated pages are current."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from tests.docs.console import examples, fits, follow, needs_kubectl
from tests.docs.dashboard_api import documented_routes, plain
from tests.docs.glossary import MEANINGS, REMEDIES
from tests.docs.reference import PAGES

from dryrack.allocation.model.reasons import Code
from dryrack.controllers.pods.lifecycle import Script
from dryrack.dashboard.pages import ROUTES
from dryrack.hardware.catalogue.entries import API_VERSION

ROOT = Path(__file__).parents[2]
# tests/docs/test_kubectl_examples.py runs the pages that use kubectl.
PAGES_WITH_EXAMPLES = [
    path for path in sorted(ROOT.glob("docs/**/*.md")) if examples(path) and not needs_kubectl(path)
]
EVERY_PAGE = [
    ROOT / "README.md",
    *sorted(ROOT.glob("docs/**/*.md")),
    *sorted(ROOT.glob("examples/**/*.md")),
]
# One screen of a laptop.
README_LINES_MAX = 70


@pytest.mark.parametrize("page", PAGES_WITH_EXAMPLES, ids=lambda page: page.stem)
def test_examples_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """Every command of a page, run in order, prints the output below it."""
    follow(page, tmp_path)


@pytest.mark.parametrize("page", EVERY_PAGE, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """The file of a relative link exists."""
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())

    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("name", PAGES)
def test_reference_pages_follow_the_code(name: str) -> None:
    """Otherwise run: python -m tests.docs.reference."""
    assert (ROOT / name).read_text() == PAGES[name]()


def test_every_route_of_the_page_is_explained() -> None:
    """The page about the JSON API describes every route."""
    assert sorted(documented_routes()) == sorted(map(plain, ROUTES))


def test_every_reason_is_explained() -> None:
    """Each code has a meaning and a remedy."""
    assert set(MEANINGS) == set(REMEDIES) == set(Code)


def test_every_annotation_is_explained() -> None:
    """The page lists the keys that the code uses, and no others."""
    page = (ROOT / "docs/reference/annotations.md").read_text()
    sources = "".join(path.read_text() for path in ROOT.glob("src/dryrack/**/*.py"))
    keys = set(re.findall(r'"(dryrack\.dev/[a-z0-9-]+)"', sources)) - {API_VERSION}
    values = (each for each in fields(Script) if not each.name.startswith("decides_"))
    keys |= {f"dryrack.dev/{each.name.replace('_', '-')}" for each in values}

    assert "dryrack.dev/silent" in keys
    assert set(re.findall(r"^\| `(dryrack\.dev/[^`]+)`", page, re.MULTILINE)) == keys


def test_the_readme_fits_on_one_screen() -> None:
    """The README is short; other pages have the details."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES_MAX


def test_an_example_that_prints_something_else_is_noticed() -> None:
    """The comparison itself can fail."""
    assert fits("a ...\n...\nz\n", "a b\nc\nd\nz\n")
    assert not fits("a ...\nz\n", "a b\nc\nz\n")


def test_the_architecture_page_names_files_that_exist() -> None:
    """Every file and folder that the page about the packages names exists."""
    page = (ROOT / "docs" / "internals" / "architecture.md").read_text()
    named = re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py)?)`", page)

    assert len(named) > 30
    assert [each for each in named if not (ROOT / "src" / "dryrack" / each).exists()] == []
