"""What is needed to find a motion: a problem of optimal control, from where to start, and a solver."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array
from saltus.ocp.fddp import FDDP
from saltus.ocp.problem import OCPResult
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.solver import Solver


class Exercise(NamedTuple):
    """A motion to be found.

    >>> import saltus as sl
    >>> exercise = sl.motions.MOTIONS["cartpole"]()
    >>> exercise.title, str(exercise.solve().status)
    ('cartpole swings up', 'solved')
    """

    title: str
    problem: ShootingProblem
    xs: Array
    """(T + 1, nx) where to start"""
    us: Array
    """(T, nu)"""
    solver: type[Solver]

    def solve(self, **options: Any) -> OCPResult:
        """From there, by that solver; `options` are those of its `solve`."""
        return self.solver(self.problem).solve(self.xs, self.us, **options)


def from_rest(title: str, problem: ShootingProblem, solver: type[Solver] = FDDP) -> Exercise:
    """Starts with the robot held still where it is."""
    xs = np.tile(problem.x0, (problem.T + 1, 1))
    return Exercise(title, problem, xs, problem.quasi_static(xs), solver)
