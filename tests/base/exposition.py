"""A strict reader of Prometheus' text format 0.0.4: unknown syntax is an error."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

Labels = tuple[tuple[str, str], ...]

_HELP = re.compile(r"# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ((?:[^\\\n]|\\\\|\\n)*)")
_TYPE = re.compile(r"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)")
_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.+)\})? (\S+)")
_PAIR = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,(?!$)|$)')
_NUMBER = re.compile(r"[+-]Inf|NaN|-?\d+(\.\d+)?(e[+-]?\d+)?")
_UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


@dataclass
class Metric:
    """A family as it was read."""

    text: str
    kind: str
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)


def read(text: str) -> dict[str, Metric]:
    """All families; raises on anything that the format does not allow."""
    assert text == "" or text.endswith("\n"), "the last line must end"
    found: dict[str, Metric] = {}
    name = ""
    lines = iter(text.split("\n")[:-1])
    for line in lines:
        if line.startswith("#"):
            name = _family(found, line, next(lines))
            continue
        _sample(name, found[name], line)
    for name, metric in found.items():
        if metric.kind == "histogram":
            _check_histogram(name, metric)
    return found


def value(text: str, name: str, /, **labels: str) -> float:
    """One number."""
    family = re.sub(r"_(bucket|sum|count)$", "", name)
    metrics = read(text)
    metric = metrics.get(name) or metrics[family]
    (found,) = (
        number
        for (sample, pairs), number in metric.samples.items()
        if sample == name and dict(pairs) == labels
    )
    return found


def _family(found: dict[str, Metric], first: str, second: str) -> str:
    said = _HELP.fullmatch(first)
    typed = _TYPE.fullmatch(second)
    assert said, first
    assert typed, second
    name = said[1]
    assert typed[1] == name, "HELP and TYPE are of one metric"
    assert name not in found, f"{name} is there twice"
    found[name] = Metric(_unescaped(said[2]), typed[2])
    return name


def _sample(name: str, metric: Metric, line: str) -> None:
    match = _SAMPLE.fullmatch(line)
    assert match, line
    suffixes = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
    assert match[1] in [name + each for each in suffixes], f"{line} is not of {name}"
    assert _NUMBER.fullmatch(match[3]), f"{line}: no number"
    key = (match[1], _pairs(match[2] or ""))
    assert key not in metric.samples, f"{line}: there twice"
    metric.samples[key] = float(match[3])
    assert metric.kind == "gauge" or not float(match[3]) < 0 or match[1].endswith("_sum")


def _pairs(text: str) -> Labels:
    pairs: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _PAIR.match(text, position)
        assert match, text
        pairs.append((match[1], _unescaped(match[2])))
        position = match.end()
    assert len({name for name, _ in pairs}) == len(pairs), "a label is there twice"
    return tuple(pairs)


def _unescaped(text: str) -> str:
    return re.sub(r'\\[\\"n]', lambda match: _UNESCAPED[match[0]], text)


def _check_histogram(name: str, metric: Metric) -> None:
    """Buckets increase and the last one, infinity, contains all values."""
    buckets: dict[Labels, list[tuple[float, float]]] = {}
    for (sample, pairs), number in metric.samples.items():
        if sample == f"{name}_bucket":
            (bound,) = (text for label, text in pairs if label == "le")
            rest = tuple(pair for pair in pairs if pair[0] != "le")
            buckets.setdefault(rest, []).append((float(bound), number))
    for labels, found in buckets.items():
        assert found == sorted(found), "bounds and counts rise"
        assert found[-1][0] == math.inf
        assert [count for _, count in found] == sorted(count for _, count in found)
        assert metric.samples[f"{name}_count", labels] == found[-1][1]
        assert (f"{name}_sum", labels) in metric.samples
