"""One collider on a free body, its poses, and coal's word on how far it is from a terrain."""

from __future__ import annotations

from typing import Any

import coal
import numpy as np
from scipy.spatial.transform import Rotation

import saltus as sl
from saltus.collision.hulls import polytope_of

SHAPES = {
    "sphere": (0.1,),
    "capsule": (0.05, 0.4),
    "box": (0.3, 0.2, 0.1),
    "cylinder": (0.1, 0.3),
    "ellipsoid": (0.1, 0.2, 0.05),
}


def floating(kind: str, size: Any = None, **settings: Any) -> sl.Model:
    """A free body with one collider."""
    builder = sl.ModelBuilder(kind)
    builder.add_body(builder.add_joint("root", "free_flyer"), mass=1.0, inertia=np.eye(3))
    builder.add_collider(1, kind, SHAPES[kind] if size is None else size, **settings)
    return builder.build()


def poses(count: int, middle: Any, spread: float, seed: int = 0) -> Any:
    """Configurations (count, 7) of a free flyer."""
    rng = np.random.default_rng(seed)
    turns = Rotation.random(count, random_state=seed).as_quat()
    return np.column_stack([np.asarray(middle) + spread * rng.normal(size=(count, 3)), turns])


def upright(positions: Any) -> Any:
    """Configurations (..., 7) that are not turned, at positions (..., 3)."""
    positions = np.asarray(positions, float)
    return np.concatenate([positions, np.broadcast_to([0.0, 0.0, 0.0, 1.0], (*positions.shape[:-1], 4))], axis=-1)


def placed(turn: Any = None, position: Any = (0.0, 0.0, 0.0)) -> Any:
    """A placement (4, 4)."""
    X = np.eye(4)
    X[:3, 3] = position
    if turn is not None:
        X[:3, :3] = turn
    return X


def matrix(q: Any) -> Any:
    return placed(Rotation.from_quat(q[3:]).as_matrix(), q[:3])


def hull(corners: Any) -> Any:
    points = coal.StdVec_Vec3s()
    for corner in corners:
        points.append(corner)
    return coal.Convex.convexHull(points, False, "Qt")


def geometry(shape: sl.Shape, as_hull: bool = False) -> Any:
    size = shape.size.tolist()
    if as_hull or shape.kind == "mesh":
        return hull(polytope_of(shape).corners)
    return getattr(coal, shape.kind.capitalize())(*size)


def coal_distance(one: Any, at: Any, other: Any, there: Any, tolerance: float = 1e-10) -> tuple[float, Any]:
    """The signed distance of two of coal's shapes at placements (4, 4), and its result."""
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    request.gjk_tolerance = request.epa_tolerance = tolerance
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    result = coal.DistanceResult()
    posed = [coal.Transform3s(X[:3, :3], X[:3, 3]) for X in (at, there)]
    return coal.distance(one, posed[0], other, posed[1], request, result), result
