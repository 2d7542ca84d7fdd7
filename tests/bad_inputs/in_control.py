"""Wrong tasks, controllers, quadratic programs, references of inverse kinematics."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import saltus as sl
from tests.bad_inputs.case import Case

TASKS = [sl.CenterOfMassTask(weight=10), sl.PostureTask(weight=0.1)]
MASS = {"Q": np.eye(3), "c": np.ones(3), "A": np.zeros((0, 3)), "b": np.zeros(0)}


@cache
def robot() -> sl.Model:
    return sl.load_robot("quadruped")


@cache
def standing() -> sl.OperationalSpaceControl:
    return controller()


def controller(contacts: Any = None, *constraints: Any, **options: Any) -> sl.OperationalSpaceControl:
    feet = sl.robot_frames("quadruped").feet if contacts is None else contacts
    return sl.OperationalSpaceControl(robot(), TASKS, feet, constraints, **options)


def command(**options: Any) -> sl.Command:
    return standing()(robot().reference_configurations["standing"], np.zeros(robot().nv), **options)


def reached(references: Any = None, **options: Any) -> sl.Reached:
    arm = sl.load_robot("arm")
    tasks = sl.TaskSet(arm, [sl.FrameTask("tool")])
    given = tasks.references(arm.neutral()) if references is None else references
    return sl.inverse_kinematics(arm, tasks, given, **options)


def followed(references: Any, dt: float = 0.1) -> sl.KinematicTrajectory:
    arm = sl.load_robot("arm")
    return sl.kinematic_trajectory(arm, [sl.FrameTask("tool")], references, arm.neutral(), dt=dt)


MOTORS = r"^OperationalSpaceControl: motors are .*{}, expected degrees of freedom, each once, from 0 to 17"
CONTACT = r"^OperationalSpaceControl: a contact is "

IN_CONTROL = {
    # Motors
    "negative motor": Case(lambda: controller(motors=[-1]), MOTORS.format("with -1"), sl.ModelError),
    "negative motors": Case(lambda: controller(motors=range(-12, 0)), MOTORS.format("with -12"), sl.ModelError),
    "motor too high": Case(lambda: controller(motors=[99]), MOTORS.format("with 99"), sl.ModelError),
    "motor and a half": Case(lambda: controller(motors=[6.5]), MOTORS.format(r"\[6.5\]"), sl.ModelError),
    "motor twice": Case(lambda: controller(motors=[6, *range(6, 18)]), MOTORS.format("with 6"), sl.ModelError),
    "one motor": Case(lambda: controller(motors=6), MOTORS.format("6"), sl.ModelError),
    # Contacts
    "no contact": Case(lambda: controller([()]), CONTACT + r"\(\), expected a frame", sl.ModelError),
    "contact of four parts": Case(
        lambda: controller([("LF_FOOT", None, None, 3)]), CONTACT + ".* expected a frame, or", sl.ModelError
    ),
    "contact nowhere": Case(
        lambda: controller([("LF_FOOT", [np.nan, 0, 0])]), CONTACT + ".*: its place contains NaN", sl.ModelError
    ),
    "contact of one coordinate": Case(
        lambda: controller([("LF_FOOT", [0.0])]), CONTACT + r".*: its place has shape \(1,\), exp", sl.ModelError
    ),
    "endless normal": Case(
        lambda: controller([("LF_FOOT", None, [0, 0, np.inf])]),
        CONTACT + ".* its normal contains an inf",
        sl.ModelError,
    ),
    "no normal": Case(
        lambda: controller([("LF_FOOT", None, [0, 0, 0])]), CONTACT + ".* expected a direction, not zero", sl.ModelError
    ),
    "contacts as text": Case(lambda: controller("LF_FOOT"), "contacts are 'LF_FOOT', expected a list", sl.ModelError),
    "constraint as text": Case(lambda: controller(None, "x"), "a constraint is 'x', expected a list of", TypeError),
    "friction of two": Case(
        lambda: controller(friction=[0.1, 0.2]), r"friction has shape \(2,\), expected \(4,\)", sl.ModelError
    ),
    "weight as text": Case(lambda: controller(slack_weight="a"), "slack_weight is 'a', expected a number", TypeError),
    "endless weight": Case(lambda: controller(slack_weight=np.inf), "slack_weight is inf, expect", sl.ModelError),
    "no braking": Case(lambda: controller(braking=0.0), "braking is 0.0, expected a finite number, m", sl.ModelError),
    # Calls of controllers
    "load below 0": Case(lambda: command(active=[1.0, 1, 1, -1]), "active has the entry -1, expected 0 to 1"),
    "load above 1": Case(lambda: command(active=[1.0, 1, 1, 1.5]), "active has the entry 1.5, expected 0 to 1"),
    "negative friction": Case(lambda: command(friction=[-1.0] * 4), "friction has the entry -1, expected 0 or more"),
    "half an iteration": Case(
        lambda: command(max_iterations=2.5), "max_iterations is 2.5, expected a whole number", TypeError
    ),
    "no time": Case(lambda: command(max_time=0.0), r"max_time is 0.0, expected a finite number, more than 0 \[s\]"),
    "no duration": Case(lambda: sl.ramped([0.0], [1.0], 0.01, 0.0), "^ramped: duration is 0.0, expected a finite"),
    "duration runs back": Case(lambda: sl.ramped([0.0], [1.0], 0.01, -1.0), "^ramped: duration is -1.0, expected"),
    "posture of nothing": Case(
        lambda: sl.TaskSet(robot(), [sl.PostureTask(joints=("universe",))]),
        "task 'posture': its joints have no degrees of freedom, expected one at least",
        sl.ModelError,
    ),
    # Inverse kinematics
    "no rotation": Case(
        lambda: reached(np.zeros(24)), "^inverse_kinematics: references of 'tool': a rotation is not one", sl.ModelError
    ),
    "restart and a half": Case(lambda: reached(restarts=1.5), "restarts is 1.5, expected a whole number", TypeError),
    "start as text": Case(lambda: reached(q0="here"), "^q0 is not an array of numbers, but of <U4", TypeError),
    "no ticks": Case(lambda: followed(np.zeros((0, 24))), r"have shape \(0, 24\), expected \(..., T, 24\), T > 0"),
    "no rotation on the way": Case(
        lambda: followed(np.zeros((3, 24))), "^kinematic_trajectory: references of 'tool': a rot", sl.ModelError
    ),
    # Quadratic programs
    "cones of one row": Case(lambda: sl.fccqp(**MASS, cones=(0, 1, 2)), r"cones are \(0, 1, 2\), expected \(nc, 3\)"),
    "ragged cones": Case(lambda: sl.fccqp(**MASS, cones=[[0, 1], [2]]), "^fccqp: cones is not an array", TypeError),
    "cones as text": Case(lambda: sl.fccqp(**MASS, cones=(("a", 1, 2),)), "cones is not an array of num", TypeError),
    "endless tolerance": Case(lambda: sl.fccqp(**MASS, tolerance=np.inf), "tolerance is inf, expected a finite"),
    "not symmetric": Case(
        lambda: sl.fccqp(**MASS | {"Q": np.triu(np.ones((3, 3)))}),
        r"^fccqp: Q is not symmetric: Q\[0, 1\] is 1.0, Q\[1, 0\] is 0.0, expected",
    ),
}
