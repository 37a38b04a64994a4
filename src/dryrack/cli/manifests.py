"""`dryrack manifests`: print the objects of the Helm chart, without Helm."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dryrack.base.text import hint
from dryrack.cli.files import UsageError, read_sources
from dryrack.cli.output import DataFormat, print_data

if TYPE_CHECKING:
    from dryrack.cli.options import ManifestsOptions


def run(options: ManifestsOptions) -> None:
    """Print the objects; raise `UsageError` if the chart refuses the values."""
    import yaml

    from dryrack.cluster.chart import PARTS, ChartError, Release, ValuesError, render
    from dryrack.kinds.validation.names import label

    if options.part and options.part not in PARTS:
        raise UsageError(f"no part {options.part!r}; {hint(options.part, PARTS)}")
    for option, name in (("--namespace", options.namespace), ("--release", options.release)):
        for complaint in label(name):
            raise UsageError(f"{option} {name!r}: {complaint}")
    try:
        text = render(Release(options.release, options.namespace), values_of(options), options.part)
    except (ChartError, ValuesError) as error:
        raise UsageError(str(error)) from None
    if not text:
        part = options.part
        raise UsageError(f"the values disable {part}; to enable it, add --set {part}.enabled=true")
    if options.output is DataFormat.YAML:
        sys.stdout.write(text)
    else:
        items = [each for each in yaml.safe_load_all(text) if each]
        print_data({"apiVersion": "v1", "kind": "List", "items": items}, options.output)


def values_of(options: ManifestsOptions) -> dict[str, Any]:
    """Return the values of the files and of --set; later ones take precedence."""
    import yaml

    from dryrack.cluster.chart import merge_values, set_value

    values: dict[str, Any] = {}
    for source in read_sources(options.values) if options.values else ():
        try:
            document = yaml.safe_load(source.content)
        except yaml.YAMLError as error:
            problem = str(error).splitlines()[0]
            raise UsageError(f"{source.name}: the file is not valid YAML: {problem}") from None
        if not isinstance(document or {}, dict):
            raise UsageError(f"{source.name}: the file must contain a YAML object with values")
        values = merge_values(values, document or {}, keeps_null=True)
    for assignment in options.set:
        values = merge_values(values, set_value(assignment), keeps_null=True)
    return values
