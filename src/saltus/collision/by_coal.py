"""Distances of a robot to itself by coal, which knows all pairs of shapes; one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from saltus.arrays import Array
from saltus.collision.hulls import polytope_of
from saltus.collision.scene import Scene
from saltus.dynamics.kinematics import joint_placements
from saltus.model.checks import ModelError
from saltus.model.shapes import Shape


def distances(scene: Scene, q: Array) -> Array:
    """The least distance (...) in configurations (..., nq); infinite if there are no pairs."""
    coal = _coal()
    shapes = [_geometry(coal, shape) for shape in scene.shapes]
    places = joint_placements(scene.model, q)
    request = coal.DistanceRequest()
    request.enable_signed_distance = True
    found = np.full(q.shape[:-1], np.inf)
    for sample in np.ndindex(found.shape):
        at = [places[sample][shape.joint] @ shape.placement for shape in scene.shapes]
        posed = [coal.Transform3s(X[:3, :3], X[:3, 3]) for X in at]
        for i, j in scene.candidates:
            result = coal.DistanceResult()
            gap = coal.distance(shapes[i], posed[i], shapes[j], posed[j], request, result)
            found[sample] = min(found[sample], gap)
    return found


def _coal() -> Any:
    try:
        import coal  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        raise ModelError("method='coal' needs the package coal: pip install 'saltus[coal]'") from None
    return coal


def _geometry(coal: Any, shape: Shape) -> Any:
    size = shape.size.tolist()
    match shape.kind:
        case "box":
            return coal.Box(*size)
        case "sphere":
            return coal.Sphere(*size)
        case "capsule":
            return coal.Capsule(*size)
        case "cylinder":
            return coal.Cylinder(*size)
        case "ellipsoid":
            return coal.Ellipsoid(*size)
    points = coal.StdVec_Vec3s()
    for corner in polytope_of(shape).corners:
        points.append(corner)
    return coal.Convex.convexHull(points, False, "Qt")
