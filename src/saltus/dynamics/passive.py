"""What joints do by themselves: springs and dampers.

    tau = stiffness (rest - q) - damping v,      E = 1/2 sum stiffness (q - rest)^2

Springs are on joints whose q is one number, angles with their turns counted; other joints have none. Dry friction is left
out: it follows no law of q and v alone.

| symbol | model | tables | shape |
|---|---|---|---|
| stiffness, rest | `stiffness`, `spring_reference` | `spring`, `rest` | nv |
| damping | `damping` | `damping` | nv |
"""

from __future__ import annotations

from typing import Any

from saltus.arrays import Array, ArrayLike, OnInvalid
from saltus.kernel import is_zero, kernel, ld, st, zero
from saltus.model.joint_kernels import PRISMATIC, REVOLUTE
from saltus.model.model import Model
from saltus.model.tree import LIGHT, algorithm


@kernel
def way_to_rest(tree, k, q):
    """From where the joint is to where its spring is at rest; k is the degree of freedom."""
    i = tree.body[k]
    if is_zero(tree.spring[k]) or not (tree.kind[i] == REVOLUTE or tree.kind[i] == PRISMATIC):
        return zero(q)
    return tree.rest[k] - ld(q, tree.iq[i])


@kernel
def spring_torque(tree, k, q):
    return tree.spring[k] * way_to_rest(tree, k, q)


@algorithm(inputs={"q": "nq", "v": "nv optional"}, outputs={"tau": "nv"}, own_code=LIGHT)
def _passive_torques(tree, q, v, w, tau):
    for k in range(tree.nv):
        torque = spring_torque(tree, k, q)
        if v is not None:
            torque = torque - tree.damping[k] * ld(v, k)
        st(tau, k, torque)


@algorithm(inputs={"q": "nq"}, outputs={"energy": ""}, own_code=LIGHT)
def _elastic_energy(tree, q, w, energy):
    total = zero(q)
    for k in range(tree.nv):
        way = way_to_rest(tree, k, q)
        total = total + tree.spring[k] * (way * way)
    st(energy, 0, 0.5 * total)


def passive_torques(
    model: Model, q: ArrayLike, v: ArrayLike | None = None, *, out: Array | None = None, on_invalid: OnInvalid = "raise"
) -> Array:
    """Torques (..., nv) [N m, N] of the joints' springs at `q` (..., nq) and of their dampers at `v` (..., nv), by the
    model's `stiffness`, `spring_reference` and `damping`; without `v`, of the springs alone.

    >>> import numpy as np, saltus as sl
    >>> builder = sl.ModelBuilder("door")
    >>> hinge = builder.add_joint("hinge", "revolute", stiffness=3.0, spring_reference=0.2, damping=0.5)
    >>> _ = builder.add_body(hinge, mass=1.0, com=(0.4, 0, 0), inertia=np.diag([0.1, 0.1, 0.1]))
    >>> sl.passive_torques(builder.build(), [1.2], [2.0])
    array([-4.])
    """
    return _passive_torques.call(model, (q,) if v is None else (q, v), out, on_invalid)


def elastic_energy(model: Model, q: ArrayLike, *, on_invalid: OnInvalid = "raise") -> Any:
    """Energy (...) [J] in the joints' springs at `q` (..., nq), zero where all are at rest.

    >>> import saltus as sl
    >>> robot = sl.random_model(seed=0, bodies=3, kinds=["revolute"]).replace(stiffness=[2.0, 0.0, 8.0])
    >>> float(sl.elastic_energy(robot, [1.0, 1.0, 0.5]))
    2.0
    """
    return _elastic_energy.call(model, (q,), None, on_invalid)
