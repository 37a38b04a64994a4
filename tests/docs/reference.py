"""
Writes the reference pages that follow from the code.

    python -m tests.docs.reference
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from tests.apiserver.replay import (
    DIFFERENCES_OVER_HTTPS,
    SCRIPTS,
    by_http,
    differences_of_the_server,
    known_differences,
)
from tests.docs import dashboard_api
from tests.docs.glossary import MEANINGS
from tests.linter import reference as lint

from dryrack.apiserver.builtin import BUILTINS
from dryrack.base.metrics import Registry
from dryrack.cli.main import app
from dryrack.client.client import Client
from dryrack.client.informer import Informers
from dryrack.client.metering import MeteredTransport
from dryrack.client.timekeeping import VirtualClock
from dryrack.cluster import attached, scheduling
from dryrack.cluster.ports import SystemChance
from dryrack.controllers import slices
from dryrack.controllers.slices.dra_config_status import CONDITIONS
from dryrack.controllers.slices.events import EVENTS
from dryrack.controllers.writes import EngineContext
from dryrack.scheduler import SchedulerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dryrack.apiserver.builtin import Builtin
    from dryrack.client.transport import Request, Response

ROOT = Path(__file__).parents[2]


def reasons() -> str:
    rows = [f"| `{code.text}` | {meaning} |" for code, meaning in sorted(MEANINGS.items())]
    return "\n".join(
        [
            "# Reasons",
            "",
            "Why a device is not given, or a claim gets none: the `reason` in the output of",
            "`dryrack allocate` and `dryrack explain`.",
            "Codes never change their meaning; messages may.",
            "",
            "| reason | what it means |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def commands() -> str:
    group: Any = typer.main.get_command(app)
    parts = ["# Commands", ""]
    for name in sorted(group.commands):
        parts += _command(name, group.commands[name])
    return "\n".join(parts)


def _command(name: str, command: Any) -> list[str]:
    """A command, or each command of a group."""
    inner = getattr(command, "commands", {})
    if inner:
        return [line for each in sorted(inner) for line in _command(f"{name} {each}", inner[each])]
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    words = " ".join(["dryrack", name, *(p.metavar for p in arguments)])
    lines = [f"## `{words}`", "", command.help, ""]
    lines += ["| option | meaning | default |", "|---|---|---|"] if options else []
    lines += [f"| `{', '.join(p.opts)}` | {p.help} | {_default(p.default)} |" for p in options]
    return [*lines, ""] if options else lines


def _default(value: Any) -> str:
    return f"`{value}`" if value not in (None, "", False) else ""


def coverage() -> str:
    known = differences_of_the_server()
    asked = {script.name: len(by_http(script).steps) for script in SCRIPTS}
    equal = sum(asked.values()) - sum(len(steps) for steps in known.values())
    return "\n".join(
        [
            "# Coverage",
            "",
            "What the embedded control plane serves, and where it answers otherwise than a real",
            "API server of Kubernetes 1.36.",
            "The page follows from the code and from the recordings in `tests/parity`:",
            f"of {sum(asked.values())} recorded requests, {equal} are answered alike.",
            "",
            "## Kinds",
            "",
            "Full: defaults, validation and behaviour.",
            "Simulated: stored and served; the API server, a controller, or the scheduler also",
            "acts on it, but not on every field. Volumes are bound without storage.",
            "Stored: stored and served with the behavior that all kinds share.",
            "Alpha and beta versions are served if `--runtime-config` asks for them.",
            "",
            "| kind | version | depth | subresources |",
            "|---|---|---|---|",
            *(_kind(each) for each in BUILTINS),
            "",
            "CustomResourceDefinitions add their own, and `metrics.k8s.io/v1beta1` (NodeMetrics,",
            "PodMetrics) is computed from nodes and pods.",
            "",
            "## Differences",
            "",
            *_differences(known),
            "## Differences of a whole cluster",
            "",
            "A cluster of `dryrack up` has all its controllers; where the recordings were made,",
            "some were left out or had not come to it yet.",
            "",
            *_differences(known_differences(DIFFERENCES_OVER_HTTPS)),
            "## Not there",
            "",
            "Answers in protobuf (it is read, and OpenAPI v2 is served in it); `exec`, `attach`,",
            "`port-forward`, proxies and the like, which are refused with the reason;",
            "webhooks in pods, which are not called; aggregated API servers, and kinds that are",
            "not in the table.",
            "A webhook is called once for a write, whatever its reinvocationPolicy.",
            "Nobody is warned of deprecated labels, annotations and volumes of a pod.",
            "A resize is refused if it is wrong in itself or more than the node has, and not for",
            "what the node is (its operating system, its features) or what the pod is (static).",
            "A scale of a custom kind can be applied, where a real server fails; a body that is no",
            "scale is refused with the reason.",
            "The status of a Job is stored as it is written, even if it contradicts itself.",
            "",
        ]
    )


def _kind(kind: Builtin) -> str:
    version = f"{kind.group}/{kind.version}" if kind.group else kind.version
    parts = ", ".join(part.name for part in kind.parts)
    return f"| {kind.kind} | {version} | {kind.depth.value} | {parts} |"


def _differences(known: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [line for name in sorted(known) if known[name] for line in _known(name, known[name])]


def _known(script: str, steps: Mapping[str, str]) -> list[str]:
    rows = [f"- {step}: {reason}" for step, reason in sorted(steps.items())]
    return [f"### `tests/parity/scripts/{script}.yaml`", "", *rows, ""]


def publisher() -> str:
    return "\n".join(
        [
            "# The publisher's words",
            "",
            "What `dryrack publish`, and the engine `slices` of `dryrack up`, tell of themselves.",
            "",
            "## Events",
            "",
            "A source is a ConfigMap, a NodeOverlay or a DRAConfig.",
            "Each version of a source has at most one event of a reason, whoever publishes.",
            "",
            "| reason | what it means |",
            "|---|---|",
            *(f"| `{reason}` | {EVENTS[reason]} |" for reason in sorted(EVENTS)),
            "",
            "## Conditions of a DRAConfig",
            "",
            "| condition | what it means |",
            "|---|---|",
            *(f"| `{kind}` | {CONDITIONS[kind]} |" for kind in sorted(CONDITIONS)),
            "",
            "`status.resourceSliceCount` counts the slices that it has caused, and",
            "`status.nodeCount` the nodes that have them.",
            "",
            "## Metrics",
            "",
            *_metrics(lambda around: slices.engine(around, slices.PublishOptions())),
            "",
        ]
    )


def scheduler() -> str:
    return "\n".join(
        [
            "# The scheduler's words",
            "",
            "What `dryrack schedule` tells of itself at `/metrics`, and `dryrack up` of its own",
            "scheduler.",
            "What kube-scheduler counts too has kube-scheduler's name, labels and bounds.",
            "",
            *_metrics(lambda around: scheduling.engine(around, SchedulerSettings())),
            "",
        ]
    )


def _metrics(build: Callable[[EngineContext], object]) -> list[str]:
    """All that somebody can ask an engine on a cluster for."""
    return [
        "| metric | type | labels | what it means |",
        "|---|---|---|---|",
        *(
            f"| `{each.name}` | {each.kind} | {', '.join(each.labels)} | {each.text} |"
            for each in _registry(build).families
        ),
    ]


def _registry(build: Callable[[EngineContext], object]) -> Registry:

    class Nowhere:
        async def send(self, request: Request) -> Response:
            raise AssertionError("nobody asks")

    registry = Registry()
    attached.leadership(registry)
    client = Client(MeteredTransport(Nowhere(), registry))
    clock, chance = VirtualClock(), SystemChance()
    informers = Informers(client, clock=clock, chance=chance)
    around = EngineContext(client, informers, clock, chance, metrics=registry)
    build(around)
    return registry


PAGES = {
    "docs/reference/reasons.md": reasons,
    "docs/reference/commands.md": commands,
    "docs/reference/publisher.md": publisher,
    "docs/reference/scheduler.md": scheduler,
    "docs/reference/dashboard-api.md": dashboard_api.page,
    "docs/reference/lint.md": lint.page,
    "COVERAGE.md": coverage,
}


if __name__ == "__main__":
    for page, write in PAGES.items():
        (ROOT / page).write_text(write())
