"""The recorded answers are facts, and the files are as the recorder writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from tests.cases.layout import to_yaml
from tests.cases.record import recorded
from tests.cases.store import Kind, cases, own_files, read

if TYPE_CHECKING:
    from pathlib import Path

KINDS: tuple[Kind, ...] = get_args(Kind)
FILES = [path for kind in KINDS for path in own_files(kind)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_case_has_an_idea_and_an_answer(path: Path) -> None:
    """A case says in a sentence what it is about, and what Kubernetes answered."""
    case = read(path)

    assert case["idea"].endswith(".")
    assert case["answer"]
    assert to_yaml({name: part for name, part in case.items() if name != "name"}) == (
        path.read_text()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_no_two_cases_are_about_the_same(kind: Kind) -> None:
    """Each case has an idea of its own."""
    ideas = [read(path)["idea"] for path in own_files(kind)]

    assert len(ideas) == len(set(ideas))


def test_a_directory_without_cases_is_an_error(tmp_path: Path) -> None:
    """A mistyped DRYRACK_CASES must not look like cases that passed."""
    with pytest.raises(AssertionError, match=r"has no allocator\*\.json"):
        cases("allocator", {"DRYRACK_CASES": str(tmp_path)})


def test_cases_of_a_directory_have_their_answers_apart(tmp_path: Path) -> None:
    """Cases in JSON keep question and answer in one object; here they are told apart."""
    (tmp_path / "cel-1.json").write_text('[{"name": "a", "expression": "true", "match": true}]')
    other = cases("cel", {"DRYRACK_CASES": str(tmp_path)})[-1]

    assert other == {
        "name": "cel-1/a",
        "expression": "true",
        "release": "1.36",
        "answer": {"match": True},
    }


def test_whole_texts_of_errors_replace_parts_of_them(tmp_path: Path) -> None:
    """A case with the whole text is compared with it; another one with the part that it has."""
    whole = '{"name": "a", "matchError": "b", "matchErrorText": "a b c"}'
    part = '{"name": "b", "matchError": "b"}'
    (tmp_path / "cel-1.json").write_text(f"[{whole}, {part}]")
    answers = [each["answer"] for each in cases("cel", {"DRYRACK_CASES": str(tmp_path)})[-2:]]

    assert answers[0] == {"matchError": "a b c", "hasWholeTexts": True}
    assert answers[1] == {"matchError": "b", "hasWholeTexts": False}


@pytest.mark.real
def test_recorded_answers_are_what_kubernetes_says() -> None:
    """No answer was written by hand, and none is out of date."""
    stale = [path.stem for path, text in recorded(FILES) if path.read_text() != text]

    assert stale == []
