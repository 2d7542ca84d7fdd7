"""Random robots, to test algorithms on."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from saltus.model.builder import UNIT_LIMIT, ModelBuilder
from saltus.model.checks import Array, ModelError, whole_number
from saltus.model.joints import JointKind
from saltus.model.model import Model

MOVING_KINDS = tuple(kind for kind in JointKind if kind != JointKind.UNIVERSE)


def random_model(seed: int, bodies: int, kinds: Iterable[JointKind | str] = MOVING_KINDS) -> Model:
    """A random tree with this many moving bodies; the same seed gives the same model.

    Chains and branches mix; axes are random or along x, y or z; inertias are physically possible; positions,
    velocities and efforts are limited; some bodies carry a frame `frame_<joint index>`.

    >>> random_model(seed=7, bodies=5, kinds=["revolute", "free_flyer"]).nb
    5
    """
    if isinstance(kinds, str):
        raise TypeError(f"random_model: kinds is {kinds!r}, expected a list of them")
    choices = [JointKind.of(kind) for kind in kinds]
    bodies = whole_number(bodies, "random_model: bodies")
    if bodies < 1 or not choices:
        raise ModelError(f"a random model of {bodies} bodies and {len(choices)} joint kinds: at least one of each")
    if whole_number(seed, "random_model: seed") < 0:
        raise ModelError(f"random_model: seed is {seed}, expected no negative number")
    rng = np.random.default_rng(seed)
    builder = ModelBuilder(f"random_{seed}")
    for index in range(1, bodies + 1):
        # Half of the joints continue a chain, the others branch off anywhere.
        parent = index - 1 if rng.random() < 0.5 else int(rng.integers(index))
        kind = choices[rng.integers(len(choices))]
        reach = rng.uniform(0.5, 3.0, kind.nq)
        reach[kind.unit_coordinates] = UNIT_LIMIT
        joint = builder.add_joint(
            f"{kind.name.lower()}_{index}",
            kind,
            parent,
            _random_placement(rng),
            np.eye(3)[rng.integers(3)] if rng.random() < 0.5 else rng.normal(size=3),
            lower=-reach,
            upper=reach,
            velocity_limit=rng.uniform(2.0, 20.0, kind.nv),
            effort_limit=rng.uniform(20.0, 200.0, kind.nv),
        )
        for _ in range(rng.integers(1, 3)):
            mass = rng.uniform(0.2, 5.0)
            builder.add_body(joint, mass, rng.normal(size=3) * 0.1, _random_inertia(rng, mass), _random_placement(rng))
        if index == bodies or rng.random() < 0.4:
            builder.add_frame(f"frame_{joint}", joint, _random_placement(rng))
    return builder.build()


def _random_placement(rng: np.random.Generator) -> Array:
    """A uniformly random rotation with a translation of some 0.3 m, (4, 4)."""
    placement = np.eye(4)
    placement[:3, :3] = _random_rotation(rng)
    placement[:3, 3] = rng.normal(size=3) * 0.3
    return placement


def _random_rotation(rng: np.random.Generator) -> Array:
    orthogonal, triangular = np.linalg.qr(rng.normal(size=(3, 3)))
    orthogonal *= np.sign(np.diag(triangular))  # makes the distribution uniform
    if np.linalg.det(orthogonal) < 0:
        orthogonal[:, 0] *= -1
    return np.asarray(orthogonal, dtype=np.float64)


def _random_inertia(rng: np.random.Generator, mass: float) -> Array:
    """The inertia (3, 3) of a solid box of this mass with random sides of 0.05 to 0.5 m, at a random angle."""
    squares = rng.uniform(0.05, 0.5, 3) ** 2
    rotation = _random_rotation(rng)
    principal = mass / 12.0 * (squares.sum() - squares)
    return np.asarray(rotation @ np.diag(principal) @ rotation.T, dtype=np.float64)
