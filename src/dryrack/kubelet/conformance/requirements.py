"""All requirements for DRA drivers, in the order in which they are checked."""

# A module adds its requirements when it is imported.
# isort: off
from dryrack.kubelet.conformance import sockets as _sockets  # noqa: F401
from dryrack.kubelet.conformance import publishing as _publishing  # noqa: F401
from dryrack.kubelet.conformance import calls as _calls  # noqa: F401
from dryrack.kubelet.conformance import sharing as _sharing  # noqa: F401
from dryrack.kubelet.conformance import crashes as _crashes  # noqa: F401
from dryrack.kubelet.conformance import health as _health  # noqa: F401
from dryrack.kubelet.conformance import sequences as _sequences  # noqa: F401
from dryrack.kubelet.conformance.contract import REQUIREMENTS
# isort: on

__all__ = ["REQUIREMENTS"]
