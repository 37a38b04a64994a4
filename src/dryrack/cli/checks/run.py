"""`dryrack check`: check the invariants of a cluster or of files, and print what violates them."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryrack.base.durations import seconds_in
from dryrack.base.errors import DryrackError
from dryrack.base.escaping import visible, visible_lines, xml_lines
from dryrack.cli.checks.options import CheckFormat
from dryrack.cli.files import UsageError
from dryrack.cli.objects import load_documents
from dryrack.cli.output import Format, many, print_data, print_table, say
from dryrack.cli.views.sources import Source, on_cluster
from dryrack.cluster import MODELS, SystemClock
from dryrack.kubeletplugin import read_checkpoints
from dryrack.scenario import (
    ClusterState,
    InvariantResult,
    PreparedClaims,
    check_state,
    find_lasting,
    read_state,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.cli.checks.options import CheckOptions
    from dryrack.client.client import Client
    from dryrack.client.endpoints import Endpoint
    from dryrack.kinds.raw import Raw


def run(options: CheckOptions) -> bool:
    """Check a cluster or files; return whether no invariant is violated."""
    source = Source(
        kubeconfig=options.kubeconfig,
        context=options.context,
        cluster=options.cluster,
        files=options.files,
        all_namespaces=True,
    )
    seconds = seconds_in(options.wait)
    if seconds is None or seconds < 0:
        raise UsageError(f"--wait {options.wait!r}: must be a duration, for example 15s or 1m")
    if options.node and not options.kubelet_dir:
        raise UsageError("--node: names the node of --kubelet-dir; add --kubelet-dir DIR")
    prepared = _prepared_in(options) if options.kubelet_dir else ()
    if options.files:
        results = check_state(_state_of_files(options.files, prepared))
    else:
        clock = SystemClock()

        async def look(client: Client) -> Sequence[InvariantResult]:
            return await find_lasting(
                lambda: read_state(client, clock, prepared), clock, float(seconds)
            )

        results = tuple(on_cluster(source.connection(), look))
    _print(results, options.output)
    if not any(each.is_checked for each in results):
        raise DryrackError(f"no invariant could be checked: {results[0].unchecked}")
    return not any(each.violations for each in results)


def _prepared_in(options: CheckOptions) -> tuple[PreparedClaims, ...]:
    """Return the claims in the checkpoints of the plugins below a kubelet's directory."""
    plugins = Path(options.kubelet_dir) / "plugins"
    if not plugins.is_dir():
        raise UsageError(f"--kubelet-dir {options.kubelet_dir!r}: has no directory plugins")
    node = options.node or os.environ.get("NODE_NAME", "") or socket.gethostname().lower()
    try:
        return tuple(
            PreparedClaims(
                each.parent.name, frozenset(it.uid for it in read_checkpoints(each)), node
            )
            for each in sorted(plugins.glob("*/checkpoints"))
        )
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise UsageError(f"--kubelet-dir: {error.filename}: {why}; run as root") from None


def _state_of_files(names: Sequence[str], prepared: tuple[PreparedClaims, ...]) -> ClusterState:
    """Return the objects of files; a kind without an object counts as not read."""
    endpoints = {model: endpoint for endpoint, model in reversed(tuple(MODELS.items()))}
    objects: dict[Endpoint, list[Raw]] = defaultdict(list)
    for document, found in load_documents(names):
        endpoint = None if found is None else endpoints.get(type(found.object))
        if found is not None and endpoint is not None:
            objects[endpoint].append(_with_identity(found.raw, document.identity))
    present = {endpoint.resource for endpoint in objects}
    missing = {each.resource for each in MODELS if each.kind in _EXPECTED} - present
    return ClusterState(
        objects=objects,
        now=time.time(),
        unread=frozenset(missing),
        unread_reason="the files contain no",
        prepared=prepared,
    )


# A cluster without an object of the other kinds is usual.
_EXPECTED = ("Pod", "Node", "ResourceClaim", "ResourceSlice")


def _with_identity(raw: Raw, identity: tuple[str, ...] | None) -> Raw:
    """Return the object with a namespace and a UID, which files that people write lack."""
    _, kind, namespace, name = identity or ("", "", "", "")
    metadata = {"uid": f"{kind}/{namespace}/{name}", **raw["metadata"]}
    if namespace:
        metadata.setdefault("namespace", namespace)
    return raw | {"metadata": metadata}


def _print(results: Sequence[InvariantResult], output: CheckFormat) -> None:
    if output is CheckFormat.JUNIT:
        sys.stdout.write(junit_xml(results))
    elif output is not CheckFormat.TABLE:
        print_data({"checks": [_document(each) for each in results]}, Format(output.value))
    else:
        rows = [row for each in results for row in _rows(each)]
        print_table(("CHECK", "STATE", "MESSAGE", "FIX"), rows)
    violations = sum(len(each.violations) for each in results)
    unchecked = sum(not each.is_checked for each in results)
    counts = [many(violations, "violation")]
    counts += [f"{unchecked} not checked"] if unchecked else []
    say(f"{many(len(results), 'check')}: {', '.join(counts)}")


def _rows(result: InvariantResult) -> Sequence[tuple[str, ...]]:
    name = result.invariant.slug
    rows = [
        (name, result.state, f"{each.subject}: {each.message}", each.fix or "-")
        for each in result.violations
    ]
    if result.unchecked:
        rows.append((name, "not checked", result.unchecked, "-"))
    return rows or [(name, result.state, str(result.invariant), "-")]


def _document(result: InvariantResult) -> dict[str, Any]:
    return {
        "check": result.invariant.slug,
        "invariant": str(result.invariant),
        "state": result.state,
        "violations": [
            {"object": each.subject, "message": each.message, "fix": each.fix}
            for each in result.violations
        ],
        **({"notChecked": result.unchecked} if result.unchecked else {}),
    }


def junit_xml(results: Sequence[InvariantResult]) -> str:
    """Return JUnit XML with a case for each invariant."""
    from xml.etree import ElementTree

    counts = {
        "name": "dryrack check",
        "tests": str(len(results)),
        "failures": str(sum(bool(each.violations) for each in results)),
        "skipped": str(sum(each.state == "not checked" for each in results)),
        "errors": "0",
    }
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", counts)
    for result in results:
        names = {"classname": "dryrack check", "name": str(result.invariant)}
        case = ElementTree.SubElement(suite, "testcase", names)
        if result.violations:
            lines = [f"{it.subject}: {it.message}; {it.fix}" for it in result.violations]
            failure = ElementTree.SubElement(case, "failure", message=visible(lines[0]))
            failure.text = visible_lines("\n".join(lines))
        elif not result.is_checked:
            ElementTree.SubElement(case, "skipped", message=visible(result.unchecked))
        if result.unchecked and result.is_checked:
            output = ElementTree.SubElement(case, "system-out")
            output.text = visible_lines(f"not checked: {result.unchecked}")
    ElementTree.indent(suites)
    return xml_lines(ElementTree.tostring(suites, encoding="unicode", xml_declaration=True)) + "\n"
