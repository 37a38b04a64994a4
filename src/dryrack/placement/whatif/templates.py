"""
ResourceClaimTemplates that no pod in the files uses.

If only the templates of files ask for devices, each of them is tried as one claim. Each claim is
tried by itself, because it is unknown if pods use them together.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dryrack.allocation import claim_name
from dryrack.kinds.meta import ObjectMeta
from dryrack.kinds.resource import ResourceClaim
from dryrack.placement.whatif.answer_memo import Memory
from dryrack.placement.whatif.what_if import what_if

if TYPE_CHECKING:
    from collections.abc import Callable

    from dryrack.kinds.resource import ResourceClaimTemplate
    from dryrack.placement.whatif.answers import WhatIf
    from dryrack.placement.whatif.what_if import Settings
    from dryrack.placement.whatif.world import World


def what_if_files(world: World, settings: Callable[[], Settings]) -> WhatIf:
    """Place all parties of the world; or, if no party asks for devices, try its templates."""
    if asks_for_devices(world) or not world.templates:
        return what_if(world, settings())
    memory = Memory()
    outcomes = []
    for template in world.templates:
        tried = replace(world, parties=(*world.parties, claim_of_template(template)))
        outcomes.append(what_if(tried, replace(settings(), memory=memory)))
    notes = [
        f"ResourceClaimTemplate {each.full_name}: no pod uses it; tried as one claim"
        for each in world.templates
    ]
    notes += dict.fromkeys(note for each in outcomes for note in each.notes)
    return replace(
        outcomes[0],
        given=tuple(given for each in outcomes for given in each.given),
        refused=tuple(refused for each in outcomes for refused in each.refused),
        notes=tuple(notes),
    )


def asks_for_devices(world: World) -> bool:
    """Return whether a pod or a claim of the world asks for devices."""
    return any(party.asks_for_devices for party in world.in_order())


def with_template_as_claim(world: World, name: str) -> World:
    """Return the world with a claim for the template of this name, if no claim has the name."""
    taken = {
        *(claim_name(claim) for party in world.in_order() for claim in party.claims),
        *(each.claim for party in world.in_order() for each in party.missing),
    }
    template = next((each for each in world.templates if each.full_name == name), None)
    if template is None or name in taken:
        return world
    return replace(world, parties=(*world.parties, claim_of_template(template)))


def claim_of_template(template: ResourceClaimTemplate) -> ResourceClaim:
    """Return the claim that a pod would get from a template, under the template's name."""
    given = template.spec.metadata
    metadata = ObjectMeta(
        name=template.metadata.name,
        namespace=template.metadata.namespace,
        labels=given.labels,
        annotations=given.annotations,
    )
    return ResourceClaim(metadata=metadata, spec=template.spec.spec)
