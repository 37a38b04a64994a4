"""Files become documents with lines; what is wrong becomes a problem, never an exception."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dryrack.kinds.documents import Reading, read
from dryrack.kinds.text.source_positions import parse_path

SLICES = """\
# two documents and a list
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata:
  name: a
spec:
  devices:
  - name: gpu-0
    attributes:
      "example.com/model":
        string: h100
  - name: gpu-1
---
apiVersion: v1
kind: List
items:
- kind: Node
  metadata: {name: n1}
- kind: Pod
  metadata:
    name: p1
"""


def lines_of(reading: Reading) -> list[int]:
    return [problem.line for problem in reading.problems]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("", 2),
        ("kind", 3),
        ("metadata.name", 5),
        ("metadata.labels", 4),
        ("spec.devices", 7),
        ("spec.devices[0]", 8),
        ("spec.devices[0].name", 8),
        ('spec.devices[0].attributes["example.com/model"].string', 11),
        ("spec.devices[0].attributes[example.com/model].string", 11),
        ("spec.devices[0].attributes[example.com/other].string", 9),
        ("spec.devices[1].capacity[memory].value", 12),
        ("spec.devices[7].name", 7),
        ("status.conditions[0]", 2),
        ("spec.devices[", 7),
    ],
)
def test_a_path_has_a_line(path: str, line: int) -> None:
    """The line of a value, or of its nearest parent when it is not there."""
    assert read(SLICES, "f.yaml").documents[0].place(path).line == line


def test_lists_are_unwrapped_and_keep_their_lines() -> None:
    """The items of a List are documents of their own, in order."""
    documents = read(SLICES, "f.yaml").documents

    assert [(d.kind, d.name, d.line) for d in documents] == [
        ("ResourceSlice", "a", 2),
        ("Node", "n1", 17),
        ("Pod", "p1", 19),
    ]
    assert documents[2].place("metadata.name").line == 21


def test_a_typed_list_lends_its_items_their_kind() -> None:
    """kubectl writes lists whose items need not say what they are."""
    text = '{"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClassList",\n"items": [\n{}]}'
    (document,) = read(text, "f.json").documents

    assert (document.api_version, document.kind) == ("resource.k8s.io/v1", "DeviceClass")
    assert document.line == 3


def test_json_has_lines_too() -> None:
    """Places in JSON are found without a YAML parser, also in a stream of documents."""
    text = '{"kind": "A"}\n{"kind": "B",\n "spec": {"x": [1,\n {"y/z": 1.0}]}}'
    a, b = read(text, "f.json").documents

    assert (a.line, b.line) == (1, 2)
    assert b.place('spec.x[1]["y/z"]').line == 4
    assert b.place("spec.x[2]").line == 3
    assert b.raw["spec"]["x"][1] == {"y/z": 1}


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"", 1, "the file is empty"),
        (b" \n\n", 1, "the file is empty"),
        (b"# only a comment\n---\n", 1, "no document in this file"),
        (b"\x7fELF\x00\x01", 1, "a binary file, not YAML or JSON"),
        (b"a: b\nc: \x00", 2, "a binary file, not YAML or JSON"),
        (b"a: b\nc: \xff\n", 2, "byte 0xff is not UTF-8"),
        (b"\xff\xfea\x00", 1, "the file is UTF-16"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", 1, "the file is UTF-32"),
        (b"a: b\nc: \x07\n", 2, "control character '\\x07' is not allowed in YAML"),
        (b"a:\n\tb: 1\n", 2, "found character that cannot start any token"),
        (b"a: 1\nb: 2\na: 3\n", 3, "the key 'a' appears twice; the first is in line 1"),
        (b"- a\n", 1, "expected an object with apiVersion and kind, got a list"),
        (b"hello\n", 1, "expected an object with apiVersion and kind, got a string"),
        (b"kind: List\nitems:\n- 1\n", 3, "items[0]: expected an object, got the number 1"),
        (b"kind: List\nitems: 5\n", 2, "items: expected a list, got the number 5"),
        (b"a: *b\n", 1, "alias *b has no anchor before it"),
        (b"a: &a {b: *a}\n", 1, "anchor &a contains itself"),
        (b"? [a]\n: b\n", 1, "a key must be a word, not a list or an object"),
        (b"a: {{ .Values.x }}\n", 1, "a key must be a word, not a list or an object"),
        (b"a: .nan\n", 1, "nan is not a number that JSON can hold"),
    ],
)
def test_bad_input_is_one_problem_with_its_line(data: bytes, line: int, message: str) -> None:
    """Every unreadable file gets a message with file and line."""
    reading = read(data, "f.yaml")

    assert reading.documents == ()
    assert len(reading.problems) == 1
    assert message in reading.problems[0].message
    assert str(reading.problems[0]).startswith(f"f.yaml:{line}: ")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{"a": 1,}', 1, "not JSON"),
        ('{"a":\n {"b": 1,\n "b": 2}}', 3, "the key 'b' appears twice; the first is in line 2"),
        ('{"a": NaN}', 1, "NaN is not JSON"),
        ('{"a": [1,\n {"b": -Infinity}]}', 2, "-Infinity is not JSON"),
        ('{"a": [1,\n {"b": ' + "9" * 5000 + "}]}", 2, "is not a number that JSON can hold"),
        ('{"b": ' + "[" * 201 + "]" * 201 + "}", 1, "nested more than 200 levels deep"),
        ("[" * 100_000, 1, "nested more than"),
        ('{"a":' * 100_000, 1, "nested more than"),
        ('{"kind": "A"}\n{"kind"', 2, "not JSON"),
    ],
)
def test_bad_json_is_a_problem_with_its_line(text: str, line: int, message: str) -> None:
    """JSON files get JSON's messages."""
    (problem,) = read(text, "f.json").problems

    assert message in problem.message
    assert problem.line == line


def test_a_brace_may_begin_yaml() -> None:
    """A flow mapping is YAML, however much it looks like JSON."""
    assert read("{kind: A, x: 017}", "f.yaml").documents[0].raw == {"kind": "A", "x": 15}


def test_an_error_in_the_third_document_is_found_there() -> None:
    """Readable documents are returned, and all problems are reported."""
    text = "kind: A\n---\nkind: B\n---\nkind: C\n  x: 1\n---\nkind: D\nd: 1\nd: 2\n---\nkind: E\n"
    reading = read(text, "f.yaml")

    assert [document.kind for document in reading.documents] == ["A", "B", "E"]
    assert lines_of(reading) == [6, 10]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_and_byte_order_marks_do_not_matter(newline: str) -> None:
    """Files from any editor read the same, with the same lines."""
    reading = read(b"\xef\xbb\xbf" + SLICES.replace("\n", newline).encode(), "f.yaml")

    assert [document.line for document in reading.documents] == [2, 17, 19]
    assert reading.documents[0].raw["metadata"] == {"name": "a"}


def test_ten_megabytes_of_aliases_are_refused() -> None:
    """A bomb is refused on its first lines, however much follows."""
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(
        f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    (problem,) = read(bomb + "# " + "x" * 10_000_000, "bomb.yaml").problems

    assert "aliases would add more than" in problem.message
    assert problem.line == 5


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    """Any bytes at all are documents, problems or both."""
    reading = read(data, "f")

    assert reading.documents or reading.problems


alphabet = st.sampled_from([*"ab:-[]{},#&*!|>'\"% \n\t?01.~<", "---\n", "\n  ", "&a ", "*a"])


@given(st.lists(alphabet, max_size=60).map("".join))
def test_no_text_raises(text: str) -> None:
    """Text that is nearly YAML or JSON is answered as well."""
    for name in ("f.yaml", "f.json"):
        reading = read(text, name)
        assert reading.documents or reading.problems


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(json_values)
def test_every_path_of_a_json_document_has_its_own_place(value: Any) -> None:
    """Places are exact: at the place of a list element its text begins."""
    text = json.dumps({"kind": "A", "spec": value}, indent=1)
    (document,) = read(text, "f.json").documents
    for path, leaf in leaves(value, ("spec",)):
        place = document.place(path)
        line = text.splitlines()[place.line - 1][place.column - 1 :]
        key = path[-1]
        assert line.startswith(json.dumps(key) if isinstance(key, str) else json.dumps(leaf)[:1])


def leaves(value: Any, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], Any]]:
    if isinstance(value, dict):
        return [each for key, inner in value.items() for each in leaves(inner, (*path, key))]
    if isinstance(value, list):
        return [each for i, inner in enumerate(value) for each in leaves(inner, (*path, i))]
    return [(path, value)]


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", ()),
        ("spec", ("spec",)),
        ("spec.devices[2].name", ("spec", "devices", 2, "name")),
        ("a[b/c.d][0]", ("a", "b/c.d", 0)),
        ('a["b]\\"c"].d', ("a", 'b]"c', "d")),
        ('a["', ("a",)),
        ("a[", ("a",)),
        ("a..b", ("a",)),
    ],
)
def test_paths_are_read_leniently(text: str, steps: tuple[str | int, ...]) -> None:
    """Paths of validation, of people and broken ones all name a place."""
    assert parse_path(text) == steps


def test_half_a_character_is_none() -> None:
    """Go reads half of a surrogate pair as U+FFFD."""
    reading = read(r'{"kind": "\ud800", "spec": ["\ud83d\ude00", {"\uDC00": 1}]}', "f.json")

    assert [each.raw for each in reading.documents] == [
        {"kind": "\ufffd", "spec": ["\U0001f600", {"\ufffd": 1}]}
    ]


@pytest.mark.parametrize("line", ["name: {{ .Release.Name }}", "{{- if .Values.gpu }}"])
def test_templates_are_to_be_rendered_first(line: str) -> None:
    """A template instead of a manifest is reported as such."""
    reading = read(f"kind: Pod\n{line}\n", "f.yaml")

    assert "render it first" in reading.problems[0].fix
    assert reading.problems[0].line in (2, 3)


def test_lists_in_lists_are_unwrapped() -> None:
    """As kubectl does it, at any depth, in the order of the file and with the right lines."""
    inner = "  - {apiVersion: v1, kind: List, items: [{kind: B}, {kind: List}, {kind: C}]}\n"
    reading = read(f"kind: List\nitems:\n  - kind: A\n{inner}  - kind: D\n", "f.yaml")

    assert [(each.kind, each.line) for each in reading.documents] == [
        ("A", 3),
        ("B", 4),
        ("C", 4),
        ("D", 5),
    ]
    assert reading.problems == ()
