"""
Parts of all kinds: metadata, owners, conditions, label selectors.

`Model` is the base of every typed object: frozen, with the JSON names of the Kubernetes API. All
fields are optional; `validation` decides whether an object is valid. Decoding ignores fields that
are not modelled.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Model(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename="camel",
    gc=False,
):
    """
    A typed piece of a Kubernetes object.

    `UNMODELLED` names the fields of Kubernetes that the model does not have. They are valid and
    are kept, but nothing here reads them.
    """

    UNMODELLED: ClassVar[frozenset[str]] = frozenset()


class OwnerReference(Model, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model, frozen=True, kw_only=True):
    UNMODELLED: ClassVar[frozenset[str]] = frozenset({"selfLink"})

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[Any, ...] = ()


class KubernetesObject(Model, frozen=True, kw_only=True):
    """An object that can be stored on its own: it has a version, a kind and metadata."""

    # What an object made here is written as; one that was read keeps what it was read as.
    API_VERSION: ClassVar[str] = ""
    KIND: ClassVar[str] = ""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def full_name(self) -> str:
        """`namespace/name`; of what is in no namespace, `/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


def kind_of(model: type[KubernetesObject]) -> str:
    """The kind that objects of this class are written as."""
    return model.KIND or model.__name__


class Condition(Model, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    observed_generation: Int64 = 0
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class LabelSelectorRequirement(Model, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(Model, frozen=True, kw_only=True):
    match_labels: Mapping[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
