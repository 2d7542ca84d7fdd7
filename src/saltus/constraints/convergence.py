"""When an iteration ends, and how: the same for all methods.

| quantity | what | ends the iteration where |
|---|---|---|
| `residual` | largest row that is left of the constraints | at most `limit`: they are met |
| `change` | its largest change by the last iteration | at most `limit`: they contradict each other, and stand still |
| `step` | largest last change of an acceleration, by their size | `remaining` is at most `settled`; or it shrinks no more |

`limit` is the tolerance, or what rounding leaves of accelerations as far as they move a constraint (`near`). An
iteration starts from what accelerations leave of the equations of motion, not from what they were meant to leave, so that
its step is as large as the error of what was there before, whether that came from the method or from rounding: it is the
estimate of the error that a status relies on, reported as `imbalance`. Where rounding keeps accelerations from settling,
steps stop shrinking, and the status says so.
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
def limit(tree, near):
    """What may be left of a constraint, for accelerations of a size."""
    return maximum(lift(tree.tolerance[0], near), near * tree.rounding[0])


@kernel
def remaining(step, before):
    """The error that a step may have left, `before` being the one before: if steps go on shrinking by the same factor r, all
    that are to come add up to r / (1 - r) of it; and it counts as no smaller than the step."""
    factor = minimum(step / (before + NOTHING), lift(SLOWEST, step))
    return step * maximum(factor / (1.0 - factor), lift(1.0, step))


@kernel
def goes_on(tree, residual, change, step, before, near):
    """Whether another iteration is worth it; `before` is the step before the last."""
    missed = minimum(residual, change) - limit(tree, near)
    unsettled = minimum(remaining(step, before) - tree.settled[0], SHRINKING * before - step)
    return less(0.0, maximum(missed, unsettled))


@kernel
def conclude(tree, count, residual, change, step, allowed, report):
    """Write the report: iterations, residual, change, imbalance and status. NaN never looks like a success."""
    o, most = count * 0.0, allowed * BARELY + NOTHING
    met, still = less(residual, most), less(change + (residual - residual), most)
    best = select(met, o + CONVERGED, select(still, o + LEAST_SQUARES, o + STOPPED))
    rough = select(less(most, minimum(residual, change)), o + STOPPED, o + INACCURATE)
    st(report, 0, count)
    st(report, 1, residual)
    st(report, 2, change)
    st(report, 3, step)
    st(report, 4, select(less(step, tree.settled[0] + NOTHING), best, rough))
