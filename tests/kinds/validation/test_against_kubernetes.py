"""
The causes of the API server's own code, for random documents.

The oracle runs the registry's strategies of one release. A difference is printed as the
question that shows it, ready to be put into `cases.yaml`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from tests.golang import build
from tests.kinds.validation import gated
from tests.kinds.validation.cases import ASKED, MODULE, Case, load
from tests.kinds.validation.generator import questions
from tests.kinds.validation.judgement import Answer, difference, ours
from tests.kinds.validation.mutators import EXPRESSIONS
from tests.oracle.oracles import Oracle

from dryrack.cel.admission import SelectorChecker
from dryrack.kinds.convert import from_v1
from dryrack.kinds.releases import FeatureSet

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTIONS = 6000
GATED_QUESTIONS = 2000
OLD_QUESTIONS = 1500
OLD = "resource.k8s.io/v1beta1"
_OBJECTS = frozenset(("object", "old"))
_OLD_KINDS = frozenset(("DeviceClass", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"))
SEED = 36
SHOWN_MAX = 5


@pytest.fixture(scope="module")
def server() -> Iterator[Oracle[Answer]]:
    """The API server's own validation."""
    with Oracle(build(MODULE).path("validate"), Answer) as oracle:
        yield oracle


@pytest.mark.real
@pytest.mark.timeout(1800)
def test_every_cause_is_the_servers(server: Oracle[Answer]) -> None:
    """Reasons, fields and messages are those of Kubernetes, all of them and no others."""
    found = []
    for question, theirs in server.ask(questions(QUESTIONS, seed=SEED)):
        differs = difference(theirs, ours(question, release=ASKED))
        if differs:
            found.append(f"{yaml.safe_dump(question)}\n{differs}")

    shown = "\n---\n".join(found[:SHOWN_MAX])
    assert not found, f"{len(found)} of {QUESTIONS} differ (seed {SEED}):\n{shown}"


@pytest.mark.real
@pytest.mark.timeout(600)
def test_causes_name_the_fields_of_the_written_version(server: Oracle[Answer]) -> None:
    """Declared checks report the paths of v1beta1 for objects in v1beta1."""
    asked = [
        {**question, **{key: from_v1(question[key], OLD) for key in _OBJECTS & question.keys()}}
        for question in questions(OLD_QUESTIONS, seed=SEED)
        if question["object"]["kind"] in _OLD_KINDS and not question.get("subresource")
    ]
    found = [
        f"{yaml.safe_dump(question)}\n{differs}"
        for question, theirs in server.ask(asked)
        if (differs := difference(theirs, ours(question, release=ASKED)))
    ]

    assert not found, "\n---\n".join(found[:SHOWN_MAX])


@pytest.mark.real
@pytest.mark.timeout(1800)
def test_every_cause_about_a_gated_field_is_the_servers() -> None:
    """Fields behind feature gates, on a server on which the gates are on."""
    found = []
    gates = ",".join(f"{name}={str(value).lower()}" for name, value in gated.GATES.items())
    checker = SelectorChecker(FeatureSet(ASKED, gated.GATES))
    with Oracle(build(MODULE).path("validate"), Answer, gates) as server:
        for question, theirs in server.ask(gated.questions(GATED_QUESTIONS, seed=SEED)):
            differs = difference(theirs, ours(question, checker, ASKED, gated.GATES))
            if differs:
                found.append(f"{yaml.safe_dump(question)}\n{differs}")

    shown = "\n---\n".join(found[:SHOWN_MAX])
    assert not found, f"{len(found)} of {GATED_QUESTIONS} differ (seed {SEED}):\n{shown}"


@pytest.mark.real
def test_the_recorded_cases_are_what_the_server_says(server: Oracle[Answer]) -> None:
    """The file of named cases has not drifted from Kubernetes, nor been written by hand."""
    cases = {case.name: case for case in load()}
    asked = [{"name": name, **case.question()} for name, case in cases.items()]
    for question, theirs in server.ask(asked):
        case = cases[question["name"]]
        outcome = case.outcome(ASKED)

        assert outcome.causes == tuple(sorted(theirs.causes or ())), case.name
        assert outcome.panic == bool(theirs.panic), case.name


@pytest.mark.real
def test_expressions_are_judged_alike_by_our_compiler(server: Oracle[Answer]) -> None:
    """The verdict on expressions is the server's if `dryrack.cel` checks them."""
    selectors = "spec.devices.requests.0.exactly.selectors"
    asked = [
        Case(name=text, base="claim", set={selectors: [{"cel": {"expression": text}}]}).question()
        for text in EXPRESSIONS
    ]
    for question, theirs in server.ask(asked):
        assert not difference(theirs, ours(question, SelectorChecker(FeatureSet(ASKED)), ASKED))
