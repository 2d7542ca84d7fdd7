"""When an iteration ends, and how: the same for all methods.

| quantity | what | ends the iteration where |
|---|---|---|
| `residual` | largest rows that are left of the constraints | at most `limit`: they are met |
| `change` | their largest changes by the last iteration | at most `limit`: they contradict each other, and stand still |
| `step` | largest last change of an acceleration, by their size | `remaining` is at most `settled`; or it shrinks no more |

`limit` is the tolerance, or what rounding leaves of accelerations as far as they move a constraint (`near`). Rows along
an axis and rows about one have limits of their own (`Rows`): what a robot of a millimetre rounds in rad/s^2 is a
thousand times what it may leave in m/s^2. An iteration starts from what accelerations leave of the equations of motion,
not from what they were meant to leave, so that its step is as large as the error of what was there before, whether that
came from the method or from rounding. What steps still to come would add up to, by how fast they shrink, is the estimate of
the error that a status relies on, reported as `imbalance`.
Where rounding keeps accelerations from settling, steps stop shrinking, and the status says so.
"""

from __future__ import annotations

from typing import NamedTuple

from saltus.constraints.report import Status
from saltus.kernel import Scalar, fabs, kernel, largest, less, lift, maximum, minimum, select, st

SHRINKING = 0.9
"""Steps that are not below so much of the one before are what rounding makes."""

SLOWEST = 0.95
"""Of the factors by which steps shrink, the largest that can be told from rounding."""

CONVERGED, LEAST_SQUARES, STOPPED, INACCURATE = (
    float(status) for status in (Status.CONVERGED, Status.LEAST_SQUARES, Status.STOPPED, Status.INACCURATE)
)
NOTHING = 1e-30
"""Added to limits that may be 0, as a residual may."""

BARELY = 1.001
"""A residual that is as large as its limit, since rounding hides what is below, is within it."""


class Rows(NamedTuple):
    """The largest of rows along an axis [m/s^2], and of those about one [rad/s^2]."""

    lin: Scalar
    ang: Scalar


class Sizes(NamedTuple):
    """The largest step and the largest acceleration of a joint, turns counted by how far they move the robot; and the same
    as far as they move a constraint."""

    step: Scalar
    all: Scalar
    near_step: Scalar
    near: Scalar


@kernel
def least_sizes(tree, o):
    """Nothing moves, and accelerations count as no smaller than that of gravity."""
    g = tree.gravity[0]
    fall = maximum(maximum(fabs(o + g.x), fabs(o + g.y)), fabs(o + g.z))
    return Sizes(o, fall, o, fall)


@kernel
def sized(tree, k, step, acceleration, s):
    """Sizes with those of degree of freedom k."""
    lever, reach = tree.lever[k], tree.reach[k]
    return Sizes(
        largest(s.step, step * reach),
        largest(s.all, acceleration * reach),
        largest(s.near_step, step * lever),
        largest(s.near, acceleration * lever),
    )


@kernel
def relative_step(s):
    return maximum(s.step / (s.all + NOTHING), s.near_step / (s.near + NOTHING))


@kernel
def no_rows(o):
    return Rows(o, o)


@kernel
def largest_of(rows, axis, x):
    """Rows with one more of them, that along or about an axis of its frame (0 to 5)."""
    if axis < 3:
        return Rows(largest(rows.lin, x), rows.ang)
    return Rows(rows.lin, largest(rows.ang, x))


@kernel
def rounded(tree, near):
    """What rounding leaves of rows, for accelerations of a size; 0 of a kind that no constraint has."""
    return Rows(near * tree.along[0], near * tree.about[0])


@kernel
def limit(tree, near):
    """What may be left of rows, for accelerations of a size."""
    return tolerated(tree, rounded(tree, near))


@kernel
def tolerated(tree, left):
    """What may be left of rows, of which rounding leaves so much."""
    tolerance = lift(tree.tolerance[0], left.lin)
    return Rows(maximum(tolerance, left.lin), maximum(tolerance, left.ang))


@kernel
def beyond(rows, most):
    """Positive if rows of either kind are larger than they may be."""
    return maximum(rows.lin - most.lin, rows.ang - most.ang)


@kernel
def larger(rows, others):
    return Rows(maximum(rows.lin, others.lin), maximum(rows.ang, others.ang))


@kernel
def moved_beyond(noise, rows, moved):
    """How much rows changed, but for so much of the largest, which the rounding of a dense system makes of all."""
    o, noise = noise * 0.0, noise * maximum(rows.lin, rows.ang)
    return Rows(maximum(o, moved.lin - noise), maximum(o, moved.ang - noise))


@kernel
def select_rows(condition, rows, others):
    return Rows(select(condition, rows.lin, others.lin), select(condition, rows.ang, others.ang))


@kernel
def remaining(tree, step, before):
    """The error that a step may have left, `before` being the one before: if steps go on shrinking by the same factor r, all
    that are to come add up to r / (1 - r) of it; and it counts as no smaller than a share of the step, `left`."""
    factor = minimum(step / (before + NOTHING), lift(SLOWEST, step))
    return step * maximum(factor / (1.0 - factor), lift(tree.left[0], step))


@kernel
def goes_on(tree, residual, change, step, before, most):
    """Whether another iteration is worth it; `before` is the step before the last, `most` the limit."""
    missed = minimum(beyond(residual, most), beyond(change, most))
    unsettled = minimum(remaining(tree, step, before) - tree.settled[0], SHRINKING * before - step)
    return less(0.0, maximum(missed, unsettled))


@kernel
def conclude(tree, count, residual, change, step, allowed, report):
    """Write the report: iterations, residual, change, imbalance and status. NaN never looks like a success."""
    o, most = count * 0.0, Rows(allowed.lin * BARELY + NOTHING, allowed.ang * BARELY + NOTHING)
    missed, moved = beyond(residual, most), beyond(change, most)
    met, still = less(missed, o), less(moved + (missed - missed), o)
    best = select(met, o + CONVERGED, select(still, o + LEAST_SQUARES, o + STOPPED))
    rough = select(less(o, minimum(missed, moved)), o + STOPPED, o + INACCURATE)
    st(report, 0, count)
    st(report, 1, maximum(residual.lin, residual.ang))
    st(report, 2, maximum(change.lin, change.ang))
    st(report, 3, step)
    st(report, 4, select(less(step, tree.settled[0] + NOTHING), best, rough))
