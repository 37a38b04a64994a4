"""
Selectors and tolerations select as Kubernetes does.

`selectors.json` was written by apimachinery, component-helpers and api v0.36.4: for each
selector and node, or label selector and labels, or toleration and taint, the answer or error.
"""

import json
from pathlib import Path
from typing import Any

from dryrack.kinds.core import Node, NodeSelector, Taint, Toleration
from dryrack.kinds.decode import decode
from dryrack.kinds.meta import LabelSelector
from dryrack.kinds.resource import DeviceTaint, DeviceToleration
from dryrack.kinds.selectors import (
    SelectorError,
    matches_labels,
    parse_node_selector,
    strict_node_selector,
    tolerates_device_taint,
    tolerates_taint,
    untolerated_taint,
)

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "selectors.json").read_text())


def test_node_selectors_answer_as_kubernetes_does() -> None:
    """Match, no match and every parse error are those of the scheduler's own code."""
    rows = [row for row in ROWS if "selector" in row]

    assert len(rows) > 200
    for row in rows:
        selector = decode(row["selector"], NodeSelector)
        node = decode(row["node"], Node)
        assert answer(lambda s=selector, n=node: parse_node_selector(s).matches(n)) == (
            row["match"],
            row.get("error"),
        )


def test_a_strict_node_selector_is_refused_for_any_bad_term() -> None:
    """Strict parsing reports the bad terms even when a good one would match."""
    rows = [row for row in ROWS if "selector" in row]

    for row in rows:
        selector = decode(row["selector"], NodeSelector)
        error = answer(lambda s=selector: bool(strict_node_selector(s)) and False)[1]
        assert error == row.get("strictError")


def test_label_selectors_answer_as_kubernetes_does() -> None:
    """matchLabels and matchExpressions together, with the same errors."""
    rows = [row for row in ROWS if "labelSelector" in row]

    assert len(rows) > 100
    for row in rows:
        selector = decode(row["labelSelector"], LabelSelector)
        labels: dict[str, str] = row["labels"]
        assert answer(lambda s=selector, v=labels: matches_labels(s, v)) == (
            row["match"],
            row.get("error"),
        )


def test_tolerations_cover_taints_as_kubernetes_does() -> None:
    """Pods' and requests' tolerations follow one rule."""
    rows = [row for row in ROWS if "toleration" in row]

    assert len(rows) > 80
    for row in rows:
        taint = row["taint"]
        toleration = row["toleration"]
        assert tolerates_taint(decode(toleration, Toleration), decode(taint, Taint)) == row["match"]
        assert row["match"] == tolerates_device_taint(
            decode(toleration, DeviceToleration), decode(taint, DeviceTaint)
        )


def answer(ask: Any) -> tuple[bool, str | None]:
    try:
        return ask(), None
    except SelectorError as error:
        return False, str(error)


def test_no_selector_selects_nothing() -> None:
    """Absence of a selector is not an empty selector."""
    assert not matches_labels(None, {"a": "b"})
    assert matches_labels(LabelSelector(), {"a": "b"})
    assert not parse_node_selector(NodeSelector()).matches(Node())


def test_the_first_untolerated_taint_is_named() -> None:
    """Only the effects asked for count, and the first uncovered taint is the answer."""
    taints = [Taint(key=k, effect=e) for k, e in [("a", "PreferNoSchedule"), ("b", "NoSchedule")]]

    assert untolerated_taint(taints, [], ["NoSchedule"]) is taints[1]
    assert untolerated_taint(taints, [Toleration(key="b")], ["NoSchedule"]) is None
