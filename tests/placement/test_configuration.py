"""A KubeSchedulerConfiguration means what it means to kube-scheduler, or is refused by line."""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

import pytest

from dryrack.placement import (
    IN_TREE,
    Configuration,
    Plugin,
    Profile,
    profile_named,
    profile_of,
    read_configuration,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dryrack.placement.configuration.reading import ConfigurationReading

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NONE = "disabled: [{name: '*'}]"


def nothing(_: object, __: object, ___: object) -> None:
    """A plugin that never has anything to say."""


def plugins(**functions: str) -> dict[str, Plugin]:
    """By name, each with the functions that it is said to have."""
    return {
        name: Plugin(
            name,
            filter=nothing if "filter" in points else None,
            score=nothing if "score" in points else None,
        )
        for name, points in functions.items()
    }


PLUGINS = plugins(
    NodeName="filter",
    NodeResourcesFit="filter score",
    NodeAffinity="filter score",
    TaintToleration="filter score",
    Backfill="score",
    WorkloadAware="score",
    DeviceGroups="score",
)


def reading(text: str) -> ConfigurationReading:
    return read_configuration(HEAD + text, "scheduler.yaml", PLUGINS)


def read(text: str) -> Configuration:
    found = reading(text)
    assert found.problems == ()
    assert found.configuration is not None
    return found.configuration


def problems(text: str) -> Sequence[str]:
    found = reading(text)
    assert found.configuration is None
    return [str(each) for each in found.problems]


def profile(text: str) -> str:
    return f"profiles:\n- schedulerName: gangs\n{indent(text, '  ')}"


def test_a_profile_says_which_plugins_are_asked_and_how() -> None:
    """By extension point, with weights and arguments."""
    (found,) = read(
        profile(
            "plugins:\n"
            "  score:\n"
            "    enabled: [{name: NodeAffinity, weight: 5}]\n"
            "    disabled: [{name: '*'}]\n"
            "pluginConfig:\n"
            "- name: NodeResourcesFit\n"
            "  args: {scoringStrategy: {type: MostAllocated}}\n"
        )
    ).profiles

    assert found.scheduler_name == "gangs"
    assert [(each.name, each.weight) for each in found.plugins["score"].enabled] == [
        ("NodeAffinity", 5)
    ]
    assert [each.name for each in found.plugins["score"].disabled] == ["*"]
    assert set(found.plugins) == {"score"}
    assert found.args == {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}}


def test_a_file_that_says_nothing_is_one_profile_without_a_name() -> None:
    """Whoever reads it knows what pods call the scheduler."""
    found = read("")

    assert [each.scheduler_name for each in found.profiles] == [""]
    assert found.backoff_seconds == (1.0, 10.0)


def test_the_names_that_plugins_have_elsewhere_are_understood() -> None:
    """A file of the original needs no change."""
    (found,) = read(profile("plugins: {score: {enabled: [{name: BackfillScoring}]}}\n")).profiles

    assert [each.name for each in found.plugins["score"].enabled] == ["Backfill"]


def test_what_kube_scheduler_has_a_use_for_is_noted_and_accepted() -> None:
    """The note has the line, and why the field has no effect."""
    found = reading(
        "parallelism: 16\n"
        "clientConnection: {qps: 50.5, burst: 100}\n"
        + profile("plugins: {filter: {enabled: [{name: NodeVolumeLimits}]}}\n")
    )

    assert found.problems == ()
    assert [str(each) for each in found.notes] == [
        "scheduler.yaml:3: parallelism: has no effect: dryrack uses one thread",
        (
            "scheduler.yaml:4: clientConnection: has no effect: "
            "use --kubeconfig; dryrack does not limit its requests"
        ),
        (
            "scheduler.yaml:7: profiles[0].plugins.filter.enabled[0].name: "
            "NodeVolumeLimits has no effect in dryrack"
        ),
    ]


def test_arguments_that_are_null_are_not_given() -> None:
    """As in every document of Kubernetes."""
    (found,) = read(
        profile("pluginConfig:\n- name: NodeResourcesFit\n  args: {ignoredResources: null}\n")
    ).profiles

    assert found.args == {"NodeResourcesFit": {}}


def test_arguments_without_effect_are_noted() -> None:
    """Files for other coscheduling plugins are taken."""
    text = "pluginConfig:\n- name: Coscheduling\n  args: {permitWaitingTimeSeconds: 10}\n"

    assert [str(each) for each in reading(profile(text)).notes] == [
        (
            "scheduler.yaml:7: profiles[0].pluginConfig[0].args.permitWaitingTimeSeconds: "
            "has no effect: a pending gang reserves nothing"
        )
    ]


def test_leader_election_and_backoff_are_read() -> None:
    """As kube-scheduler has them."""
    found = read(
        "leaderElection: {leaderElect: false, resourceName: mine}\n"
        "podInitialBackoffSeconds: 2\npodMaxBackoffSeconds: 20\n"
    )

    assert found.leader_election.leader_elect is False
    assert found.leader_election.resource_name == "mine"
    assert found.backoff_seconds == (2.0, 20.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            profile("plugins: {score: {enabled: [{name: NodeRessourcesFit}]}}\n"),
            (
                "scheduler.yaml:5: profiles[0].plugins.score.enabled[0].name: "
                "unknown plugin 'NodeRessourcesFit'; did you mean 'NodeResourcesFit'?"
            ),
        ),
        (
            profile("plugin: {}\n"),
            "scheduler.yaml:5: profiles[0].plugin: unknown field; did you mean 'plugins'?",
        ),
        (
            profile("plugins: {score: {enabled: [{name: NodeAffinity, weight: heavy}]}}\n"),
            (
                "scheduler.yaml:5: profiles[0].plugins.score.enabled[0].weight: "
                'expected a 32-bit integer, got the string "heavy"; '
                "write a 32-bit integer, without quotes"
            ),
        ),
        (
            profile("plugins: {score: {enabled: [{name: NodeAffinity, weight: -1}]}}\n"),
            "scheduler.yaml:5: profiles[0].plugins.score.enabled[0].weight: -1 is less than 0",
        ),
        (
            profile("plugins: {score: {enabled: [{name: Backfill}, {name: Backfill}]}}\n"),
            (
                "scheduler.yaml:5: profiles[0].plugins.score.enabled[1].name: "
                "'Backfill' is enabled twice"
            ),
        ),
        (
            "profiles:\n- schedulerName: one\n- schedulerName: one\n",
            "scheduler.yaml:5: profiles[1].schedulerName: 'one' is also the name of profiles[0]",
        ),
        (
            "profiles:\n- schedulerName: one\n- plugins: {}\n",
            "scheduler.yaml:5: profiles[1].schedulerName: the name is missing; name each of",
        ),
        (
            profile("pluginConfig:\n- name: NodeResourcesFit\n  args: {ignoredResource: []}\n"),
            (
                "scheduler.yaml:7: profiles[0].pluginConfig[0].args.ignoredResource: "
                "unknown field; did you mean 'ignoredResources'?"
            ),
        ),
        (
            profile(
                "pluginConfig:\n- name: NodeResourcesFit\n  args: {scoringStrategy: {type: Most}}\n"
            ),
            (
                "scheduler.yaml:7: profiles[0].pluginConfig[0].args.scoringStrategy.type: "
                "'Most' is invalid: it must be one of LeastAllocated, MostAllocated, Requested"
            ),
        ),
        (
            profile("pluginConfig:\n- name: NodeAffinity\n  args: {kind: NodeResourcesFitArgs}\n"),
            (
                "scheduler.yaml:7: profiles[0].pluginConfig[0].args.kind: "
                "'NodeResourcesFitArgs' is not the kind of the arguments of NodeAffinity; "
                "use NodeAffinityArgs"
            ),
        ),
        (
            profile("plugins: {filter: {enabled: [{name: Backfill}]}}\n"),
            (
                "scheduler.yaml:5: profiles[0].plugins.filter.enabled[0].name: "
                "Backfill does not filter nodes; remove it here"
            ),
        ),
        (
            profile("pluginConfig:\n- name: ResourceReservation\n  args: {ttl: 5}\n"),
            (
                "scheduler.yaml:7: profiles[0].pluginConfig[0].args.ttl: unknown field; "
                "use one of: apiVersion, kind, ttlSeconds"
            ),
        ),
        (
            profile("pluginConfig:\n- name: WorkloadAware\n  args: {pack: true}\n"),
            "scheduler.yaml:7: profiles[0].pluginConfig[0].args.pack: unknown field; use one of:",
        ),
        (
            profile("plugins: {score: {enabled: [{name: DeviceGroups}]}}\n"),
            "scheduler.yaml:4: profiles[0].pluginConfig: DeviceGroups needs an attribute; add",
        ),
        (
            "extenders: [{urlPrefix: http://localhost}]\n",
            "scheduler.yaml:3: extenders: extenders are not supported; write a plugin",
        ),
        (
            "leaderElection: {leaseDuration: soon}\n",
            (
                "scheduler.yaml:3: leaderElection.leaseDuration: 'soon' is not a duration; "
                "use, for example, 15s or 1m30s"
            ),
        ),
        (
            "leaderElection: {leaseDuration: 5s}\n",
            (
                "scheduler.yaml:3: leaderElection: leaseDuration 5s, renewDeadline 10s, "
                "retryPeriod 2s; make each longer than the next"
            ),
        ),
        (
            "podInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 2\n",
            (
                "scheduler.yaml:4: podMaxBackoffSeconds: "
                "2 is less than podInitialBackoffSeconds, which is 5"
            ),
        ),
        (
            "---\napiVersion: v1\nkind: Pod\n",
            "scheduler.yaml:4: the file has a second document; keep",
        ),
    ],
)
def test_a_mistake_is_told_with_line_field_and_fix(text: str, expected: str) -> None:
    """Nothing of such a file is used."""
    assert problems(text)[0].startswith(expected)


def test_another_version_is_told_what_to_write() -> None:
    """Files of old releases differ in more than their first line."""
    text = HEAD.replace("/v1", "/v1beta3")
    found = read_configuration(text, "scheduler.yaml", PLUGINS)

    assert [str(each) for each in found.problems] == [
        (
            "scheduler.yaml:1: apiVersion: 'kubescheduler.config.k8s.io/v1beta3' is not "
            "supported; use kubescheduler.config.k8s.io/v1"
        )
    ]


def test_all_mistakes_are_told_at_once() -> None:
    """Whoever mends a file mends it once."""
    found = problems(
        "profile: []\n" + profile("plugins: {score: {disabled: [{name: NodeAfinity}]}}\n")
    )

    assert len(found) == 2


def resolved(text: str) -> Profile:
    (found,) = read(profile(text)).profiles
    return profile_of(found, found.scheduler_name, PLUGINS)


def names_of(profile: Profile) -> tuple[list[str], dict[str, int]]:
    return [each.name for each in profile.filters], {it.name: n for it, n in profile.scores}


def test_a_profile_that_says_nothing_is_that_of_kube_scheduler() -> None:
    """Its plugins in its order with its weights, as far as they are there."""
    found = resolved("")

    assert found.scheduler_name == "gangs"
    assert names_of(found) == (
        ["NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit"],
        {"TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1},
    )
    assert "DefaultPreemption" in found.scheduler_plugins


@pytest.mark.parametrize(
    ("text", "filters", "scores"),
    [
        (
            f"plugins: {{score: {{{NONE}, enabled: [{{name: Backfill, weight: 7}}]}}}}\n",
            ["NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit"],
            {"Backfill": 7},
        ),
        (
            "plugins: {multiPoint: {disabled: [{name: NodeAffinity}]}}\n",
            ["NodeName", "TaintToleration", "NodeResourcesFit"],
            {"TaintToleration": 3, "NodeResourcesFit": 1},
        ),
        (
            "plugins: {multiPoint: {enabled: [{name: NodeAffinity, weight: 9}]}}\n",
            ["NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit"],
            {"TaintToleration": 3, "NodeAffinity": 9, "NodeResourcesFit": 1},
        ),
        (
            f"plugins: {{multiPoint: {{{NONE}, enabled: [{{name: NodeResourcesFit}}]}}}}\n",
            ["NodeResourcesFit"],
            {"NodeResourcesFit": 1},
        ),
        (
            "plugins: {filter: {disabled: [{name: NodeName}]}}\n",
            ["TaintToleration", "NodeAffinity", "NodeResourcesFit"],
            {"TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1},
        ),
        (
            (
                "plugins:\n  score:\n    enabled:\n"
                "    - {name: Backfill}\n    - {name: NodeResourcesFit, weight: 4}\n"
            ),
            ["NodeName", "TaintToleration", "NodeAffinity", "NodeResourcesFit"],
            {"NodeResourcesFit": 4, "TaintToleration": 3, "NodeAffinity": 2, "Backfill": 1},
        ),
    ],
    ids=["only-one-score", "one-off", "weight", "all-off", "one-filter-off", "added-and-weighed"],
)
def test_profiles_are_resolved_as_kube_scheduler_resolves_them(
    text: str, filters: Sequence[str], scores: dict[str, int]
) -> None:
    """`multiPoint` is merged with the defaults; a point overrides, adds and switches off."""
    found_filters, found_scores = names_of(resolved(text))

    assert found_filters == filters
    assert list(found_scores.items()) == list(scores.items())


@pytest.mark.parametrize(
    ("text", "is_on"),
    [
        ("", True),
        ("plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}\n", False),
        ("plugins: {postFilter: {disabled: [{name: '*'}]}}\n", False),
        ("plugins: {multiPoint: {disabled: [{name: DefaultPreemption}]}}\n", False),
        ("plugins: {queueSort: {disabled: [{name: '*'}]}}\n", True),
    ],
)
def test_what_the_scheduler_does_itself_can_be_switched_off(text: str, is_on: bool) -> None:
    """At the point where upstream has it, or everywhere."""
    assert ("DefaultPreemption" in resolved(text).scheduler_plugins) is is_on


def test_a_gang_plugin_is_on_wherever_it_is_enabled() -> None:
    """The original's own file enables it at four points, none of them all."""
    on = "preFilter: {enabled: [{name: Coscheduling}]}"
    text = f"plugins: {{permit: {{{NONE}}}, {on}}}\n"

    assert "Coscheduling" in resolved(text).scheduler_plugins


def test_the_configuration_of_the_original_is_understood() -> None:
    """One plugin at four points, and no other order of the queue than its own."""
    point = "{enabled: [{name: Coscheduling}]}"
    (found,) = read(
        "leaderElection: {leaderElect: false}\n"
        "profiles:\n- schedulerName: kubenexus-scheduler\n  plugins:\n"
        f"    queueSort: {{enabled: [{{name: Coscheduling}}], {NONE}}}\n"
        f"    preFilter: {point}\n    permit: {point}\n    reserve: {point}\n"
    ).profiles

    assert "Coscheduling" in profile_of(found, found.scheduler_name, IN_TREE).scheduler_plugins


@pytest.mark.parametrize("name", ["dryrack", "kubenexus-scheduler"])
def test_a_file_that_says_nothing_changes_nothing(name: str) -> None:
    """The default profile of a scheduler is the base of its configuration."""
    (config,) = read("").profiles
    found = profile_of(config, name, IN_TREE)
    usual = profile_named(name)

    assert found.filters == usual.filters
    assert dict(found.scores) == dict(usual.scores)
    assert found.scheduler_plugins == usual.scheduler_plugins
