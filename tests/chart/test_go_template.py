"""The interpreter of Go templates: what the chart uses, and errors for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from dryrack.cluster.chart.functions import FUNCTIONS
from dryrack.cluster.chart.go_template import Scope, TemplateError, Templates

VALUES: dict[str, Any] = {"a": {"b": "x"}, "zero": 0, "list": [1, 2], "map": {"z": 1, "k": 2}}


def printed(text: str) -> str:
    """The output of a template with the values above."""
    block = Templates(FUNCTIONS).read("t", text)
    return block(Scope(VALUES, {"$": VALUES}))


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("a {{- /* c */ -}} b", "ab"),
        ('{{ .a.b }} {{ $.a.b }} {{ (index .a "b") }}', "x x x"),
        ("{{ if .zero }}1{{ else if .none }}2{{ else }}3{{ end }}", "3"),
        ("{{ with .a }}{{ .b }}{{ else }}none{{ end }}", "x"),
        ("{{ with .none }}{{ . }}{{ else }}{{ .zero }}{{ end }}", "0"),
        ("{{ range .list }}{{ . }},{{ end }}", "1,2,"),
        ("{{ range $k, $v := .map }}{{ $k }}={{ $v }};{{ end }}", "k=2;z=1;"),
        ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2"),
        ("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ end }}{{ $x }}", "1"),
        ('{{ define "n" }}<{{ . }}>{{ end }}{{ include "n" .zero | quote }}', '"<0>"'),
        ("{{ or .zero .a.b }} {{ and .a.b .zero }} {{ not .zero }}", "x 0 true"),
        ('{{ list 1 2 | toJson }} {{ .none | default "d" }}', "[1,2] d"),
        ('{{ printf "%s-%s" .a.b (len .list) | nindent 2 }}', "\n  x-2"),
    ],
)
def test_output(text: str, output: str) -> None:
    """The output is that of Go's text/template with Helm's functions."""
    assert printed(text) == output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ .a", "t: no }} after {{ .a"),
        ("{{ end }}", "t: {{ end }} without a beginning"),
        ("{{ unknown 1 }}", "t: no function 'unknown'"),
        ("{{ 'x' }}", "t: cannot read"),
        ("{{ .none.b }}", "nil pointer"),
        ("{{ $x }}", "variable $x is not declared"),
        ('{{ include "n" . }}', "no template 'n'"),
    ],
)
def test_errors(text: str, message: str) -> None:
    """The error names the problem; there is no traceback of another kind."""
    with pytest.raises(TemplateError) as error:
        printed(text)

    assert message in str(error.value)
