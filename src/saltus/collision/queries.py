"""What touches what, for users: contacts of configurations with a terrain, and distances of a robot to itself."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.collision.closest import choose
from saltus.collision.contacts import find_contacts as fill_contacts
from saltus.collision.scene import MARGIN, Scene
from saltus.collision.self_pairs import least_distance
from saltus.collision.slots import place_shapes
from saltus.collision.tables import COLLISIONS, CONTACT_WORK, FAR
from saltus.collision.terrain import PIECES, Terrain
from saltus.kernel import Tables, declare, kernel, ld, less, lift, select, st, zero
from saltus.model.checks import finite
from saltus.model.joint_kernels import joint_placement, placed_after
from saltus.model.model import Model
from saltus.model.tree import CONFIGURATIONS, INERTIAS, TREE, extent
from saltus.spatial.algebra import SE3, Mat3, Vec2, Vec3

in_scene = partial(declare, Tables([TREE, COLLISIONS], CONFIGURATIONS, extent, INERTIAS))
"""The decorator of algorithms on scenes."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts of configurations (...), a fixed number `nslot` of places for each, of which those in the mask count."""

    point: Array  # (..., nslot, 3) the middle between both surfaces, in the world [m]
    normal: Array  # (..., nslot, 3) unit, from b to a
    gap: Array  # (..., nslot) distance [m], negative where they overlap; infinite where nothing is near
    friction: Array  # (..., nslot) coefficient
    restitution: Array  # (..., nslot)
    mask: NDArray[np.bool_]  # (..., nslot)
    pairs: tuple[tuple[str, str], ...]  # the names of a and b, the terrain's being empty


@kernel
def place_bodies(tree, q, w):
    """Placements of the canonical frames along the world's axes, about the first body's."""
    o = zero(q)
    one = lift(1.0, o)
    X = SE3(Mat3(one, o, o, o, one, o, o, o, one), Vec3(o, o, o))
    if tree.nj > 1:
        X = SE3(X.R, -joint_placement(tree, 1, q, Vec2(one, o)).p)
    w.place[0], w.origin[0] = X, -X.p
    for i in range(1, tree.nj):
        w.place[i] = placed_after(tree, i, q, w.place[tree.parent[i]])


@in_scene(
    inputs={"q": "nq"},
    outputs={"point": "nslot 3", "normal": "nslot 3", "gap": "nslot", "friction": "nslot", "restitution": "nslot"},
    work=CONTACT_WORK,
    sloped=False,
)
def _contacts(tree, q, w, point, normal, gap, friction, restitution):
    place_bodies(tree, q, w)
    fill_contacts(tree, w)
    o = zero(q)
    for s in range(tree.nslot):
        near = less(w.gap[s], 0.5 * FAR)
        st(point, 3 * s, choose(near, w.point[s] + w.origin[0], Vec3(o, o, o)))
        st(normal, 3 * s, choose(near, w.normal[s], Vec3(o, o, lift(1.0, o))))
        st(gap, s, w.gap[s])
        st(friction, s, select(near, w.grip[s], o))
        st(restitution, s, select(near, w.bounce[s], o))


def find_contacts(
    model: Model | Scene,
    terrain: Terrain | PIECES | Iterable[PIECES] | None,
    q: ArrayLike,
    *,
    self_collision: bool = True,
    margin: float = MARGIN,
) -> Contacts:
    """Contacts of a robot with a terrain and with itself in configurations `q` (..., nq).

    margin: gaps up to which contacts count [m].

    A `Scene` in the place of the model spares looking for what may touch; the other arguments are then its own.

    >>> import saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> found = sl.find_contacts(robot, sl.Ground(), robot.reference_configurations["standing"], margin=0.001)
    >>> int(found.mask.sum()), found.normal[found.mask][0].tolist(), bool((abs(found.gap[found.mask]) < 1e-9).all())
    (4, [0.0, 0.0, 1.0], True)
    """
    scene = model if isinstance(model, Scene) else Scene(model, terrain, self_collision, margin)
    point, normal, gap, friction, restitution = _contacts.call(scene, (q,))
    mask = gap < 0.5 * FAR
    gap[~mask] = np.inf
    return Contacts(point, normal, gap, friction, restitution, mask, tuple(scene.slots))


@in_scene(inputs={"q": "nq", "most": ""}, outputs={"distance": "1"}, work=CONTACT_WORK, sloped=False)
def _self_distance(tree, q, most, w, distance):
    place_bodies(tree, q, w)
    place_shapes(tree, w)
    st(distance, 0, least_distance(tree, w, ld(most, 0)))


def self_distance(
    model: Model | Scene,
    q: ArrayLike,
    *,
    method: Literal["kernels", "coal"] = "kernels",
    on_invalid: OnInvalid = "raise",
) -> Array:
    """How far a robot's colliders are from each other (...) [m], the nearest two of those that may touch, in configurations
    `q` (..., nq); negative where they overlap, infinite where there are none.

    method: "kernels", batched as all else, looks at spheres and capsules, and at both against boxes; "coal" at all pairs
        (`pip install 'saltus[coal]'`), one after the other, meshes being their hulls.

    >>> import numpy as np, saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> q = sl.random_configuration(robot, seed=0, shape=1000)
    >>> sl.self_distance(robot, q).shape
    (1000,)
    """
    distance = _distances(model, q, FAR, method, on_invalid)
    distance[distance > 0.5 * FAR] = np.inf
    return distance


def in_collision(
    model: Model | Scene, q: ArrayLike, margin: float = 0.0, *, method: Literal["kernels", "coal"] = "kernels"
) -> NDArray[np.bool_]:
    """Whether a robot touches itself (...), in configurations `q` (..., nq): two of its colliders are less than `margin`
    apart [m]. `method` as for `self_distance`; faster than that, since what is far apart is not measured.

    >>> import saltus as sl
    >>> robot = sl.load_robot("quadruped")
    >>> sl.in_collision(robot, robot.reference_configurations["standing"])
    np.False_
    """
    margin = float(finite(margin, (), "margin of in_collision"))
    found: NDArray[np.bool_] = np.less(_distances(model, q, margin, method), margin)[()]
    return found


def _distances(model: Model | Scene, q: ArrayLike, most: float, method: str, on_invalid: OnInvalid = "raise") -> Array:
    check_choice_of(method)
    scene = model if isinstance(model, Scene) else own_scene(model)
    if method == "coal":
        from saltus.collision.by_coal import distances

        return distances(scene, np.asarray(q))
    found: Array = _self_distance.call(scene, (q, most), None, on_invalid)[..., 0]
    return found


def check_choice_of(method: str) -> None:
    if method not in ("kernels", "coal"):
        raise ValueError(f"method is {method!r}, expected 'kernels' or 'coal'")


def own_scene(model: Model) -> Scene:
    """A model without a terrain; made once."""
    found: Scene | None = model.__dict__.get("own_scene")
    return found or model.__dict__.setdefault("own_scene", Scene(model))
