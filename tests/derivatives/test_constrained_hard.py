"""Derivatives of constrained dynamics where constraints are redundant or poses singular, against dual numbers, to 1e-7.

Accelerations are unique wherever constraints can be met, so their derivatives are compared always. Forces are not: they are
compared one by one where rows are redundant in the same way at every configuration (contacts held twice, points of one body)
and the robot is at rest, and else by the torques J^T df that they make together.
Worst errors: 2e-9.
"""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl
from tests.constraints import truth
from tests.derivatives.constrained import (
    OF_ACCELERATIONS,
    allowed,
    compare_with_dual_numbers,
    converged,
    misses,
    misses_in_torques,
    on_dual_numbers,
    states,
)

pytest.importorskip("pinocchio")  # along with which the robot comes

from benchmarks.contacts import Case

TOLERANCE, UR5 = 1e-7, Case("ur5", "H6")


def soles(*dims: int) -> tuple[sl.Model, list[sl.Constraint]]:
    """A humanoid's left sole, held as often as there are dimensions."""
    model, (left, _) = sl.load_robot("humanoid"), sl.robot_frames("humanoid").feet
    return model, [sl.Contact(model, left, dim) for dim in dims]


def surface() -> tuple[sl.Model, list[sl.Constraint]]:
    """Twelve rows, of which six are redundant."""
    model, (left, right) = sl.load_robot("humanoid"), sl.robot_frames("humanoid").feet
    return model, [*sl.SurfaceContact(model, left, (0.2, 0.1)), sl.Contact(model, right, 6)]


def feet_twice() -> tuple[sl.Model, list[sl.Constraint]]:
    model, feet = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet
    return model, [sl.Contact(model, foot) for foot in (*feet, *feet)]


CONSTANT = {
    "a sole six times": soles(6, 6, 6, 6, 6, 6),
    "a sole as point and surface": soles(3, 6),
    "corners of a sole": surface(),
    "four feet twice": feet_twice(),
}


@pytest.mark.parametrize("name", CONSTANT)
def test_redundant_contacts(name: str) -> None:
    model, held = CONSTANT[name]
    q, v, tau = states(model, 6, 3)
    names = [*OF_ACCELERATIONS, "df_dq", "df_dtau"]
    compare_with_dual_numbers(converged(model, held), (q, 0.0 * v, tau), names, TOLERANCE)
    moving = q, allowed(model, held, q, v), tau
    D, right = converged(model, held).derivatives(*moving), on_dual_numbers(converged(model, held), *moving)
    found = misses(D, right, OF_ACCELERATIONS, TOLERANCE) + misses_in_torques(model, held, q, D, right, TOLERANCE)
    assert not found, "\n".join(["", *found])


def test_contacts_held_twice_are_held_once() -> None:
    """The same accelerations as of one contact, and forces that add up to its force: no dual numbers here."""
    model, held = soles(6, 6, 6)
    inputs = states(model, 6, 3)
    many, once = converged(model, held).derivatives(*inputs), converged(model, held[:1]).derivatives(*inputs)
    for name in ("da_dq", "da_dv", "da_dtau"):
        assert not misses(many, {name: getattr(once, name)}, [name], TOLERANCE)
    for name in ("df_dq", "df_dv", "df_dtau"):
        total = getattr(many, name).reshape(6, 3, 6, model.nv).sum(1)
        assert not misses(once, {name: total}, [name], TOLERANCE)


def test_all_feet_welded() -> None:
    """24 rows hold all 18 degrees of freedom at rest: nothing accelerates, whatever changes."""
    model, feet = sl.load_robot("quadruped"), sl.robot_frames("quadruped").feet
    held = [sl.Contact(model, foot, 6) for foot in feet]
    q, v, tau = states(model, 6, 4)
    dynamics = converged(model, held)
    D, right = dynamics.derivatives(q, 0.0 * v, tau), on_dual_numbers(dynamics, q, 0.0 * v, tau)
    free = sl.aba_derivatives(model, q, 0.0 * v, tau)
    for name in ("da_dq", "da_dv", "da_dtau"):
        assert np.abs(getattr(D, name)).max() <= TOLERANCE * np.abs(getattr(free, name)).max(initial=1.0)
    assert not misses(D, right, ["da_dtarget"], TOLERANCE)
    assert not misses_in_torques(model, held, q, D, right, TOLERANCE)


def straight(robot: str, *frames: str) -> tuple[sl.Model, list[sl.Constraint]]:
    model = sl.load_robot(robot)
    return model, [sl.Contact(model, frame, 6) for frame in frames]


FEET, HANDS = sl.robot_frames("humanoid").feet, sl.robot_frames("humanoid").hands
SINGULAR = {
    "stretched knees": straight("humanoid", *FEET),
    "stretched arms and knees": straight("humanoid", *FEET, *HANDS),
    "an arm stretched out": straight("arm", "tool"),
    "the wrist of UR5": (UR5.model, UR5.constraints),
}
"""At neutral."""


@pytest.mark.parametrize("name", SINGULAR)
def test_singular_poses(name: str) -> None:
    """At rest, where the constraints can be met: all accelerations, and the torques of forces, which along stretched limbs
    have no unique size."""
    model, held = SINGULAR[name]
    _, v, tau = states(model, 4, 5)
    q = np.tile(model.neutral(), (4, 1))
    _, _, eigenvalues = truth.delassus_inverse(sl.crba(model, q), truth.jacobian(model, held, q))
    assert eigenvalues[0, 0] < 1e-3 * eigenvalues[0, -1]
    dynamics = converged(model, held)
    D, right = dynamics.derivatives(q, 0.0 * v, tau), on_dual_numbers(dynamics, q, 0.0 * v, tau)
    found = misses(D, right, OF_ACCELERATIONS, TOLERANCE) + misses_in_torques(model, held, q, D, right, TOLERANCE)
    assert not found, "\n".join(["", *found])
