"""
Writes into every case what Kubernetes answers to it.

    python -m tests.cases.record [--keep RELEASE] [FILE…]

Answers are never written by hand: a case is an opinion about what matters, its answer is a
fact. To add one, write the file without `answer`, record it, and read what came out. If the oracle
has moved to a newer release, `--keep` with the release before it keeps the answers that change, as
the answers of that release and of those before it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cases.layout import to_yaml
from tests.cases.store import own_files, read
from tests.golang import GoBuildError
from tests.oracle.oracles import AllocatorAnswer, CelAnswer, allocator_oracle, cel_oracle

from dryrack.kinds.releases import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases.store import Json

# A share's identifier is drawn anew each time; what counts is that there is one.
ANY_SHARE = "00000000-0000-4000-8000-000000000000"


def allocator_answer(answer: AllocatorAnswer) -> Json:
    """The answer as a case keeps it."""
    assert not answer.timeout, "a case must not need more than the oracle's timeout"
    assert not answer.panic, f"a case must not make Kubernetes panic: {answer.panic}"
    if answer.error:
        return {"error": answer.error, "fatal": answer.fatal}
    if not answer.results:
        return {"fits": False}
    return {"results": [without_chance(result) for result in answer.results]}


def without_chance(result: Json) -> Json:
    """An allocation with every share's identifier replaced by one and the same."""
    devices = result.get("devices", {})
    results = [
        {**one, "shareID": ANY_SHARE} if "shareID" in one else one
        for one in devices.get("results", ())
    ]
    return {**result, "devices": {**devices, "results": results}} if results else result


def cel_answer(answer: CelAnswer) -> Json:
    """The answer as a case keeps it."""
    assert not answer.panic, f"a case must not make Kubernetes panic: {answer.panic}"
    if answer.compile_error:
        return {"compileError": answer.compile_error}
    costs = {"cost": answer.cost, "actualCost": answer.actual_cost}
    if answer.match_error:
        return {"matchError": answer.match_error, **costs}
    return {"match": answer.match, **costs}


def recorded(paths: list[Path], keep: str | None = None) -> Iterator[tuple[Path, str]]:
    """Each file with the text that it should have; `keep` is the release of changed answers."""
    questions = {path: _question(path) for path in paths}
    allocator = [questions[path] for path in paths if path.parent.name == "allocator"]
    cel = [questions[path] for path in paths if path.parent.name == "cel"]
    answers: dict[str, Json] = {}
    with allocator_oracle() as oracle:
        for case, allocation in oracle.ask(allocator):
            answers[f"allocator/{case['name']}"] = allocator_answer(allocation)
    with cel_oracle() as oracle_of_cel:
        for case, match in oracle_of_cel.ask(cel):
            answers[f"cel/{case['name']}"] = cel_answer(match)
    for path, question in questions.items():
        answer = answers[f"{path.parent.name}/{path.stem}"]
        case = read(path)
        earlier = case.get("earlier", {})
        if keep and case.get("answer", answer) != answer:
            earlier = {**earlier, keep: case["answer"]}
        written = {name: part for name, part in question.items() if name != "name"}
        yield (
            path,
            to_yaml({**written, "answer": answer, **({"earlier": earlier} if earlier else {})}),
        )


def _question(path: Path) -> Json:
    return {name: part for name, part in read(path).items() if name not in {"answer", "earlier"}}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.cases.record", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--keep", choices=[each.value for each in Release], metavar="RELEASE")
    arguments = parser.parse_args()
    named = [path.resolve() for path in arguments.files]
    paths = named or [*own_files("allocator"), *own_files("cel")]
    changed = 0
    for path, text in recorded(paths, arguments.keep):
        if path.read_text() != text:
            path.write_text(text)
            changed += 1
    sys.stderr.write(f"{len(paths)} cases asked, {changed} files changed\n")


if __name__ == "__main__":
    try:
        main()
    except GoBuildError as error:
        sys.exit(str(error))
