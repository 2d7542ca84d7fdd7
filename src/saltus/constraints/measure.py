"""What constraints ask for: the acceleration of frame A, from velocities, placements and Baumgarte's gains.

Six rows are carried for every constraint, those that it does not have with weight 0: no kernel branches on a dimension.
"""

from __future__ import annotations

from saltus.constraints.convergence import largest_of
from saltus.kernel import kernel, ld, st
from saltus.model.joint_kernels import add_along, component
from saltus.spatial.algebra import Force, Motion, Vec3, act_inv, cross, inverse, turn_back
from saltus.spatial.lie import log6


@kernel
def load_rows(tree, c, array, o):
    """The entries of an array (nm,) that belong to constraint c, as six rows; `o` is zero."""
    rows = Motion(Vec3(o, o, o), Vec3(o, o, o))
    for r in range(tree.first_row[c], tree.end_row[c]):
        rows = add_along(rows, tree.row_axis[r], ld(array, r))
    return rows


@kernel
def store_rows(tree, c, rows, array):
    for r in range(tree.first_row[c], tree.end_row[c]):
        st(array, r, component(rows, tree.row_axis[r]))


@kernel
def largest_row(tree, c, rows, sizes):
    """The largest of |rows| that constraint c has, and of sizes before it."""
    for r in range(tree.first_row[c], tree.end_row[c]):
        sizes = largest_of(sizes, tree.row_axis[r], component(rows, tree.row_axis[r]))
    return sizes


@kernel
def weighted(tree, c, m, scale):
    """The force diag(weight) m, times a number."""
    a, w = m, tree.weight[c]
    return Force(
        Vec3(a.lin.x * w.lin.x * scale, a.lin.y * w.lin.y * scale, a.lin.z * w.lin.z * scale),
        Vec3(a.ang.x * w.ang.x * scale, a.ang.y * w.ang.y * scale, a.ang.z * w.ang.z * scale),
    )


@kernel
def contact_goal(tree, c, target, velocity, fall, X0):
    """The acceleration that a contact asks of its frame, gravity taken off: body a moves at `velocity`, `fall` is gravity in
    its frame and X0, which only gains on placements look at, its placement in the world."""
    P = tree.place_a[c]
    v = act_inv(P, velocity)
    goal = target - v * tree.kd[c]
    if tree.pulled[0]:
        goal = goal + separation(tree, c, inverse(X0 @ P) @ tree.place_b[c]) * tree.kp[c]
    lin = goal.lin - turn_back(P.R, fall)
    if tree.point[c]:
        lin = lin - cross(v.ang, v.lin)
    return Motion(lin, goal.ang)


@kernel
def separation(tree, c, X_ab):
    """How far B is from A, along the axes of A: six rows, by the placement of B in A."""
    if tree.point[c]:
        return Motion(X_ab.p, X_ab.p * 0.0)
    return log6(X_ab)
