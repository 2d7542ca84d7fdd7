"""What kernels see of a controller, beside the robot's tree, its bilateral constraints and the tasks: motors, contacts that
only push, limits of joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from saltus.arrays import Array
from saltus.constraints.constraint import Constraint
from saltus.constraints.tables import CONSTRAINTS, ConstrainedModel
from saltus.control.interior_program import program_sizes
from saltus.control.task_rows import TASK_TABLES
from saltus.control.task_tables import TASKS, TaskSet
from saltus.kernel import Layout, Part, Tables
from saltus.model.model import Model
from saltus.model.tree import canonical_rotation
from saltus.spatial.algebra import Mat3, Vec3

LOOSE = 1e-9
"""Added to the Delassus matrix of bilateral constraints, as a share of its typical entry: they may depend on each other."""


class ContactPoint(NamedTuple):
    """A point of a body that can push against the ground."""

    frame: int
    place: Array  # (3,) in the frame [m]
    axes: Array  # (3, 3): columns are two tangents and the normal, in the world


class Settings(NamedTuple):
    """What a controller weighs, and how it keeps limits; see `OperationalSpaceControl`."""

    slack_weight: float
    force_weight: float
    torque_weight: float
    contact_damping: float
    horizon: float
    braking: float


class ControlledModel(ConstrainedModel):
    """A robot with tasks, motors and contacts, as algorithms take one."""

    def __init__(
        self,
        model: Model,
        tasks: TaskSet,
        constraints: Sequence[Constraint],
        motors: Sequence[int],
        points: Sequence[ContactPoint],
        settings: Settings,
        limited: Sequence[int],
        typical: float,
    ) -> None:
        super().__init__(model, constraints, LOOSE * typical, typical=typical)
        self.task_set, self.motors, self.points = tasks, tuple(motors), tuple(points)
        self.settings, self.limited = settings, tuple(limited)


def measure_control(problem: ControlledModel) -> dict[str, int]:
    tasks, nv = problem.task_set, problem.model.nv
    motors, points, limited = len(problem.motors), len(problem.points), len(problem.limited)
    n, lower = motors + 3 * points, tasks.sizes["ntr"] + 3 * points if len(tasks.levels) > 1 else 0
    row, rows, width = -(-n // 4) * 4 + 4, tasks.sizes["ntr"] + 3 * points, -(-problem.nm // 4) * 4
    return {
        "mm": motors, "mc": points, "ml": limited, "mz": 3 * points, "mn": n, "mh": width,
        "mvr": nv * row, "mbr": rows * row, "mhv": nv * width, "mhm": problem.nm * width, "mhr": problem.nm * row,
        "mjv": 3 * points * nv,
        **program_sizes(n, limited + lower, points),
    }  # fmt: skip


def fill_control(problem: ControlledModel, ints: Any, reals: Any) -> None:
    model, settings = problem.model, problem.settings
    for m, k in enumerate(problem.motors):
        ints.motor[m], reals.most_torque[m] = k, min(model.effort_limit[k], 1e30)
    for c, point in enumerate(problem.points):
        frame = model.frames[point.frame]
        joint = model.joints[frame.joint]
        turned = canonical_rotation(joint.kind, joint.axis)
        place = frame.placement[:3, :3] @ point.place + frame.placement[:3, 3]
        ints.point_body[c] = frame.joint
        reals.point_place[c], reals.point_axes[c] = Vec3(*(turned.T @ place)), Mat3(*point.axes.ravel())
    for k, dof in enumerate(problem.limited):
        joint = next(joint for joint in model.joints if joint.iv == dof and joint.nv == 1)
        ints.limited[k], ints.limited_at[k] = dof, joint.iq
        reals.low[k] = max(model.lower_position_limit[joint.iq], -1e30)
        reals.high[k] = min(model.upper_position_limit[joint.iq], 1e30)
        reals.fastest[k] = min(model.velocity_limit[dof], 1e30)
    for name, value in settings._asdict().items():
        getattr(reals, name)[0] = value
    reals.weight_of_all[0] = model.total_mass * float(np.linalg.norm(model.gravity))


def named(*names: str) -> dict[str, type | None]:
    return dict.fromkeys(names)


CONTROL = Part(
    (
        "mm",
        "mc",
        "ml",
        "mz",
        "mn",
        "mh",
        "mvr",
        "mbr",
        "mhv",
        "mhm",
        "mhr",
        "mjv",
        "npk",
        "nps",
        "nph",
        "npg",
        "npv",
        "npp",
        "npc",
    ),
    Layout(mm=named("motor"), mc=named("point_body"), ml=named("limited", "limited_at")),
    Layout(
        one=named(*Settings._fields, "weight_of_all"),
        mm=named("most_torque"),
        mc={"point_place": Vec3, "point_axes": Mat3},
        ml=named("low", "high", "fastest"),
    ),
    measure_control,
    fill_control,
)
"""Numbers of motors, contact points, limited joints; sizes of matrices, and of the program that is solved.

`motor`: their degrees of freedom; `most_torque`: of each. `point_body`, `point_place`: of contact points, in the body's
canonical frame; `point_axes`: tangents and normal as columns, in the world. `limited`, `limited_at`: the degree of freedom
and the coordinate of joints with limits `low`, `high` and `fastest`."""

CONTROL_TABLES = Tables(
    [*TASK_TABLES.parts[:1], CONSTRAINTS, TASKS, CONTROL],
    TASK_TABLES.configurations,
    TASK_TABLES.extent,
    TASK_TABLES.varied,
)
