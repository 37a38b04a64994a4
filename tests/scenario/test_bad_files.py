"""Scenario files that say something wrong: each is refused with its line and field."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from dryrack.scenario import ScenarioError, read_scenario

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "apiVersion: dryrack.dev/v1alpha1\nkind: Scenario\n"
STEP = "steps:\n- wait: 1s\n"


def problems(text: str, folder: Path, *, head: str = HEAD) -> list[str]:
    with pytest.raises(ScenarioError) as refusal:
        read_scenario(head + text, "s.yaml", name="s", folder=folder)
    return str(refusal.value).splitlines()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "steps:\n- title: x\n  aply: [a.yaml]\n",
            "s.yaml:5: steps[0].aply: unknown field; did you mean 'apply'?",
        ),
        (
            "fleet:\n  nodes: [{name: a, count: two}]\n" + STEP,
            (
                's.yaml:4: fleet.nodes[0].count: expected a 32-bit integer, got the string "two"; '
                "write a 32-bit integer, without quotes"
            ),
        ),
        (
            "fleet:\n  nodes:\n  - {name: a, count: 11000}\n" + STEP,
            (
                "s.yaml:5: fleet.nodes[0].count: the scenario has 11000 nodes; the limit "
                "SCENARIO_NODES_MAX is 10000; use fewer nodes"
            ),
        ),
        (
            "fleet:\n  nodes:\n  - {name: a, profile: p5.48xlrage}\n" + STEP,
            (
                "s.yaml:5: fleet.nodes[0].profile: unknown instance type 'p5.48xlrage'; did "
                "you mean 'p5.48xlarge'? see: dryrack hardware list"
            ),
        ),
        (
            "fleet:\n  nodes: [{count: 1}]\n" + STEP,
            "s.yaml:4: fleet.nodes[0].name: required value",
        ),
        (
            "fleet:\n  nodes:\n  - {name: a-1}\n  - {name: a, count: 2}\n" + STEP,
            (
                "s.yaml:6: fleet.nodes[1].name: fleet.nodes[0] already creates node a-1; "
                "use another name"
            ),
        ),
        (
            "fleet:\n  devices: [fake:8, laser:2]\n" + STEP,
            "s.yaml:4: fleet.devices[1]: ",
        ),
        (
            "limit: 1m\nsteps:\n- at: 2h\n  wait: 1s\n",
            "s.yaml:5: steps[0].at: 2h is after the end of the scenario; increase limit",
        ),
        (
            "steps:\n- at: tomorrow\n  wait: 1s\n",
            "s.yaml:4: steps[0].at: 'tomorrow' is not a duration; use a duration such",
        ),
        (
            "limit: 1000h\n" + STEP,
            (
                "s.yaml:3: limit: 1000h; the limit SCENARIO_SECONDS_MAX is 30 days; use a "
                "shorter time"
            ),
        ),
        (
            "steps:\n- {id: a, after: b, wait: 1s}\n- {id: b, after: a, wait: 1s}\n",
            "s.yaml:4: steps[0].after: a cycle: a after b after a; let one of them begin at a time",
        ),
        (
            "steps:\n- {id: gang, wait: 1s}\n- {after: gnag, wait: 1s}\n",
            "s.yaml:5: steps[1].after: no step has the id 'gnag'; did you mean 'gang'?",
        ),
        (
            "steps:\n- {id: a, wait: 1s}\n- {id: a, wait: 1s}\n",
            "s.yaml:5: steps[1].id: steps[0] has the same id 'a'; use another id",
        ),
        (
            "steps:\n- apply: [nothing.yaml]\n",
            (
                "s.yaml:4: steps[0].apply[0]: 'nothing.yaml': no such file or directory; use "
                "a file in "
            ),
        ),
        (
            "steps:\n- expect: [{object: Pod/a, fields: {'status[': x}}]\n",
            "s.yaml:4: steps[0].expect[0].fields[\"status[\"]: 'status[' is not a path; use a path",
        ),
        (
            "steps:\n- apply: [{apiVersion: v1, kind: Pod, metadata: {name: 5}}]\n",
            "s.yaml:4: steps[0].apply[0]: an object without its name or kind; write apiVersion",
        ),
        (
            "steps:\n- apply: [{kind: Pod}]\n",
            (
                "s.yaml:4: steps[0].apply[0]: an object without its name or kind; write "
                "apiVersion, kind and metadata.name"
            ),
        ),
        (
            (
                "steps:\n- apply:\n  - {repeat: 3, object: {apiVersion: v1, kind: Pod, "
                "metadata: {name: a}}}\n"
            ),
            (
                "s.yaml:5: steps[0].apply[0].object: all copies would have the same "
                "name; add $n, the number of the copy, to metadata.name"
            ),
        ),
        (
            "steps:\n- wait: 1s\n  delete: [Pod/a]\n",
            "s.yaml:4: steps[0].wait: a step has one action, and this one already has",
        ),
        (
            "steps:\n- evict: [Deployment/web]\n",
            "s.yaml:4: steps[0].evict[0]: 'Deployment/web' is not a Pod; write Pod/[NAME",
        ),
        (
            "steps:\n- title: nothing\n",
            (
                "s.yaml:4: steps[0]: the step does nothing; add one of apply, delete, evict, "
                "scale, patch, fail, heal, wait, expect"
            ),
        ),
        (
            "steps:\n- expect:\n  - {object: Pod/a, gone: Pod/b}\n",
            (
                "s.yaml:5: steps[0].expect[0]: has object and gone; an expectation has one "
                "subject; use one of object, devices, published, log, event, gone"
            ),
        ),
        (
            "steps:\n- expect:\n  - {object: pods web}\n",
            (
                "s.yaml:5: steps[0].expect[0].object: 'pods web' is not a reference to an "
                "object; write KIND/NAME or KIND/NAMESPACE/NAME, as in Pod/default/web-*"
            ),
        ),
        (
            "steps:\n- expect:\n  - {devices: {Node/a: []}}\n",
            (
                "s.yaml:5: steps[0].expect[0].devices[\"Node/a\"]: 'Node/a' is not a Pod; write "
                "Pod/[NAMESPACE/]NAME"
            ),
        ),
        (
            "steps:\n- expect:\n  - {published: {a: many}}\n",
            (
                "s.yaml:5: steps[0].expect[0].published.a: expected counts or patterns, got the "
                'string "many"; write {DRIVER: COUNT}, or a list of DRIVER/POOL/DEVICE patterns'
            ),
        ),
        (
            "steps:\n- wait: 1s\n  show: [devcies]\n",
            ("s.yaml:5: steps[0].show[0]: unknown output 'devcies'; did you mean 'devices'?"),
        ),
        ("title: x\n", "s.yaml:1: steps: the list is empty; add steps"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, complaint: str, tmp_path: Path) -> None:
    """File, line, field, what is so, and what would be right."""
    [told] = problems(text, tmp_path)

    assert told.startswith(complaint)


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    """In the order of its lines, also what is wrong in a file that it names."""
    (tmp_path / "broken.yaml").write_text("a: [\n")
    (tmp_path / "nameless.yaml").write_text("a: 1\n")
    told = problems("steps:\n- apply: [broken.yaml, nameless.yaml]\n- wait: soon\n", tmp_path)

    assert told[0].startswith("s.yaml:5: steps[1].wait: 'soon' is not a duration")
    assert told[1].startswith(f"{tmp_path}/nameless.yaml:1: an object without its name or kind")
    assert told[2].startswith(f"{tmp_path}/broken.yaml:2: ")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
            "s.yaml:2: expected a scenario, got v1 Pod",
        ),
        ("a: 1\n", "s.yaml:1: expected a scenario, got neither apiVersion nor kind"),
        (HEAD + STEP + "---\n" + HEAD + STEP, "s.yaml:6: a scenario file has one document"),
    ],
)
def test_what_is_no_scenario_is_told_so(text: str, complaint: str, tmp_path: Path) -> None:
    """A manifest that was named by mistake, or two scenarios in a file."""
    [told] = problems(text, tmp_path, head="")

    assert told.startswith(complaint)


SECRET = "root:x:0:0:hunter2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder beside a file that is nobody's business, and links that lead there."""
    (tmp_path / "secret.yaml").write_text(SECRET)
    below = tmp_path / "scenarios"
    (below / "deep").mkdir(parents=True)
    (below / "link.yaml").symlink_to(tmp_path / "secret.yaml")
    (below / "up").symlink_to(tmp_path)
    (below / "loop.yaml").symlink_to(below / "loop.yaml")
    os.mkfifo(below / "fifo.yaml")
    return below


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../secret.yaml", "not in the folder of the scenario"),
        ("deep/../../secret.yaml", "not in the folder of the scenario"),
        ("link.yaml", "not in the folder of the scenario"),
        ("up/secret.yaml", "not in the folder of the scenario"),
        ("../../../../../../../../../../etc/passwd", "not in the folder of the scenario"),
        ("/etc/passwd", "an absolute path"),
        ("../nothing-there.yaml", "not in the folder of the scenario"),
        ("fifo.yaml", "not a regular file"),
        ("loop.yaml", "no such file or directory"),
        ("a\0b.yaml", "embedded null byte"),
        ("a" * 5000 + ".yaml", "file name too long"),
    ],
)
def test_a_scenario_reads_no_file_outside_its_folder(name: str, why: str, folder: Path) -> None:
    """Neither by its path nor by a link; and the refusal says nothing of what is there."""
    for place in ("objects", "apply", "delete"):
        entry = json.dumps([name])
        text = f"steps: [{{wait: 1s}}]\nobjects: {entry}\n"
        text = text if place == "objects" else f"steps: [{{{place}: {entry}}}]\n"
        [told] = problems(text, folder)

        assert f"{why}; use a file in {folder}" in told
        assert "hunter2" not in told
        assert "root" not in told.replace("-of-root", "")


def test_files_in_the_folder_and_below_it_are_read(folder: Path) -> None:
    """Also by a link that stays in the folder, as a volume of a ConfigMap has them."""
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    (folder / "deep" / "a.yaml").write_text(manifest)
    (folder / "b.yaml").symlink_to(folder / "deep" / "a.yaml")
    text = f"{HEAD}objects: [deep/a.yaml, b.yaml, deep/../b.yaml]\n{STEP}"
    loaded = read_scenario(text, "s.yaml", name="s", folder=folder)

    assert len(loaded.objects_of(loaded.scenario.objects)) == 3


@pytest.mark.parametrize(
    "content", [SECRET, "- hunter2\n", "hunter2: [\n", "a: *hunter2\n", "'hunter2"]
)
def test_no_error_quotes_a_file_that_has_no_objects(content: str, tmp_path: Path) -> None:
    """Only its name and a line."""
    (tmp_path / "a.yaml").write_text(content)
    told = problems("objects: [a.yaml]\n" + STEP, tmp_path)

    assert told[0].startswith(f"{tmp_path}/a.yaml:")
    assert "not a file with Kubernetes objects; to see the problem, run: dryrack lint" in told[0]
    assert "hunter2" not in "".join(told)
