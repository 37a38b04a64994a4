"""`dryrack record`: a cluster, or a dump of one, as a scenario file."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.files import STDIN, UsageError, read_sources
from dryrack.cli.output import many, say, shown, yaml_text
from dryrack.cli.views.connecting import connection_to
from dryrack.cli.views.sources import on_cluster
from dryrack.cluster import RECORDED_KINDS, load_catalogue, read_objects
from dryrack.kinds.documents import read
from dryrack.kinds.expansion.pod_claims import dump_problem
from dryrack.scenario import anonymous, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.kinds.raw import Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where the objects come from: files, or a cluster."""

    files: tuple[str, ...] = ()
    kubeconfig: str = ""
    context: str = ""

    def objects(self) -> Sequence[Raw]:
        if not self.files:
            connection = connection_to(kubeconfig=self.kubeconfig, context=self.context)
            found, notes = on_cluster(
                connection, lambda client: read_objects(client, RECORDED_KINDS)
            )
            for note in notes:
                say(shown(note))
            return found
        if self.kubeconfig or self.context:
            raise UsageError("-f reads files, not a cluster; leave out --kubeconfig and --context")
        readings = [read(each.content, each.name) for each in read_sources(self.files)]
        problems = [str(problem) for reading in readings for problem in reading.problems]
        documents = [document for reading in readings for document in reading.documents]
        problem = "\n".join(problems) or dump_problem(documents)
        if problem:
            raise ContentError(problem)
        return [document.raw for document in documents]


def run(source: Source, output: str, *, anonymizes: bool) -> None:
    """Writes the scenario."""
    recording = record(source.objects())
    for note in recording.notes:
        say(shown(note))
    scenario = recording.scenario
    if anonymizes:
        scenario = anonymous(scenario, keeps=frozenset(load_catalogue().device_classes))
    text = yaml_text(scenario)
    if output == STDIN:
        sys.stdout.write(text)
        return
    try:
        Path(output).write_text(text)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"-o {output}: {why}; name a writable file") from None
    pods = sum(len(step.get("apply", ())) for step in scenario["steps"])
    nodes = len(scenario["fleet"]["nodes"])
    say(f"recorded {many(nodes, 'node')} and {many(pods, 'pod')}; to run them: {_next(output)}")


def _next(output: str) -> str:
    return f"dryrack scenario run {shown(output)}"
