"""What kernels see of a robot in a world: the tree, loops, what may touch, joints with limits and with dry friction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from saltus.collision.scene import Scene
from saltus.collision.tables import COLLISIONS
from saltus.constraints.constraint import Constraint
from saltus.constraints.tables import CONSTRAINTS, ConstrainedModel, named
from saltus.kernel import Layout, Part, Tables
from saltus.model.checks import ModelError
from saltus.model.joints import JointKind
from saltus.model.model import Model
from saltus.model.tree import CONFIGURATIONS, INERTIAS, TREE, extent
from saltus.simulation.contact_system import stride

SMALLEST_MU = 1e-12
"""Loops have no compliance; tables hold the inverse of it."""


class SimulatedModel(ConstrainedModel):
    """A model with its loops, and the scene that it moves in; `most` contacts hold at a time."""

    def __init__(self, model: Model, loops: Sequence[Constraint], scene: Scene, most: int) -> None:
        for loop in loops:
            if loop.dofs:
                raise ModelError(f"constraint {loop.name!r} has rows that users give, which a simulator cannot ask for")
        super().__init__(model, loops, SMALLEST_MU)
        self.scene, self.most = scene, most
        self.rubbing = np.flatnonzero(model.friction > 0).tolist()
        self.limited = [
            joint
            for joint in model.joints[1:]
            if joint.kind in (JointKind.REVOLUTE, JointKind.PRISMATIC)
            and np.isfinite([model.lower_position_limit[joint.iq], model.upper_position_limit[joint.iq]]).any()
        ]
        self.nheld = self.nm + len(self.rubbing) + len(self.limited)
        """Rows of loops, dry friction and limits."""


def measure(problem: SimulatedModel) -> dict[str, int]:
    rows = problem.nheld + 3 * problem.most
    built = rows + 3  # one contact more, before it takes rows of others
    return {
        "nrub": len(problem.rubbing), "nlimit": len(problem.limited), "nheld": problem.nheld,
        "nmost": problem.most, "nvp": problem.nv, "nsaid": 7, "nr": built, "nrv": built * problem.nv, "nrr": rows**2,
        "nrs": rows * stride(rows),  # type: ignore[no-untyped-call]
    }  # fmt: skip


def fill(problem: SimulatedModel, ints: Any, reals: Any) -> None:
    model = problem.model
    for n, k in enumerate(problem.rubbing):
        ints.rubbing[n], reals.dry[n] = k, model.friction[k]
    for n, joint in enumerate(problem.limited):
        ints.limited[n], ints.limited_q[n] = joint.iv, joint.iq
        lower, upper = model.lower_position_limit[joint.iq], model.upper_position_limit[joint.iq]
        reals.lower_limit[n], reals.upper_limit[n] = max(lower, -FAR), min(upper, FAR)


FAR = 1e9
"""Where limits are that do not exist [rad, m]."""

SIMULATION = Part(
    ("nrub", "nlimit", "nheld", "nmost", "nvp", "nsaid", "nr", "nrv", "nrr", "nrs"),
    Layout(nrub=named("rubbing"), nlimit=named("limited", "limited_q")),
    Layout(nrub=named("dry"), nlimit=named("lower_limit", "upper_limit")),
    measure,
    fill,
)
"""`rubbing`: degrees of freedom with dry friction `dry`; `limited`: those with limits, and where in q they are. `nheld`:
rows of loops, dry friction and limits; `nr`: as many as there are at a time."""

TABLES = Tables([TREE, CONSTRAINTS, COLLISIONS, SIMULATION], CONFIGURATIONS, extent, INERTIAS)
