"""What few nodes have and a score has to know of all of them: images, and taints to be avoided."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dryrack.kinds.core import Node


class NodeIndex:
    """Kept as nodes come and go."""

    def __init__(self) -> None:
        # By the name of the image, then of the node: its size.
        self.images: dict[str, dict[str, int]] = {}
        # Nodes with a taint that pods would rather not be on.
        self.avoided: dict[str, None] = {}
        self._images_of: dict[str, tuple[str, ...]] = {}

    def put(self, node: Node) -> None:
        """The node is there, as it is now."""
        name = node.metadata.name
        self.drop(name)
        if any(taint.effect == "PreferNoSchedule" for taint in node.spec.taints):
            self.avoided[name] = None
        sizes = {each: image.size_bytes for image in node.status.images for each in image.names}
        if sizes:
            self._images_of[name] = tuple(sizes)
        for image, size in sizes.items():
            self.images.setdefault(image, {})[name] = size

    def drop(self, name: str) -> None:
        """The node is not there."""
        self.avoided.pop(name, None)
        for image in self._images_of.pop(name, ()):
            del self.images[image][name]
            if not self.images[image]:
                del self.images[image]
