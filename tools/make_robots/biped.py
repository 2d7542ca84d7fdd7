"""A biped of 32 kg in the manner of Cassie: bird's legs, each with two four-bars, closed by rods.

The Achilles rod runs from the thigh to a lever behind the tarsus, about parallel to the shin: it ties the tarsus to the
knee. The plantar rod runs along the tarsus from a crank, which a motor turns, to the heel. A rod turns about two axes at
its upper end and is connected as a point at its lower one, so that no constraint is redundant. With all angles at zero
the loops are closed.
"""

from __future__ import annotations

import math

import numpy as np

from tools.make_robots.parts import Joint, Robot, Triple, X, Y, Z, ball, bar, box, mirrored, motor, pillow
from tools.make_robots.poses import Pose, grounded, solve

# Points of the left leg in its plane, at zero angles, seen from the axis of the hip's pitch.
KNEE: Triple = (0.12, 0.0, -0.07)
TARSUS: Triple = (-0.18, 0.0, -0.41)
FOOT: Triple = (0.01, 0.0, -0.76)
ACHILLES: Triple = (0.0, 0.045, 0.0)  # the rod's upper end, on the thigh
LEVER: Triple = (-0.27, 0.045, -0.35)  # and its lower end, on the tarsus
CRANK: Triple = (-0.132, -0.045, -0.50)  # where the crank turns on the tarsus
CRANK_ARM: Triple = (-0.055, 0.0, 0.0)  # to the plantar rod; the heel is as far from the foot's axis
SOLE: Triple = (0.025, 0.0, -0.05)  # the middle of the sole, from the foot's axis

EFFORTS = {"hip_roll": 110.0, "hip_yaw": 110.0, "hip_pitch": 195.0, "knee": 195.0, "crank": 60.0}  # of the motors


def biped() -> tuple[Robot, Pose]:
    robot = Robot("biped", floating=True)
    trunk = [
        *pillow((0.18, 0.24, 0.30), (0.0, 0.0, 0.12), "cream"),
        bar((0.045, -0.045, 0.185), (0.045, 0.045, 0.185), 0.058, "graphite"),
        motor(0.058, 0.15, X, (0.0, 0.10, 0.0), "silver"),
        motor(0.058, 0.15, X, (0.0, -0.10, 0.0), "silver"),
    ]
    robot.add("pelvis", mass=11.5, solids=trunk, hidden=[box((0.18, 0.24, 0.30), (0.0, 0.0, 0.12))])
    for name, side in (("left", 1), ("right", -1)):
        _add_leg(robot, name, side)
    return robot, _standing(robot)


def _add_leg(robot: Robot, name: str, side: int) -> None:
    def driven(what: str, axis: Triple, lower: float, upper: float) -> Joint:
        return Joint(f"{name}_{what}", axis, lower, upper, EFFORTS[what], 12.0)

    roll = driven("hip_roll", X, *sorted((-0.3 * side, 0.4 * side)))
    yaw = driven("hip_yaw", Z, -0.4, 0.4)
    pitch = driven("hip_pitch", Y, -1.2, 1.0)
    knee = driven("knee", Y, -0.8, 1.2)
    crank = driven("crank", Y, -1.0, 1.0)
    tarsus = Joint(f"{name}_tarsus", Y, -1.4, 1.0, effort=0.0, velocity=12.0)
    foot = Joint(f"{name}_foot", Y, -1.0, 1.0, effort=0.0, velocity=12.0)

    hip = [motor(0.055, 0.10, Z, (0.0, 0.0, -0.05))]
    thigh = [
        motor(0.062, 0.10, Y),
        motor(0.066, 0.06, Y, color="teal"),
        bar((0.0, 0.0, 0.0), KNEE, 0.042, "cream", touches=True),
        motor(0.058, 0.10, Y, KNEE, "graphite"),
        bar((0.0, 0.0, 0.0), mirrored(ACHILLES, side), 0.012, "graphite"),
    ]
    shin = [
        bar((0.0, 0.0, 0.0), minus(TARSUS, KNEE), 0.028, "cream", touches=True),
        motor(0.032, 0.06, Y, minus(TARSUS, KNEE)),
    ]
    lever, crank_at = mirrored(minus(LEVER, TARSUS), side), mirrored(minus(CRANK, TARSUS), side)
    heel_side = (0.0, lever[1], 0.0)
    lower_leg = [
        bar((0.0, 0.0, 0.0), minus(FOOT, TARSUS), 0.021, "cream", touches=True),
        bar((0.0, 0.0, 0.0), heel_side, 0.012, "graphite"),
        bar(heel_side, lever, 0.012, "graphite"),
        motor(0.034, 0.05, Y, (crank_at[0], 0.0, crank_at[2]), "teal"),
    ]
    # The heel carries the plantar rod beside the tarsus.
    heel = (CRANK_ARM[0], crank_at[1], CRANK_ARM[2])
    toes = [
        box((0.18, 0.05, 0.02), (SOLE[0], 0.0, SOLE[2] + 0.01), "rubber", touches=True),
        box((0.07, 0.04, 0.04), (0.0, 0.0, -0.015), "graphite"),
        motor(0.022, 0.06, Y),
        bar((0.0, heel[1], 0.0), heel, 0.010, "graphite"),
        bar((0.0, 0.0, 0.0), (0.0, heel[1], 0.0), 0.010, "graphite"),
    ]
    robot.add(f"{name}_hip", "pelvis", mirrored((0.0, 0.10, 0.0), side), roll, 1.8, [motor(0.046, 0.19, X)])
    robot.add(f"{name}_hip_yaw_drive", f"{name}_hip", mirrored((0.0, 0.03, -0.04), side), yaw, 1.5, hip)
    robot.add(f"{name}_thigh", f"{name}_hip_yaw_drive", (0.0, 0.0, -0.10), pitch, 3.6, thigh)
    robot.add(f"{name}_shin", f"{name}_thigh", KNEE, knee, 1.1, shin)
    robot.add(f"{name}_lower_leg", f"{name}_shin", minus(TARSUS, KNEE), tarsus, 1.2, lower_leg)
    robot.add(f"{name}_toes", f"{name}_lower_leg", minus(FOOT, TARSUS), foot, 0.35, toes)
    legs = [f"{name}_{part}" for part in ("thigh", "shin", "lower_leg", "toes")]
    robot.apart += [(legs[0], legs[2]), (legs[0], legs[3]), (legs[1], legs[3])]
    robot.add(f"{name}_sole", f"{name}_toes", SOLE)

    along = minus(LEVER, ACHILLES)
    _add_rod(robot, f"{name}_achilles", f"{name}_thigh", mirrored(ACHILLES, side), along, 0.25, f"{name}_lower_leg")

    arm = [motor(0.022, 0.02, Y), bar((0.0, 0.0, 0.0), CRANK_ARM, 0.010, "orange")]
    robot.add(f"{name}_crank_arm", f"{name}_lower_leg", crank_at, crank, 0.15, arm)
    _add_rod(robot, f"{name}_plantar", f"{name}_crank_arm", CRANK_ARM, minus(FOOT, CRANK), 0.15, f"{name}_toes")


def _add_rod(robot: Robot, name: str, parent: str, at: Triple, along: Triple, mass: float, to: str) -> None:
    """A rod in the plane of the leg, that may also lean out of it; its end is tied to another link."""
    end = (along[0], 0.0, along[2])
    length = math.hypot(end[0], end[2])
    across = (-end[2] / length, 0.0, end[0] / length)  # in the plane, across the rod
    joints = (
        Joint(f"{name}_swing", Y, -1.5, 1.5, effort=0.0, velocity=20.0),
        Joint(f"{name}_swing_2", across, -0.5, 0.5, effort=0.0, velocity=20.0),
    )
    robot.add(f"{name}_rod", parent, at, joints, mass, [bar((0.0, 0.0, 0.0), end, 0.009, "orange"), ball(0.013, end)])
    robot.close(name, to, f"{name}_rod", end)


def minus(a: Triple, b: Triple) -> Triple:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def _standing(robot: Robot) -> Pose:
    """Both legs alike: loops closed, soles flat and below the centre of mass, at a given bend of the knees."""
    free = ("hip_pitch", "tarsus", "achilles_swing", "crank", "plantar_swing", "foot")
    bend = 0.08

    def angles(values: list[float]) -> dict[str, float]:
        one_leg = dict(zip(free, values, strict=True)) | {"knee": bend}
        return {f"{name}_{joint}": value for name in ("left", "right") for joint, value in one_leg.items()}

    def residual(values: np.ndarray) -> np.ndarray:
        places = robot.placements(angles(values.tolist()))
        gaps = [loop.gap(places)[[0, 2]] for name, loop in robot.loops.items() if name.startswith("left")]
        tilt = places["left_sole"][0, 2]
        offset = robot.center_of_mass(places)[0] - places["left_sole"][0, 3]
        return np.array([*np.concatenate(gaps), tilt, offset])

    return grounded(robot, angles(solve(residual, [0.0] * len(free))), "left_sole")
