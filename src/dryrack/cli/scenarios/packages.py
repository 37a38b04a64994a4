"""List and print the scenarios that come with dryrack, and write a first scenario."""

from __future__ import annotations

import sys
from pathlib import Path

from dryrack.base.text import hint
from dryrack.cli.files import UsageError
from dryrack.cli.output import Format, print_data, print_table, say
from dryrack.scenario import SCHEMA, load_packaged, packaged_file, packaged_names

_FIRST = """\
# yaml-language-server: $schema={schema}
apiVersion: dryrack.dev/v1alpha1
kind: Scenario
title: A pod gets one of eight GPUs
fleet:
  devices: [gpu:8]             # or by instance type: nodes with profile: p5.48xlarge
  nodes:
  - {{name: worker, count: 2}}   # worker-1 and worker-2
objects:                       # files next to this one, or objects
- apiVersion: resource.k8s.io/v1
  kind: ResourceClaimTemplate
  metadata: {{name: one-gpu}}
  spec:
    spec:
      devices:
        requests: [{{name: gpu, exactly: {{deviceClassName: gpu.example.com}}}}]
steps:
- title: The pod runs, with a device of its node
  apply:
  - apiVersion: v1
    kind: Pod
    metadata: {{name: trainer}}
    spec:
      containers: [{{name: main, image: "trainer:1", resources: {{claims: [{{name: gpu}}]}}}}]
      resourceClaims: [{{name: gpu, resourceClaimTemplateName: one-gpu}}]
  expect:
  - object: Pod/default/trainer
    fields: {{status.phase: Running, spec.nodeName: worker-*}}
    within: 30s
    lasting: 10m
  - devices: {{Pod/default/trainer: [gpu.example.com/worker-*/gpu-*]}}
  show: [devices]
- title: The pod and its claim are deleted
  delete: [Pod/default/trainer]
  expect:
  - {{gone: Pod/default/trainer, within: 1m}}
  - {{gone: ResourceClaim/default/*, within: 1m}}
"""


def print_list(output: Format) -> None:
    """Print the names and titles of all scenarios."""
    scenarios = [(name, load_packaged(name).scenario.title) for name in packaged_names()]
    if output is Format.TABLE:
        print_table(("NAME", "TITLE"), scenarios)
    else:
        documents = [{"name": name, "title": title} for name, title in scenarios]
        print_data({"scenarios": documents}, output)


def print_scenario(name: str) -> None:
    """Print the file of a scenario and the files that it uses."""
    path = packaged_file(name)
    if path is None:
        raise UsageError(f"scenario {name!r} not found; {hint(name, packaged_names())}")
    sys.stdout.write(f"# {path}\n{path.read_text()}")
    for each in sorted(set(path.parent.glob("*.yaml")) - {path}):
        sys.stdout.write(f"\n# {each}\n{each.read_text()}")


def write_first(file: str) -> None:
    """Write a first scenario; do not overwrite a file."""
    path = Path(file)
    try:
        with path.open("x") as opened:
            opened.write(_FIRST.format(schema=SCHEMA))
    except FileExistsError:
        raise UsageError(f"{file}: the file exists already; name another file") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"{file}: {why}; name a writable file") from None
    say(f"wrote {file}; to run it: dryrack scenario run {file}")
