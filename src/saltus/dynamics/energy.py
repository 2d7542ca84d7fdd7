"""Kinetic and potential energy.

T = 1/2 v^T M(q) v,      V = -m g^T c(q)
"""

from __future__ import annotations

from typing import Any

from saltus.arrays import ArrayLike, OnInvalid
from saltus.dynamics.centroidal import PLACES, gather_momentum
from saltus.kernel import Layout, ld, st, zero
from saltus.model.joint_kernels import add_motion, joint_placement, joint_turn
from saltus.model.model import Model
from saltus.model.tree import LIGHT, algorithm
from saltus.spatial.algebra import Motion, Vec3, act_inv, dot, power


@algorithm(inputs={"q": "nq", "v": "nv"}, outputs={"energy": ""}, work=Layout(nj={"velocity": Motion}), own_code=LIGHT)
def _kinetic_energy(tree, q, v, w, energy):
    o = zero(q)
    total = o
    w.velocity[0] = Motion(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(1, tree.nj):
        X = joint_placement(tree, i, q, joint_turn(tree, i, q))
        velocity = add_motion(tree, i, act_inv(X, w.velocity[tree.parent[i]]), v)
        w.velocity[i] = velocity
        total = total + power(velocity, tree.inertia[i] @ velocity)
    for k in range(tree.nv):
        total = total + tree.armature[k] * (ld(v, k) * ld(v, k))
    st(energy, 0, 0.5 * total)


@algorithm(inputs={"q": "nq"}, outputs={"energy": ""}, work=Layout(nj=PLACES), own_code=LIGHT)
def _potential_energy(tree, q, w, energy):
    gather_momentum(tree, q, None, None, w)
    st(energy, 0, -dot(tree.gravity[0], w.moment[0]))


def kinetic_energy(model: Model, q: ArrayLike, v: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Any:
    """Kinetic energy (...) [J] for `q` (..., nq) and `v` (..., nv), armature included.

    >>> import numpy as np, saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> q, v = robot.neutral(), np.ones(robot.nv)
    >>> bool(np.allclose(sl.kinetic_energy(robot, q, v), 0.5 * v @ sl.crba(robot, q) @ v))
    True
    """
    return _kinetic_energy.call(model, (q, v), None, on_invalid)


def potential_energy(model: Model, q: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Any:
    """Potential energy (...) [J] of gravity at `q` (..., nq), zero with the centre of mass at the world's origin.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3)
    >>> height = sl.center_of_mass(robot, robot.neutral())[2]
    >>> bool(abs(sl.potential_energy(robot, robot.neutral()) - robot.total_mass * 9.81 * height) < 1e-9)
    True
    """
    return _potential_energy.call(model, (q,), None, on_invalid)
