"""Torques and forces of constraints for wanted accelerations.

    M a + b = S^T tau + J^T forces

Rows of this equation whose joints have no actuator (`passive`, u below) can be met by forces of the constraints alone:

    min  1/2 forces^T W forces      over the forces that minimise      |d_u - J_u^T forces|,      d = M a + b

where W holds the weights of the constraints' rows; the actuators bear the rest, tau = d - J^T forces. So redundant contacts
share the load in the weighted least-squares sense; where no forces carry the passive rows (a robot in the air, one point
foot), what is left of them is as small as can be, N and N m counted alike, and reported. If every joint has an actuator,
forces are zero: nothing asks for them.

Forces of least norm are W^-1 J_u y. A proximal method finds y and never inverts a singular matrix:

    (J_u^T W^-1 J_u + mu) dy = d_u - J_u^T forces,      forces <- forces + W^-1 J_u dy

d comes from one sweep to the leaves and one back; the matrix has as many rows as there are passive degrees of freedom p, six
for a robot that walks. O(n + m d + m p^2 + p^3) for depth d. The constraints' own accelerations are not asked after: if a is
compatible with them, forward dynamics with these torques gives it back.

| equation | code | what | shape |
|---|---|---|---|
| d | `torque` | what gives the accelerations without constraints | nv |
| mu W | `mu` | of each row | nm |
| J_u^T W^-1 J_u / mu + 1 | `normal`, `scale` | its lower triangle, then factors L and D, in place | p p, p |
| d_u - J_u^T forces | `left` | what is left of the passive rows | p |
| dy | `step` | | p |

Reference: A. Sathya, J. Carpentier, Constrained articulated body dynamics algorithms, II-D1, for least squares by proximal
iterations; the formulation is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

from saltus.arrays import Array
from saltus.constraints.convergence import Rows, conclude
from saltus.constraints.dense import factor_block, solve_block
from saltus.constraints.report import Reported
from saltus.constraints.system import AXES, BODIES, aim_rows, move_accelerated, take_rows
from saltus.constraints.tables import MOVERS, PASSIVE, constrained
from saltus.kernel import Layout, kernel, largest, ld, less, lift, maximum, minimum, select, some, st, zero
from saltus.spatial.algebra import Force, Vec3, power

WORK = Layout(
    nj=BODIES,
    nv={**AXES, "torque": None, "scale": None, "left": None, "step": None},
    nvv={"normal": None},
    nmv={"J": None},
    nm={"push": None, "goal": None},
)


@dataclass(frozen=True, eq=False)
class InverseDynamics(Reported):
    """Torques and forces for wanted accelerations, each with the leading shape of the inputs."""

    tau: Array  # (..., nv), zero where there is no actuator [N m, N]
    forces: Array  # (..., nm) on body a of each constraint, along its rows [N, N m]
    report: (
        Array  # (..., 5) iterations, residual (largest row without actuator that is left) [N m, N], its last change,
    )
    # imbalance, status


@constrained(
    MOVERS,
    PASSIVE,
    inputs={"q": "nq", "v": "nv", "a": "nv", "active": "nc", "rows": "nu nv"},
    outputs={"tau": "nv", "forces": "nm", "report": "5"},
    work=WORK,
    double_only=True,
)
def _inverse_dynamics(tree, q, v, a, active, rows, w, tau, forces, report):
    nv, o = tree.nv, zero(q)
    for r in range(tree.nm):
        st(w.push, r, o)
    move_accelerated(tree, q, v, a, w)
    collect_torques(tree, a, w)
    aim_rows(tree, active, w.push, w, w.J, w.goal)
    take_rows(tree, active, w.push, rows, w.J, w.goal)
    assemble(tree, w)
    factor_block(w.normal, w.scale, tree.passives[0], 0, tree.passives[0])

    size = o
    for k in range(nv):
        size = largest(size, ld(w.torque, k))
    # Forces have no natural size as accelerations have gravity: those of a light robot are held to less.
    allowed = maximum(tree.tolerance[0] * minimum(size, lift(1.0, o)), tree.rounding[0] * size)
    residual, change, count, going = o, o, o, less(-1.0, o)
    for _ in range(tree.most_iterations[0]):
        if not some(going):
            break
        alive = select(going, lift(1.0, o), o)
        newer, moved = share(tree, alive, w)
        residual, change = select(going, newer, residual), select(going, moved, change)
        count = count + alive
        going = less(allowed, minimum(residual, change))

    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            push = ld(w.push, r)
            st(forces, r, push)
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                st(w.torque, k, ld(w.torque, k) - ld(w.J, r * nv + k) * push)
    for k in range(nv):
        st(tau, k, ld(w.torque, k))
    for i in range(tree.passives[0]):
        st(tau, tree.passive[i], o)
    most = Rows(allowed, allowed)
    # Torques balance whatever forces leave.
    conclude(tree, count, Rows(residual, o), Rows(change, o), o, most, report)


@kernel
def collect_torques(tree, a, w):
    """To the root: the torques that give the accelerations without constraints."""
    o = zero(a)
    w.force[0] = Force(Vec3(o, o, o), Vec3(o, o, o))
    for i in range(tree.nj - 1, 0, -1):
        force = w.force[i]
        w.force[tree.parent[i]] = w.force[tree.parent[i]] + force
        for k in range(tree.iv[i], tree.end[i]):
            w.torque[k] = power(w.axis[k], force) + tree.armature[k] * ld(a, k)


@kernel
def assemble(tree, w):
    """The lower triangle of the normal equations of the passive rows, and what no forces leave of these."""
    nv, size = tree.nv, tree.passives[0]
    for i in range(size):
        st(w.left, i, w.torque[tree.passive[i]])
        for j in range(i):
            st(w.normal, i * size + j, 0.0)
        st(w.normal, i * size + i, 1.0)
    for r in range(tree.nm):
        for i in range(size):
            entry = ld(w.J, r * nv + tree.passive[i]) / tree.mu[r]
            for j in range(i + 1):
                product = entry * ld(w.J, r * nv + tree.passive[j])
                st(w.normal, i * size + j, ld(w.normal, i * size + j) + product)


@kernel
def share(tree, alive, w):
    """One step of the proximal method; returns what it leaves of the passive rows, and how much that has changed."""
    nv, size = tree.nv, tree.passives[0]
    residual = change = zero(w.left)
    for i in range(size):
        st(w.step, i, ld(w.left, i) * alive)
    solve_block(w.normal, w.scale, size, 0, size, w.step)
    for r in range(tree.nm):
        force = zero(w.left)
        for i in range(size):
            force = force + ld(w.J, r * nv + tree.passive[i]) * ld(w.step, i)
        st(w.push, r, ld(w.push, r) + force / tree.mu[r])
    for i in range(size):
        k = tree.passive[i]
        left = w.torque[k]
        for r in range(tree.nm):
            left = left - ld(w.J, r * nv + k) * ld(w.push, r)
        residual = largest(residual, left)
        change = largest(change, left - ld(w.left, i))
        st(w.left, i, left)
    return residual, change
