"""`dryrack scenario diff`: compare two runs of a scenario, pod by pod."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dryrack.base.errors import ContentError
from dryrack.cli.files import UsageError, read_source
from dryrack.cli.output import Format, many, print_data, print_table, say, shown
from dryrack.cli.scenarios.changes import Changes
from dryrack.cli.scenarios.running import load, quiet
from dryrack.scenario import EmbeddedRun, PodPlacement, compare, run_in_virtual_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dryrack.cli.scenarios.commands import DiffOptions
    from dryrack.scenario import Comparison

COLUMNS = ("POD", "CHANGE", "A", "B")
_NOWHERE = "-"
# Maximum number of messages for pods that no longer fit.
_TOLD_MAX = 5


def run(options: DiffOptions) -> bool:
    """Print the differences; return whether there are none."""
    changes = Changes(options.replace, options.fleet, options.scheduler_config, options.release)
    if not options.after and not changes:
        raise UsageError("diff: B is missing; name B, or a change, for example --replace FILE")
    before = _placements(options.before, Changes(), options.seed)
    after = _placements(options.after or options.before, changes, options.seed)
    comparison = compare(before, after)
    if options.output is Format.TABLE:
        _print(comparison)
    else:
        print_data(comparison.document(), options.output)
    return not comparison.differences


def _placements(name: str, changes: Changes, seed: int) -> Sequence[PodPlacement]:
    document = _outcomes(name)
    if document is not None:
        if changes:
            problem = "options cannot change the output of a finished run"
            raise UsageError(f"{name}: {problem}; name the scenario instead")
        return _of_document(name, document)
    loaded = changes.apply(load(name))
    with quiet():
        how = EmbeddedRun(
            seed=seed,
            scheduling=changes.scheduler_settings(),
            release=changes.followed_release,
        )
        outcome = run_in_virtual_time(loaded, how)
    if outcome.fidelity is not None:
        say(shown(f"{outcome.name}: {outcome.fidelity.summary}"))
    for failure in outcome.failures:
        say(shown(f"{outcome.name}: {failure}"))
    return outcome.placements


def _outcomes(name: str) -> Mapping[str, Any] | None:
    """Return the output of `scenario run -o json`; None for a scenario."""
    if not Path(name).is_file():
        return None
    import yaml

    source = read_source(name)
    if b"scenarios" not in source.content:
        return None
    try:
        document = yaml.safe_load(source.content)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) and "scenarios" in document else None


def _of_document(name: str, document: Mapping[str, Any]) -> list[PodPlacement]:
    try:
        (outcome,) = document["scenarios"]
        return [PodPlacement.of_document(each) for each in outcome["pods"]]
    except (KeyError, TypeError, ValueError):
        raise ContentError(
            f"{name}: not the output of one scenario; create it with: dryrack scenario run -o json"
        ) from None


def _print(comparison: Comparison) -> None:
    rows = [
        (each.pod, ", ".join(each.what), _where(each.before), _where(each.after))
        for each in comparison.differences
    ]
    if rows:
        print_table(COLUMNS, rows)
    messages = [
        f"{each.pod}: {each.after.message}"
        for each in comparison.differences
        if each.after and each.after.message
    ]
    for message in messages[:_TOLD_MAX]:
        say(shown(message))
    if len(messages) > _TOLD_MAX:
        more = many(len(messages) - _TOLD_MAX, "more message")
        say(f"and {more}; to print all, use -o json")
    counts = ", ".join(f"{count} {what}" for what, count in comparison.counts.items())
    say(f"{counts or 'no difference'} in {many(comparison.pods, 'pod')}")


def _where(placement: PodPlacement | None) -> str:
    if placement is None or not placement.node:
        return _NOWHERE
    parts = [f"after {placement.waited:g} s"]
    if placement.devices:
        parts.append(many(len(placement.devices), "device"))
    return f"{placement.node} ({', '.join(parts)})"
