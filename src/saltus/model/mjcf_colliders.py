"""The geoms of an MJCF model that may touch others, and which of them may not touch each other.

A geom whose contype and conaffinity are both zero touches nothing: it is no collider. Two geoms may touch if the contype of
one has a bit in common with the conaffinity of the other, and no `<exclude>` keeps their bodies apart. The coefficient of
sliding friction is kept; those of spinning and rolling are left out.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from saltus.model.builder import ModelBuilder
from saltus.model.mjcf_parts import Names, Place, is_one, look_of

BODY_BITS = 16
"""In the signature of an exclusion, the second body is in the lower ones."""


def add_colliders(builder: ModelBuilder, spec: Any, m: Any, names: Names, place: Place) -> None:
    """Geoms that cannot be had are named elsewhere, among the shapes."""
    from mujoco import mjtGeom  # type: ignore[import-untyped]

    solid = ~is_one(m.geom_type, mjtGeom.mjGEOM_PLANE) & ((m.geom_contype | m.geom_conaffinity) != 0)
    for geom in np.flatnonzero(solid).tolist():
        body, look = m.geom_bodyid[geom], look_of(spec, m, geom)
        if look is not None:
            (joint, here), (kind, size, at, path) = place[body], look
            builder.add_collider(
                joint,
                kind,
                size,
                here @ at,
                friction=float(m.geom_friction[geom, 0]),
                path=path,
                name=names.geom[geom],
                frame=names.body[body],
            )
    for signature in m.exclude_signature.tolist():
        bodies = signature >> BODY_BITS, signature & ((1 << BODY_BITS) - 1)
        builder.keep_apart(*(names.body[body] for body in bodies))
    _keep_others_apart(builder, m, names, solid)


def _keep_others_apart(builder: ModelBuilder, m: Any, names: Names, solid: Any) -> None:
    """Whole bodies where none of their geoms may touch, single geoms elsewhere."""
    masks = {(int(m.geom_contype[geom]), int(m.geom_conaffinity[geom])) for geom in np.flatnonzero(solid)}
    if all(a[0] & b[1] or b[0] & a[1] for a in masks for b in masks):
        return
    of_body: dict[int, list[int]] = {}
    for geom in np.flatnonzero(solid).tolist():
        of_body.setdefault(int(m.geom_bodyid[geom]), []).append(geom)

    def may_touch(a: int, b: int) -> bool:
        return bool(m.geom_contype[a] & m.geom_conaffinity[b] or m.geom_contype[b] & m.geom_conaffinity[a])

    for one, other in combinations(of_body, 2):
        never = [(a, b) for a in of_body[one] for b in of_body[other] if not may_touch(a, b)]
        if len(never) == len(of_body[one]) * len(of_body[other]):
            builder.keep_apart(names.body[one], names.body[other])
        else:
            for a, b in never:
                builder.keep_apart(names.geom[a], names.geom[b])
