"""A scene: which shapes of a model may touch a terrain, and which each other, with places for their contacts.

| shape | contacts with a half-space | with all other pieces | with another shape of the model |
|---|---|---|---|
| sphere | 1 | 3 | 1 |
| capsule | 2 | 4 | 1 |
| box | 8 | 8 | of a sphere 1, of a capsule 2 |
| cylinder | 6 | 8 | |
| ellipsoid | 1 | 8 | |
| mesh | 8 | 8 | |

Friction of a contact is the geometric mean of both coefficients; a collider without one takes that of what it touches.
Restitution is the terrain's, and none between bodies.

Bodies that a joint connects never touch, nor do those that only bodies without colliders lie between; nor pairs that the
model keeps `apart`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from saltus.collision.hulls import Polytope, polytope_of
from saltus.collision.tables import BOX, CAPSULE, CYLINDER, ELLIPSOID, FACET, POLYTOPE, SPHERE
from saltus.collision.terrain import CUBE, CUBE_EDGES, FRICTION, PIECES, Block, Facet, Plane, Terrain, as_terrain
from saltus.kernel.tables import FilledPart, filled_part
from saltus.model.checks import Array, ModelError, finite
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.model.parameters import VariedModel
from saltus.model.shapes import Shape
from saltus.model.tree import TREE, canonical_rotation, se3, seen_from
from saltus.spatial.algebra import Vec3

KINDS = {
    "sphere": SPHERE,
    "capsule": CAPSULE,
    "box": BOX,
    "cylinder": CYLINDER,
    "ellipsoid": ELLIPSOID,
    "mesh": POLYTOPE,
}
AT_PLANES = {SPHERE: 1, CAPSULE: 2, CYLINDER: 6, ELLIPSOID: 1}  # polytopes: a slot a group of corners
IN_POOL = {SPHERE: 3, CAPSULE: 4}
MOST_IN_POOL = 8
ROUND = ("sphere", "capsule")
MARGIN = 0.02
"""Gaps up to which contacts count, unless another one is given [m]."""

INSIDE, BEYOND = 1e-6, 1e-5
"""How far a corner may be out of a piece and still count as inside, and how far over a face we look for another one."""


class Scene:
    """What may touch in a model and a terrain: where it stands in the place of a model, kernels see both.

    >>> import saltus as sl
    >>> scene = Scene(sl.load_robot("quadruped"), sl.Ground())
    >>> scene.sizes["nplane"]
    1
    """

    def __init__(
        self,
        model: Model,
        terrain: Terrain | PIECES | Iterable[PIECES] | None = None,
        self_collision: bool = True,
        margin: float = MARGIN,
    ) -> None:
        if model.coupling is not None:
            raise ModelError(f"model {model.name!r} has mimic joints, whose contacts cannot be found yet")
        self.model, self.terrain, self.coupling = model, as_terrain(terrain), None
        self.margin = float(finite(margin, (), "margin of a scene"))
        if self.margin < 0.0:
            raise ModelError(f"margin of a scene is {self.margin}, expected no negative number")
        self.name, self.joints, self.frames, self.nq, self.nv = (
            model.name, model.joints, model.frames, model.nq, model.nv,
        )  # fmt: skip
        self.specialised, self.varied = model.specialised, model.varied
        if isinstance(model, VariedModel):
            self.inertias_for, self.leading = model.inertias_for, model.leading
        self.filled: dict[Any, Any] = {}
        self.quick: dict[Any, Any] = {}
        self.parts: dict[Any, FilledPart] = {TREE: filled_part(TREE, model, TREE.measure(model))}
        parts = [(part, piece) for piece in self.terrain.pieces for part in piece.parts()]
        self.planes = [(part, piece) for part, piece in parts if isinstance(part, Plane)]
        self.pieces = [(part, piece) for part, piece in parts if not isinstance(part, Plane)]
        self.shapes = list(model.colliders)
        self.pairs = list(self._pairs()) if self_collision else []

    @property
    def scene(self) -> Scene:
        return self

    def _pairs(self) -> Iterator[tuple[int, int]]:
        """The pairs of colliders that kernels test, a box after a round one."""
        for i, j in self.candidates:
            kinds = [self.shapes[k].kind for k in (i, j)]
            if kinds[0] in ROUND and (kinds[1] in ROUND or kinds[1] == "box"):
                yield i, j
            elif kinds[1] in ROUND and kinds[0] == "box":
                yield j, i

    @cached_property
    def candidates(self) -> list[tuple[int, int]]:
        """The pairs of colliders that may touch."""
        return list(candidate_pairs(self.model))

    @cached_property
    def polytopes(self) -> list[Polytope | None]:
        return [None if shape.kind in ROUND else polytope_of(shape) for shape in self.shapes]

    @cached_property
    def slots(self) -> list[tuple[str, str]]:
        """Of every slot, the names of what may touch there; the terrain's is empty."""
        found: list[tuple[str, str]] = [("", "")] * self.sizes["nslot"]
        for i, shape in enumerate(self.shapes):
            for slot in range(self._plane_slot[i], self._pool_end(i)):
                found[slot] = (shape_name(self.model, shape), "")
        for (a, b), slots in zip(self.pairs, self._pair_slots, strict=True):
            for slot in slots:
                found[slot] = (shape_name(self.model, self.shapes[a]), shape_name(self.model, self.shapes[b]))
        return found

    @cached_property
    def _at_planes(self) -> list[int]:
        """Of every shape, how many slots it has for each half-space; none if it does not move."""
        return [
            0 if shape.joint == 0 else AT_PLANES.get(KINDS[shape.kind]) or len(polytope.groups) - 1  # type: ignore[union-attr]
            for shape, polytope in zip(self.shapes, self.polytopes, strict=True)
        ]

    @cached_property
    def _in_pool(self) -> list[int]:
        """And how many all other pieces share."""
        found = []
        for shape in self.shapes:
            most = IN_POOL.get(KINDS[shape.kind], MOST_IN_POOL)
            found.append(
                0 if shape.joint == 0 else min(most, len(self.pieces) * (1 if shape.kind == "sphere" else most))
            )
        return found

    @cached_property
    def _plane_slot(self) -> list[int]:
        each = [len(self.planes) * at + pool for at, pool in zip(self._at_planes, self._in_pool, strict=True)]
        return [sum(each[:k]) for k in range(len(each) + 1)]

    def _pool_end(self, i: int) -> int:
        return self._plane_slot[i + 1]

    @cached_property
    def _pair_slots(self) -> list[range]:
        start, found = self._plane_slot[-1], []
        for a, b in self.pairs:
            count = 2 if self.shapes[a].kind == "capsule" and self.shapes[b].kind == "box" else 1
            found.append(range(start, start + count))
            start += count
        return found

    @cached_property
    def nodes(self) -> list[tuple[Array, Array, int, int]]:
        """The tree of the pieces, depth first: middle, half sides, the node after it, its piece or -1."""
        boxes = [_bounds(part) for part, _ in self.pieces]
        found: list[tuple[Array, Array, int, int]] = []

        def add(members: Any) -> None:
            low = np.min([boxes[k][0] for k in members], axis=0)
            high = np.max([boxes[k][1] for k in members], axis=0)
            place = len(found)
            found.append((low, high, 0, -1))
            if len(members) > 1:
                middles = np.array([boxes[k][0] + boxes[k][1] for k in members])
                order = np.argsort(middles[:, int(np.argmax(np.ptp(middles, axis=0)))], kind="stable")
                cut = len(members) // 2
                add([members[k] for k in order[:cut]])
                add([members[k] for k in order[cut:]])
            piece = members[0] if len(members) == 1 else -1
            found[place] = ((low + high) / 2.0, (high - low) / 2.0, len(found), piece)

        if boxes:
            add(list(range(len(boxes))))
        return found

    @cached_property
    def sizes(self) -> dict[str, int]:
        own = [polytope for polytope in self.polytopes if polytope is not None]
        return {
            "nshape": len(self.shapes),
            "npair": len(self.pairs),
            "nslot": self._plane_slot[-1] + sum(map(len, self._pair_slots)),
            "nplane": len(self.planes),
            "nnode": len(self.nodes),
            "npiece": len(self.pieces),
            "ncorner": sum(len(each.corners) for each in own)
            + sum(8 if isinstance(part, Block) else 3 for part, _ in self.pieces),
            "nedge": len(CUBE_EDGES) + 3 + sum(len(each.edges) for each in own),
            "nface": sum(len(each.normals) for each in own),
            "ndirection": sum(len(each.directions) for each in own),
        }

    def fill(self, ints: Any, reals: Any) -> None:
        reals.margin[0] = self.margin
        corners, edges = _Counter(), _Counter()
        for a, b in [*CUBE_EDGES.tolist(), (0, 1), (1, 2), (2, 0)]:
            k = edges.next()
            ints.edge_from[k], ints.edge_to[k] = a, b
        self._fill_shapes(ints, reals, corners, edges)
        for k, (plane, piece) in enumerate(self.planes):
            reals.plane_normal[k], reals.plane_offset[k] = Vec3(*plane.normal), plane.offset
            reals.plane_root[k], reals.plane_bounce[k] = np.sqrt(piece.friction), piece.restitution
        for k, (middle, half, after, piece_index) in enumerate(self.nodes):
            reals.node_middle[k], reals.node_half[k] = Vec3(*middle), Vec3(*half)
            ints.node_after[k], ints.node_piece[k] = after, piece_index
        for k, (part, piece) in enumerate(self.pieces):
            reals.piece_root[k], reals.piece_bounce[k] = np.sqrt(piece.friction), piece.restitution
            self._fill_piece(ints, reals, k, part, corners)
        for k, (a, b) in enumerate(self.pairs):
            slots = self._pair_slots[k]
            ints.pair_a[k], ints.pair_b[k], ints.pair_slot[k], ints.pair_end[k] = a, b, slots.start, slots.stop
            reals.pair_grip[k] = pair_friction(self.shapes[a], self.shapes[b])
            for slot in slots:
                ints.slot_a[slot], ints.slot_b[slot] = self.shapes[a].joint, self.shapes[b].joint

    def _fill_shapes(self, ints: Any, reals: Any, corners: _Counter, edges: _Counter) -> None:
        faces, directions = _Counter(), _Counter()
        for k, (shape, polytope) in enumerate(zip(self.shapes, self.polytopes, strict=True)):
            joint = self.model.joints[shape.joint]
            place = seen_from(canonical_rotation(joint.kind, joint.axis), shape.placement, np.eye(3))
            R, p = place[:3, :3], place[:3, 3]
            kind = KINDS[shape.kind]
            ints.shape_kind[k], ints.shape_body[k] = kind, shape.joint
            ints.plane_slot[k], ints.plane_slots[k] = self._plane_slot[k], self._at_planes[k]
            ints.pool_end[k] = self._pool_end(k)
            ints.pool_slot[k] = self._pool_end(k) - self._in_pool[k]
            for slot in range(self._plane_slot[k], self._pool_end(k)):
                ints.slot_a[slot] = shape.joint
            ints.own_grip[k] = shape.friction is not None
            reals.shape_root[k] = np.sqrt(shape.friction or 0.0)
            size = {"box": shape.size / 2.0, "ellipsoid": shape.size}.get(shape.kind)
            if size is None:
                size = np.array([shape.size[0], 0.0 if shape.kind == "sphere" else shape.size[-1] / 2.0, 0.0])
            reals.shape_place[k], reals.shape_size[k] = se3(place), Vec3(*size)
            middle, reals.shape_radius[k] = _ball(shape, polytope)
            reals.shape_middle[k] = Vec3(*(R @ middle + p))
            if polytope is None:
                continue
            ints.first_corner[k] = corners.count
            for start, end in pairwise(polytope.groups):
                for corner in polytope.corners[start:end]:
                    reals.corner[corners.next()] = Vec3(*(R @ corner + p))
            ints.end_corner[k] = corners.count
            if kind in (BOX, POLYTOPE):
                for plane in range(len(self.planes)):
                    for g in range(self._at_planes[k]):
                        slot = self._plane_slot[k] + plane * self._at_planes[k] + g
                        ints.group[slot] = ints.first_corner[k] + polytope.groups[g]
            ints.first_edge[k] = edges.count
            for a, b in polytope.edges.tolist():
                e = edges.next()
                ints.edge_from[e], ints.edge_to[e] = a, b
            ints.end_edge[k], ints.first_face[k] = edges.count, faces.count
            for normal, offset in zip(polytope.normals, polytope.offsets, strict=True):
                f = faces.next()
                reals.face_normal[f], reals.face_offset[f] = Vec3(*(R @ normal)), offset + (R @ normal) @ p
            ints.end_face[k], ints.first_direction[k] = faces.count, directions.count
            for direction in polytope.directions:
                reals.edge_direction[directions.next()] = Vec3(*(R @ direction))
            ints.end_direction[k] = directions.count

    def _fill_piece(self, ints: Any, reals: Any, k: int, part: Block | Facet, corners: _Counter) -> None:
        ints.piece_corner[k] = corners.count
        if isinstance(part, Block):
            ints.piece_kind[k], ints.piece_edge[k], ints.piece_edges[k] = BOX, 0, len(CUBE_EDGES)
            reals.piece_place[k], reals.piece_half[k] = se3(part.placement), Vec3(*part.half)
            covered = [self._is_covered(part, axis, side) for side in (-1.0, 1.0) for axis in range(3)]
            limits = [0.0 if each else 2.0 for each in covered]
            reals.limit_low[k], reals.limit_high[k] = Vec3(*limits[:3]), Vec3(*limits[3:])
            own = CUBE * part.half
        else:
            ints.piece_kind[k] = FACET
            ints.piece_edge[k], ints.piece_edges[k] = len(CUBE_EDGES), len(CUBE_EDGES) + 3
            place, own = _facet_frame(part)
            reals.piece_place[k], reals.limit_low[k] = se3(place), Vec3(*part.limits)
            up = place[2, :3]
            reals.piece_half[k] = Vec3(up[0] / up[2], up[1] / up[2], part.thickness)
        for corner in own:
            reals.corner[corners.next()] = Vec3(*corner)
        ints.piece_end[k] = corners.count

    def _is_covered(self, block: Block, axis: int, side: float) -> bool:
        """Whether a face of a box lies within another piece."""
        face = CUBE[CUBE[:, axis] == side] * block.half
        face[:, axis] += side * BEYOND
        corners = face @ block.placement[:3, :3].T + block.placement[:3, 3]
        if any((corners @ plane.normal <= plane.offset + INSIDE).all() for plane, _ in self.planes):
            return True
        others = [part for part, _ in self.pieces if isinstance(part, Block) and part is not block]
        return any(
            (np.abs((corners - each.placement[:3, 3]) @ each.placement[:3, :3]) <= each.half + INSIDE).all()
            for each in others
        )


class _Counter:
    """How many records of a table are filled."""

    def __init__(self) -> None:
        self.count = 0

    def next(self) -> int:
        self.count += 1
        return self.count - 1


def candidate_pairs(model: Model) -> Iterator[tuple[int, int]]:
    """The pairs of a model's colliders that may touch each other."""
    carriers = {shape.joint for shape in model.colliders}

    def above(joint: int) -> int:
        """The body with colliders that it hangs on; -1 if that is the world, and only a free flyer between."""
        while joint > 0:
            free, joint = model.joints[joint].kind is JointKind.FREE_FLYER, model.joints[joint].parent
            if joint in carriers:
                return -1 if free and joint == 0 else joint
        return -1

    apart = {frozenset(pair) for pair in model.apart}
    names = [{shape.name, shape.frame, model.joints[shape.joint].name} - {""} for shape in model.colliders]
    for i, a in enumerate(model.colliders):
        for j, b in enumerate(model.colliders[:i]):
            if a.joint == b.joint or above(a.joint) == b.joint or above(b.joint) == a.joint:
                continue
            if apart and any(frozenset((x, y)) in apart for x in names[i] for y in names[j]):
                continue
            yield j, i


def pair_friction(a: Shape, b: Shape) -> float:
    """Between two shapes of a model."""
    known = [each.friction for each in (a, b) if each.friction is not None] or [FRICTION]
    return float(np.sqrt(known[0] * known[-1]))


def shape_name(model: Model, shape: Shape) -> str:
    return shape.name or shape.frame or model.joints[shape.joint].name


def _ball(shape: Shape, polytope: Polytope | None) -> tuple[Array, float]:
    """Middle and radius of a ball around a shape, in its frame."""
    size = shape.size
    if polytope is None:
        return np.zeros(3), float(size.sum() - size[-1] / 2.0 if shape.kind == "capsule" else size[0])
    if shape.kind == "cylinder":
        return np.zeros(3), float(np.hypot(size[0], size[1] / 2.0))
    if shape.kind == "ellipsoid":
        return np.zeros(3), float(size.max())
    middle = (polytope.corners.min(axis=0) + polytope.corners.max(axis=0)) / 2.0
    return middle, float(np.linalg.norm(polytope.corners - middle, axis=1).max())


def _bounds(part: Block | Facet) -> tuple[Array, Array]:
    """The lowest and highest coordinates of a piece."""
    if isinstance(part, Block):
        reach = np.abs(part.placement[:3, :3]) @ part.half
        return part.placement[:3, 3] - reach, part.placement[:3, 3] + reach
    low, high = part.corners.min(axis=0), part.corners.max(axis=0)
    return low - [0.0, 0.0, part.thickness], high


def _facet_frame(facet: Facet) -> tuple[Array, Array]:
    """A frame with its origin in the middle and z along the normal, and the corners (3, 3) in it."""
    middle = facet.corners.mean(axis=0)
    x = facet.corners[1] - facet.corners[0]
    x = x / np.linalg.norm(x)
    z = np.cross(x, facet.corners[2] - facet.corners[0])
    z = z / np.linalg.norm(z)
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = np.column_stack([x, np.cross(z, x), z]), middle
    own = (facet.corners - middle) @ place[:3, :3]
    own[:, 2] = 0.0
    return place, own
