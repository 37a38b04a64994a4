"""
Every invalid input gives one clear error with its place, and never a traceback.

The exit status is 2 for wrong usage and 1 for invalid content.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml
from tests.cli.command import EXAMPLES, documents, dryrack

if TYPE_CHECKING:
    from pathlib import Path

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}
"""
CLASS = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: c}}"
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)

# File content → what the message must say.
CONTENTS = {
    "an empty file": (b"", "bad.yaml:1: the file is empty"),
    "only comments": (b"# nothing\n", "bad.yaml:1: no document"),
    "a binary": (b"\x7fELF\x00\x01", "bad.yaml:1: a binary file"),
    "bad UTF-8": (b"kind: \xff\xfe\n", "bad.yaml:1:"),
    "a bomb": (BOMB.encode(), "bad.yaml:"),
    "a duplicate key": (b"kind: Pod\napiVersion: v1\nkind: Node\n", "bad.yaml:3:"),
    "an unknown kind": (b"apiVersion: v1\nkind: Frobnicator\n", "bad.yaml:2: unknown kind"),
    "a misspelt kind": (
        b"apiVersion: resource.k8s.io/v1\nkind: ResourceClam\n",
        "bad.yaml:2: did you mean 'ResourceClaim'?",
    ),
    "a wrong apiVersion": (
        b"apiVersion: resource.k8s.io/v2\nkind: ResourceClaim\n",
        "bad.yaml:1: ResourceClaim is not in 'resource.k8s.io/v2'",
    ),
    "a wrong type": (
        CLAIM.replace("[{name: r", "[{name: 5").encode(),
        "bad.yaml:4: expected a string",
    ),
    "an error in the third document": (
        f"{CLAIM}---\n{CLAIM}---\nkind: [\n".encode(),
        "bad.yaml:1",
    ),
    "a tab": (b"kind: Pod\n\tapiVersion: v1\n", "bad.yaml:2:"),
    "no object": (b"just words\n", "bad.yaml:1:"),
    "deep nesting": (b"[" * 100_000, "bad.yaml:1:"),
}


@pytest.mark.parametrize("command", ["allocate", "explain claim a", "lint"])
@pytest.mark.parametrize("case", CONTENTS)
def test_wrong_content_is_told_with_file_and_line(case: str, command: str, tmp_path: Path) -> None:
    """One message with file and line, exit 1, no traceback."""
    content, message = CONTENTS[case]
    (tmp_path / "bad.yaml").write_bytes(content)
    done = dryrack(*command.split(), "-f", "bad.yaml", cwd=tmp_path)
    said = done.stdout + done.stderr
    # Lint puts its code and the object between the place and the words.
    place, _, words = message.partition(": ")

    assert place in said
    assert words in said
    assert "Traceback" not in said
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("allocate", "no input; name files"),
        ("allocate -f none.yaml", "none.yaml: no such file"),
        ("allocate -f empty", "empty: the directory has no .json, .yaml, .yml files; name other"),
        ("allocate -f a.yaml --scheduler-config .", ".: this is a directory; name a file in it"),
        ("allocate -f a.yaml --release 9", "--release '9': unknown release; use 1.36 or 1.37"),
        ("allocate -f a.yaml --feature-gates DRAFoo=true", "unrecognized feature gate: DRAFoo"),
        ("allocate -f a.yaml --feature-gates DRADeviceTaints", "use DRADeviceTaints=true"),
        ("allocate -f a.yaml -o xml", "'xml' is not one of"),
        ("explain service x -f a.yaml", 'unknown kind "service"; use claim, pod, gang'),
        ("frobnicate", "No such command"),
        ("start --nodes 3", "dryrack: no command start; run: dryrack up"),
        ("stop", "run: dryrack down"),
        ("delete default", "run: dryrack down, or for objects: kubectl delete KIND NAME"),
        ("ls", "run: dryrack status"),
        ("get pods", "run: kubectl get KIND"),
        ("nodes", "run: kubectl get nodes"),
        ("lint - -", "-: standard input can be read once; name it once"),
    ],
)
def test_a_wrong_call_is_told_and_does_nothing(words: str, message: str, tmp_path: Path) -> None:
    """Exit 2, a message that says what to write, nothing on standard output."""
    (tmp_path / "a.yaml").write_text(CLAIM)
    (tmp_path / "empty").mkdir()
    done = dryrack(*words.split(), cwd=tmp_path)

    assert message in " ".join(done.stderr.split())
    assert done.returncode == 2
    assert done.stdout == ""


def test_all_problems_of_all_files_are_told_at_once(tmp_path: Path) -> None:
    """One run prints all problems of all files."""
    (tmp_path / "a.yaml").write_text("apiVersion: v1\nkind: Frob\n---\napiVersion: v1\nkind: Nod\n")
    (tmp_path / "b.yaml").write_text(CLAIM.replace("name: r", "name: []"))
    done = dryrack("allocate", "-f", "a.yaml", "b.yaml", cwd=tmp_path)

    assert "a.yaml:2:" in done.stderr
    assert "a.yaml:5:" in done.stderr
    assert "b.yaml:4:" in done.stderr


def test_windows_line_ends_are_no_mistake(tmp_path: Path) -> None:
    """CRLF reads as LF does, and lines are counted the same."""
    (tmp_path / "a.yaml").write_bytes(CLAIM.replace("\n", "\r\n").encode())
    done = dryrack("allocate", "-f", "a.yaml", "-o", "json", cwd=tmp_path)

    assert [each["claim"] for each in json.loads(done.stdout)["unsatisfied"]] == ["default/a"]


def test_kinds_that_take_no_part_are_passed_over_with_a_word(tmp_path: Path) -> None:
    """An application in one file is not refused for its Ingress."""
    ingress = "---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web}\n"
    (tmp_path / "a.yaml").write_text(CLAIM + ingress)
    done = dryrack("allocate", "-f", "a.yaml", cwd=tmp_path)

    assert "a.yaml:6: ignored Ingress web: dryrack does not use this kind" in done.stderr


def test_a_ten_megabyte_bomb_is_refused_at_once(tmp_path: Path) -> None:
    """The size of what aliases stand for is bounded before anything is built."""
    filler = "# " + "x" * 1_000_000 + "\n"
    (tmp_path / "bomb.yaml").write_text(filler * 10 + BOMB)
    done = dryrack("lint", "bomb.yaml", cwd=tmp_path)

    assert "alias" in done.stdout
    assert done.returncode == 1


def test_standard_input_is_read(tmp_path: Path) -> None:
    """- is standard input, and is named so in messages."""
    done = dryrack("allocate", "-f", "-", cwd=tmp_path, stdin="kind: Pod\n")

    assert "<stdin>:1: Pod without apiVersion; write apiVersion: v1" in done.stderr


@pytest.mark.parametrize(
    ("redirection", "message", "code"),
    [
        ("lint - <&-", "dryrack: -: standard input is closed", 2),
        ("lint a.yaml >/dev/full", "dryrack: output: no space left on device", 1),
        ("allocate -f a.yaml -o json >/dev/full", "dryrack: output: no space left on device", 1),
        ("lint a.yaml >&-", "1 warning in 1 file", 0),
        ("lint a.yaml 2>&-", "", 0),
    ],
)
def test_streams_that_do_not_work_are_no_bug(
    redirection: str, message: str, code: int, tmp_path: Path
) -> None:
    """Closed and full streams end with one line, or with nothing, and never with a traceback."""
    (tmp_path / "a.yaml").write_text(f"{CLASS}\n---\n{CLAIM}")
    script = f"{sys.executable} -m dryrack {redirection}"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == code


def test_a_name_that_is_empty_is_a_wrong_call() -> None:
    """`-f "$FILE"` without FILE says what happened."""
    done = dryrack("lint", "")

    assert done.stderr == "dryrack: '': a file name is empty; check the variables in the command\n"
    assert done.returncode == 2


@pytest.mark.parametrize("command", ["allocate -f", "lint", "explain claim b -f"])
def test_names_give_no_orders_to_the_terminal(command: str, tmp_path: Path) -> None:
    """Escapes and line ends in names are printed as visible characters."""
    hostile = CLAIM.replace("name: a", 'name: "a\\e[31m\\nb: c\\u202e"')
    (tmp_path / "bad.yaml").write_text(hostile)
    done = dryrack(*command.split(), "bad.yaml", cwd=tmp_path)
    said = done.stdout + done.stderr

    assert "a\\x1b[31m\\nb: c\\u202e" in said
    assert not {"\x1b", "\u202e"} & set(said)
    assert not any(line.startswith("b: c") for line in said.splitlines())


def test_letters_that_the_terminal_does_not_have_are_numbers(tmp_path: Path) -> None:
    """An old locale is no reason to fail."""
    (tmp_path / "a.yaml").write_text(CLAIM.replace("name: a", "name: \u00fc"))
    script = f"PYTHONUTF8=0 PYTHONIOENCODING=ascii {sys.executable} -m dryrack lint a.yaml"
    done = subprocess.run(
        ["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert "ResourceClaim \\xfc, metadata.name" in done.stdout


@pytest.mark.parametrize("word", ["on", "no", "123", "1.10", "0o17", "1e3"])
def test_words_that_yaml_takes_for_something_else_want_quotes(word: str, tmp_path: Path) -> None:
    """`name: on` is true for Kubernetes too; the message says what to do about it."""
    (tmp_path / "a.yaml").write_text(CLAIM.replace("name: a", f"name: {word}"))
    done = dryrack("allocate", "-f", "a.yaml", cwd=tmp_path)

    assert "a.yaml:3: metadata.name: expected a string, got" in done.stderr
    assert "put it in quotes" in done.stderr
    assert done.returncode == 1


def test_custom_kinds_are_passed_over_with_a_word(tmp_path: Path) -> None:
    """A queue of Kueue next to a claim is not an error."""
    queue = "---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: q}\n"
    (tmp_path / "a.yaml").write_text(CLAIM + queue)
    done = dryrack("allocate", "-f", "a.yaml", "-o", "json", cwd=tmp_path)

    assert "a.yaml:6: ignored LocalQueue q: dryrack does not use this kind" in done.stderr
    assert [each["claim"] for each in json.loads(done.stdout)["unsatisfied"]] == ["default/a"]


@pytest.mark.parametrize("command", ["allocate", "explain claim a"])
def test_a_field_that_does_not_exist_is_told_to_those_who_reckon_with_it(
    command: str, tmp_path: Path
) -> None:
    """A selector under a misspelt key would silently select everything."""
    (tmp_path / "a.yaml").write_text(CLAIM.replace("exactly: {", "exactly: {selector: [], "))
    done = dryrack(*command.split(), "-f", "a.yaml", cwd=tmp_path)

    assert (
        "a.yaml:4: spec.devices.requests[0].exactly.selector: unknown field; dryrack ignores it"
        in (done.stderr)
    )


def test_what_a_cluster_would_refuse_is_told_briefly(tmp_path: Path) -> None:
    """Five examples, and where to read the rest; the answer is given all the same."""
    names = "".join(f"---\n{CLAIM.replace('name: a', f'name: A_{n}')}" for n in range(8))
    (tmp_path / "a.yaml").write_text(names)
    done = dryrack("allocate", "-f", "a.yaml", "-o", "json", cwd=tmp_path)

    assert done.stderr.count("the API server would reject this: metadata.name: Invalid value") == 5
    assert "and 3 more problems; to print all, run: dryrack lint" in done.stderr
    assert len(json.loads(done.stdout)["unsatisfied"]) == 8


def test_of_an_object_that_is_there_twice_the_last_counts(tmp_path: Path) -> None:
    """As if the files were applied in order; a note has the place of the first object."""
    (tmp_path / "a.yaml").write_text(CLAIM)
    (tmp_path / "b.yaml").write_text(CLAIM.replace("name: r,", "name: other,"))
    (tmp_path / "node.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: one}}")
    files = ("-f", "a.yaml", "-f", "b.yaml", "-f", "node.yaml")
    done = dryrack("allocate", *files, "-o", "json", cwd=tmp_path)
    (refused,) = json.loads(done.stdout)["unsatisfied"]

    assert "b.yaml:3: ResourceClaim 'a' is also at a.yaml:1, and this one counts" in done.stderr
    assert "request other" in refused["nodes"][0]["reasons"][0]["message"]


def test_what_a_cluster_would_refuse_fails_though_it_fits(tmp_path: Path) -> None:
    """A pipeline that trusts the exit code does not apply what would be turned down."""
    fleet = documents("nodes.yaml")
    for each in fleet:
        if each["kind"] == "ResourceSlice":
            each["metadata"]["name"] += "_"
    bad = yaml.safe_dump_all(fleet)
    (tmp_path / "bad.yaml").write_text(bad)
    training = (EXAMPLES / "training.yaml").read_text()
    (tmp_path / "training.yaml").write_text(training)
    done = dryrack("allocate", "bad.yaml", "training.yaml", "-o", "json", cwd=tmp_path)

    assert json.loads(done.stdout)["unsatisfied"] == []
    assert "the API server would reject this: metadata.name" in done.stderr
    assert done.returncode == 1


_ADMIN_WORLD = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: watch, namespace: team-a, uid: ""}
spec:
  devices:
    requests: [{name: a, exactly: {deviceClassName: gpu, adminAccess: true}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: slice}
spec:
  driver: gpu.example.com
  nodeName: rack-1
  pool: {name: rack-1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0}]
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a, labels: {resource.kubernetes.io/admin-access: "true"}}
"""


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("", "", 0),
        ('"true"', '"True"', 1),
        ("{name: team-a, labels", "{name: team-b, labels", 1),
        ('uid: ""', "uid: 1ab3", 0),
    ],
)
def test_admin_access_depends_on_the_label_of_the_namespace(
    old: str, new: str, code: int, tmp_path: Path
) -> None:
    """A namespace that is not in the files has no label; a claim of a dump was accepted."""
    text = _ADMIN_WORLD.replace(old, new)
    if "uid: 1ab3" in text:
        text = text.partition("---\napiVersion: v1\nkind: Namespace")[0]
    (tmp_path / "a.yaml").write_text(text)
    done = dryrack("allocate", "-f", "a.yaml", cwd=tmp_path)

    assert done.returncode == code, done.stderr
    assert ("admin access to devices requires" in done.stderr) == bool(code)


def test_a_workload_is_tried_as_its_pods(tmp_path: Path) -> None:
    """Each pod gets its own claim; an error in the template is printed once, with its place."""
    pods = "{spec: {resourceClaims: [{name: g, resourceClaimTemplateName: a, count: 1}]}}"
    workload = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n"
    text = f"{CLAIM}{workload}spec:\n  replicas: 2\n  template: {pods}\n"
    (tmp_path / "a.yaml").write_text(text)
    done = dryrack("allocate", "-f", "a.yaml", "-o", "json", cwd=tmp_path)

    assert "a.yaml:6: Deployment web: tried as 2 pods, web-0 and web-1" in done.stderr
    assert done.stderr.count("a.yaml:11: spec.resourceClaims[0].count: unknown field") == 1
    asked = [each["claim"] for each in json.loads(done.stdout)["unsatisfied"]]
    assert {"default/web-0-g", "default/web-1-g"} <= set(asked)


def test_a_resource_that_no_class_gives_is_no_empty_answer(tmp_path: Path) -> None:
    """The error for an extended resource names the missing class."""
    limits = "{limits: {nvidia.com/gpu: 2}}"
    containers = f"[{{name: c, image: x, resources: {limits}}}]"
    pod = f"apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{containers: {containers}}}\n"
    (tmp_path / "a.yaml").write_text(pod)
    done = dryrack("allocate", "-f", "a.yaml", cwd=tmp_path)
    told = dryrack("explain", "pod", "p", "-f", "a.yaml", cwd=tmp_path)

    for each in (done.stderr, told.stdout):
        assert "add a DeviceClass with spec.extendedResourceName: nvidia.com/gpu" in each
    assert (done.returncode, told.returncode) == (1, 1)


def test_a_node_without_a_name_is_told(tmp_path: Path) -> None:
    """It is no node that anything could be on."""
    (tmp_path / "a.yaml").write_text(
        f"{CLAIM}---\napiVersion: v1\nkind: Node\nmetadata: {{nam: x}}\n"
    )
    done = dryrack("allocate", "-f", "a.yaml", cwd=tmp_path)

    assert done.stderr == "dryrack: a.yaml:8: the Node has no name; set metadata.name\n"
    assert done.returncode == 1


def test_pods_without_claims_are_nothing_to_decide(tmp_path: Path) -> None:
    """The command says so and fails."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n"
    (tmp_path / "a.yaml").write_text(pod)
    done = dryrack("allocate", "-f", "a.yaml", cwd=tmp_path)

    assert "a.yaml: no Pod has a ResourceClaim; add a ResourceClaim, or a Pod" in done.stderr
    assert done.returncode == 1
