"""
Expressions with the answers of Kubernetes, and the program that records them.

    python -m tests.cel.recordings [--keep RELEASE]

In the files, the answer of the newest release stands beside the question. `earlier` has the answers
of older releases if they differ, each by the last release that gave it. If the oracle has moved to
a newer release, `--keep` with the release before it keeps the answers that change.
"""

from __future__ import annotations

import argparse
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml
from tests.cases.store import of_release
from tests.cel.compare import told
from tests.oracle.oracles import cel_oracle

from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.oracle.oracles import CelAnswer, Oracle

Json: TypeAlias = "dict[str, Any]"

CHECKED = Path(__file__).with_name("check_cases.yaml")
RUN = Path(__file__).with_name("run_cases.yaml")
# The gates and the strictness of each environment of a checked expression.
ENVIRONMENTS: Mapping[str, Mapping[str, bool]] = {
    "stored": {"consumableCapacity": True},
    "new": {"newExpressions": True},
    "lists": {"consumableCapacity": True, "listTypeAttributes": True, "newExpressions": True},
}
_ANSWERS = ("type", "refused", "match", "error", "cost")
_NOT_BOOL = "must evaluate to bool or the unknown type, not "


def checked_cases() -> list[Json]:
    """Expressions with their types or refusals, each once for each release."""
    return [
        {"environment": "stored", **each}
        for case in _read(CHECKED)
        for each in _by_release({**case, "name": _checked_name(case)})
    ]


def run_cases() -> list[Json]:
    """Selectors with their verdicts and costs on a device, each once for each release."""
    return [each for case in _read(RUN)["cases"] for each in _by_release(case)]


def devices() -> Json:
    found: Json = _read(RUN)["devices"]
    return found


def _read(path: Path) -> Any:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def _checked_name(case: Json) -> str:
    return f"{case['expression']} in {case.get('environment', 'stored')}"


def _by_release(case: Json) -> Iterator[Json]:
    question, answer = _apart(case)
    for release in Release:
        yield of_release({**question, "answer": answer}, release)


def _apart(case: Json) -> tuple[Json, Json]:
    """Return the question with the earlier answers, and the newest answer."""
    question = {name: value for name, value in case.items() if name not in _ANSWERS}
    return question, {name: value for name, value in case.items() if name in _ANSWERS}


def recorded(keep: str | None = None) -> Iterator[tuple[Path, str]]:
    """Yield each file with the text that it should have; `keep` is the release of old answers."""
    with cel_oracle() as oracle:
        checked = [
            _with_answer(case, _type_or_refusal(oracle, case), keep) for case in _read(CHECKED)
        ]
        run: Json = _read(RUN)
        run["cases"] = [
            _with_answer(case, _verdict(oracle, case, run["devices"][case["device"]]), keep)
            for case in run["cases"]
        ]
    yield CHECKED, _to_text(CHECKED, checked, 1000)
    yield RUN, _to_text(RUN, run, 100)


def _with_answer(case: Json, answer: Json, keep: str | None) -> Json:
    question, before = _apart(case)
    earlier = question.pop("earlier", {})
    if _is_same(answer, before):
        answer = before
    elif keep:
        earlier = {**earlier, keep: before}
    return {**question, **answer, **({"earlier": earlier} if earlier else {})}


def _is_same(answer: Json, before: Json) -> bool:
    """Compare answers; a refusal is kept as its beginning, and an error may end in words of Go."""
    if "refused" in answer and "refused" in before:
        return str(answer["refused"]).startswith(before["refused"])
    if "error" in answer and "error" in before:
        answer, before = ({**each, "error": told(each["error"])} for each in (answer, before))
    return answer == before


def _to_text(path: Path, data: Any, width: int) -> str:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    head = "".join(takewhile(lambda line: line.startswith("#"), lines))
    return head + yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=width)


def _ask(oracle: Oracle[CelAnswer], question: Json) -> CelAnswer:
    [(_, answer)] = oracle.ask([question])
    assert not answer.panic, f"a case must not make Kubernetes panic: {answer.panic}"
    return answer


def _type_or_refusal(oracle: Oracle[CelAnswer], case: Json) -> Json:
    """
    Return the type of a result, which Kubernetes reports if it is not that of a selector.

    Of a selector, the list of its result has a type that Kubernetes reports.
    """
    environment = ENVIRONMENTS[case.get("environment", "stored")]
    expression = str(case["expression"])
    error = _ask(oracle, {**environment, "expression": expression}).compile_error
    if error.startswith(_NOT_BOOL):
        return {"type": error.removeprefix(_NOT_BOOL)}
    if error and not error.startswith("program instantiation failed: "):
        return {"refused": error.removeprefix("compilation failed: ").splitlines()[0]}
    error = _ask(oracle, {**environment, "expression": f"[{expression}\n]"}).compile_error
    assert error.startswith(f"{_NOT_BOOL}list("), error
    return {"type": error.removeprefix(f"{_NOT_BOOL}list(").removesuffix(")")}


def _verdict(oracle: Oracle[CelAnswer], case: Json, device: Json) -> Json:
    gates = {"consumableCapacity": True, "listTypeAttributes": case.get("lists", False)}
    answer = _ask(oracle, {**device, **gates, "expression": str(case["expression"])})
    assert not answer.compile_error, answer.compile_error
    cost = {"cost": answer.actual_cost} if answer.actual_cost is not None else {}
    if answer.match_error:
        return {"error": answer.match_error, **cost}
    return {"match": answer.match, **cost}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cel.recordings", description=__doc__)
    parser.add_argument("--keep", choices=[each.value for each in Release], metavar="RELEASE")
    for path, text in list(recorded(parser.parse_args().keep)):
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
