"""
A file has the documents that kubectl reads from it, and no text is skipped.

What kubectl refuses is refused. Where it reads less than is written, dryrack differs from it on
purpose: whoever asks what a file means to a cluster wants to hear that a part of it means nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.kinds.manifests import Row, drawn, kubectl, recorded

from dryrack.kinds.text.manifest_text import documents
from dryrack.kinds.text.parsed import Fault, Parsed, RepeatedKey

if TYPE_CHECKING:
    from tests.kinds.manifests import Answer


# The faults of texts that kubectl reads.
PASSED_OVER = "text after the end of the document"
NOT_FOR_KUBERNETES = "directives such as %YAML"
DRAWN = 20_000
SEED = 36
SHOWN_MAX = 5


def found(text: str) -> tuple[list[Any], list[Fault]]:
    """The documents that have something in them, and the faults."""
    all_found = list(documents(text, "f.yaml"))
    values = [each.value for each in all_found if isinstance(each, Parsed)]
    faults = [each for each in all_found if isinstance(each, Fault)]
    return [value for value in values if value is not None], faults


@pytest.mark.parametrize("row", recorded(), ids=lambda row: repr(row.text))
def test_each_file_has_the_documents_that_kubectl_finds(row: Row) -> None:
    """Same documents; a fault where kubectl refuses, and where it would lose something."""
    values, faults = found(row.text)

    assert bool(faults) == bool(row.error or row.lost)
    if not faults:
        assert same(values, row.documents)


def same(ours: Any, theirs: Any) -> bool:
    return json.dumps(ours, sort_keys=True) == json.dumps(theirs, sort_keys=True)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\n...\nb: 2\n", 3),
        ("{a: 1}\n{b: 2}\n", 2),
        ("'a' b\n", 1),
        ("a: 1\n---\nb: 2\n...\n*c\n---\nd: 3\n", 5),
    ],
)
def test_text_after_the_end_of_a_document_is_a_fault(text: str, line: int) -> None:
    """kubectl ignores such text, so an object would be missing without a message."""
    _, (fault,) = found(text)

    assert fault.message.startswith(PASSED_OVER)
    assert "put a line with ---" in fault.fix
    assert fault.place.line == line


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("1: a\n'1': b\n", '1 and "1"'),
        ("'1': a\n1: b\n", '"1" and 1'),
        ("'true': a\non: b\n", '"true" and true'),
        ("1.0: a\n1: b\n", "1.0 and 1"),
    ],
)
def test_keys_that_become_one_are_a_fault(text: str, keys: str) -> None:
    """JSON has one key for both, and which value it gets is left to chance by kubectl."""
    values, (fault,) = found(text)

    assert values == []
    assert fault.message == f"the keys {keys} are one key in JSON; the first is in line 1"
    assert fault.place.line == 2


def test_an_object_that_begins_in_another_is_told_once() -> None:
    """Files that were joined without a divider repeat every key; the message says why."""
    inner = "metadata: {name: a, name: b}\n"
    _, (nested, joined) = found(
        f"apiVersion: v1\nkind: Pod\n{inner}apiVersion: v1\nkind: Pod\n{inner}"
    )

    assert (nested.place.line, nested.fix) == (3, "remove one of the two")
    assert joined.place.line == 4
    assert "put a line with --- before it" in joined.fix


def test_a_fault_in_one_document_is_told_once() -> None:
    """Also if the document is over before its file is."""
    _, faults = found("a: 1\na: 2\n...\nb\n---\nc: [\n---\n--- d\n")

    assert [each.place.line for each in faults] == [2, 4, 7, 8]


def test_files_of_faults_are_not_read_to_the_end() -> None:
    """After a good number of them the rest would be noise; keys that are there twice are not."""
    _, faults = found("a: [\n---\n" * 100)
    _, repeated = found("a: 1\na: 2\n---\n" * 100)

    assert (len(faults), faults[-1].message) == (21, "more than 20 faults; the rest was not read")
    assert len(repeated) == 100


@pytest.mark.real
def test_the_recorded_answers_are_kubectls() -> None:
    """They have not drifted from Kubernetes, nor been written by hand."""
    rows = {row.text: row for row in recorded()}
    with kubectl() as oracle:
        for asked, theirs in oracle.ask([{"text": text} for text in rows]):
            row = rows[asked["text"]]
            assert (row.documents, row.error) == (theirs.documents, theirs.error)


@pytest.mark.real
def test_no_text_means_something_else_to_kubectl() -> None:
    """For any text, the documents are the same, or there is a fault with a reason."""
    with kubectl() as oracle:
        asked = oracle.ask(drawn(DRAWN, SEED))
        differ = [repr(each["text"]) for each, theirs in asked if differs(each["text"], theirs)]

    assert not differ, f"{len(differ)} of {DRAWN} differ: {', '.join(differ[:SHOWN_MAX])}"


def differs(text: str, theirs: Answer) -> bool:
    values, faults = found(text)
    if theirs.error:
        return not faults
    if faults:
        # Of text after a list or a word libyaml may see the end earlier than Go does; there are
        # no such manifests.
        objects = all(isinstance(each, dict) and each for each in theirs.documents)
        return objects and not any(is_on_purpose(each) for each in faults)
    return not same(values, theirs.documents)


def is_on_purpose(fault: Fault) -> bool:
    """Return whether kubectl reads the text and ignores a part of it."""
    words = (PASSED_OVER, NOT_FOR_KUBERNETES)
    return isinstance(fault, RepeatedKey) or fault.message.startswith(words)
