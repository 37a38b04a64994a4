"""`dryrack record`: write a cluster, or a dump of one, as a scenario file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dryrack.base.errors import ContentError
from dryrack.cli.files import STDIN, UsageError, read_sources
from dryrack.cli.output import many, say, shown, yaml_text
from dryrack.cli.views.sources import FILES_AND_CLUSTER, Source, on_cluster
from dryrack.cluster import RECORDED_KINDS, load_catalogue, read_objects
from dryrack.kinds.documents import read
from dryrack.kinds.expansion.pod_claims import dump_problem
from dryrack.scenario import anonymous, record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.cli.options import RecordOptions
    from dryrack.kinds.raw import Raw


def run(options: RecordOptions) -> None:
    """Write the scenario to a file or to standard output."""
    recording = record(_objects(options))
    for note in recording.notes:
        say(shown(note))
    scenario = recording.scenario
    if options.anonymize:
        scenario = anonymous(scenario, keeps=frozenset(load_catalogue().device_classes))
    text = yaml_text(scenario)
    output = options.output
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
    say(
        f"recorded {many(nodes, 'node')} and {many(pods, 'pod')}; "
        f"to run them: dryrack scenario run {shown(output)}"
    )


def _objects(options: RecordOptions) -> Sequence[Raw]:
    """Return the objects of the files, or of the cluster."""
    if not options.files:
        connection = Source(
            kubeconfig=options.kubeconfig, context=options.context, cluster=options.cluster
        ).connection()
        objects, notes = on_cluster(connection, lambda client: read_objects(client, RECORDED_KINDS))
        for note in notes:
            say(shown(note))
        return objects
    if options.kubeconfig or options.context or options.cluster:
        raise UsageError(FILES_AND_CLUSTER)
    readings = [read(each.content, each.name) for each in read_sources(options.files)]
    problems = [str(problem) for reading in readings for problem in reading.problems]
    documents = [document for reading in readings for document in reading.documents]
    problem = "\n".join(problems) or dump_problem(documents)
    if problem:
        raise ContentError(problem)
    return [document.raw for document in documents]
