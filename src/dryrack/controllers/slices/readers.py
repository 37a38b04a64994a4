"""How each kind of source is read; whoever reads one reads it so."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from dryrack.controllers.objects import spec_of
from dryrack.hardware.dialects import Reading, read_config_map, read_dra_config, read_overlay
from dryrack.hardware.inventory import Source, SourceKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.controllers.slices.options import PublishOptions
    from dryrack.kinds.documents import Document

Raw = dict[str, Any]


def source_of(kind: SourceKind, obj: Raw) -> Source:
    return Source(kind, obj["metadata"]["name"])


def is_about_devices(kind: SourceKind, obj: Raw) -> bool:
    """Overlays are for prices, too; those without slices are none of ours."""
    return kind is not SourceKind.OVERLAY or bool(spec_of(obj).get("resourceSlices"))


def reader_of(kind: SourceKind, options: PublishOptions) -> Callable[[Raw | Document], Reading]:
    match kind:
        case SourceKind.CONFIG_MAP:
            return partial(read_config_map, key=options.key, driver=options.driver)
        case SourceKind.OVERLAY:
            return partial(read_overlay, driver=options.driver)
        case SourceKind.CONFIG:
            return partial(read_dra_config, driver=options.driver)
        case SourceKind.CATALOGUE:
            raise AssertionError("the catalogue is no object")
