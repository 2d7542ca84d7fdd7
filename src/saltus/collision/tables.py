"""What kernels see of a scene: shapes, half-spaces, the pieces of the terrain in a tree of boxes, and pairs of shapes."""

from __future__ import annotations

from saltus.kernel import Layout, Part
from saltus.spatial.algebra import SE3, Vec3

SPHERE, CAPSULE, BOX, POLYTOPE, CYLINDER, ELLIPSOID = range(6)
"""Kinds of shapes; of the pieces of a terrain, BOX and FACET."""

FACET = 6

FAR = 1e10
"""The gap of what does not count."""

SIZES = (
    "nshape", "npair", "nslot", "nplane", "nnode", "npiece", "ncorner", "nedge", "nface", "ndirection",
)  # fmt: skip


def numbers(*names: str) -> dict[str, type | None]:
    """Fields of one number each."""
    return dict.fromkeys(names)


INTS = Layout(
    nshape=numbers(
        "shape_kind", "shape_body", "plane_slot", "plane_slots", "pool_slot", "pool_end", "own_grip", "first_corner",
        "end_corner", "first_edge", "end_edge", "first_face", "end_face", "first_direction", "end_direction",
    ),
    npair=numbers("pair_a", "pair_b", "pair_slot", "pair_end"),
    nslot=numbers("slot_a", "slot_b", "group"),
    nnode=numbers("node_after", "node_piece"),
    npiece=numbers("piece_kind", "piece_corner", "piece_end", "piece_edge", "piece_edges"),
    nedge=numbers("edge_from", "edge_to"),
)  # fmt: skip
"""`plane_slot`: the first slot of a shape against half-spaces, `plane_slots` for each; `pool_slot` to `pool_end`: those
that all pieces share. `own_grip`: the shape has a coefficient of friction. `slot_a`, `slot_b`: the bodies, 0 for the
terrain. `group` (of the slots of a polytope against half-spaces): where its corners begin. `node_after`: the node to go on
with if nothing of this one is near. Edges: corners, counted from the first one of their shape or piece."""

REALS = Layout(
    one=numbers("margin"),
    nshape={
        "shape_place": SE3, "shape_size": Vec3, "shape_middle": Vec3, "shape_radius": None, "shape_root": None,
    },
    npair=numbers("pair_grip", "pair_bounce"),
    nplane={"plane_normal": Vec3, "plane_offset": None, "plane_root": None, "plane_bounce": None},
    nnode={"node_middle": Vec3, "node_half": Vec3},
    npiece={
        "piece_place": SE3, "piece_half": Vec3, "limit_low": Vec3, "limit_high": Vec3, "piece_root": None,
        "piece_bounce": None,
    },
    ncorner={"corner": Vec3},
    nface={"face_normal": Vec3, "face_offset": None},
    ndirection={"edge_direction": Vec3},
)  # fmt: skip
"""`shape_place`: in the canonical frame of its body; `shape_size`: half its sides, its half-axes, or radius and half the
length of the straight part; `shape_middle`, `shape_radius`: a ball around it. `shape_root`, `plane_root`, `piece_root`:
square roots of coefficients of friction. `piece_half`: half the sides of a box; of a facet, how far x and y change along
the vertical for z = 1, and how thick it is. `limit_low`, `limit_high`: how far normals may lean over the sides of a box
(over the edges of a facet, the former), as a sine: 0 where another piece goes on. Corners, normals and directions of shapes
are in the canonical frame of their body, those of pieces in their own frame."""

COLLISIONS = Part(
    SIZES, INTS, REALS, lambda problem: problem.scene.sizes, lambda problem, i, r: problem.scene.fill(i, r)
)
"""Of what has a `scene`: a `Scene`, or a problem with one."""

CONTACT_WORK = Layout(
    one={"origin": Vec3},
    nj={"place": SE3},
    nshape={"middle": Vec3},
    nslot={"point": Vec3, "normal": Vec3, "gap": None, "grip": None, "bounce": None},
)
"""In: where bodies are, about a point near them, along the world's axes. Out, for every slot: the middle between the two
surfaces, about that point; the unit normal, from b to a; how far they are apart, or `FAR`, and then the others mean nothing;
friction; restitution. `middle`: of the ball around each shape."""
