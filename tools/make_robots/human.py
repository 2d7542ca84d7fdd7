"""A human of 75 kg and 1.75 m in the sagittal plane: eight degrees of freedom, as in bending and lifting motions.

Three for the pelvis (along x and z, and its pitch), then lumbar spine, hip, knee, ankle and shoulder: limbs move in
pairs and are one body each. Shares of the mass and lengths follow de Leva (1996), rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tools.make_robots.parts import Joint, Robot, Solid, X, Y, Z, bar, box, pillow
from tools.make_robots.poses import Pose, solve

THIGH, SHANK, ANKLE = 0.42, 0.43, 0.08
ARM = 0.58  # from shoulder to the middle of the hand
HEEL, TOE = -0.06, 0.19  # of the sole, from the ankle
HIP_WIDTH, SHOULDER_WIDTH = 0.09, 0.19


def planar_human() -> tuple[Robot, Pose]:
    robot = Robot("planar_human")
    free = {"effort": 0.0, "velocity": 20.0}
    root = (
        Joint("root_x", X, -10.0, 10.0, kind="prismatic", **free),
        Joint("root_z", Z, -1.0, 5.0, kind="prismatic", **free),
        Joint("root_pitch", Y, -6.3, 6.3, **free),
    )
    robot.add("ground")
    pelvis = [bar((0.0, -0.075, 0.03), (0.0, 0.075, 0.03), 0.092, "denim", touches=True)]
    robot.add("pelvis", "ground", joint=root, mass=8.4, solids=pelvis)

    trunk = [
        *pillow((0.18, 0.27, 0.30), (0.0, 0.0, 0.10), "teal"),
        *pillow((0.20, 0.33, 0.27), (0.0, 0.0, 0.26), "teal"),
        bar((0.0, 0.0, 0.36), (0.015, 0.0, 0.51), 0.052, "skin"),
        bar((0.02, 0.0, 0.55), (0.02, 0.0, 0.605), 0.09, "skin", touches=True),
    ]
    arms = _pair(lambda y: bar((0.0, y, -0.03), (0.0, y, -0.15), 0.052, "teal"), SHOULDER_WIDTH)  # a sleeve
    arms += _pair(lambda y: bar((0.0, y, -0.10), (0.0, y, -0.50), 0.038, "skin", touches=True), SHOULDER_WIDTH)
    arms += _pair(
        lambda y: bar((0.0, y, 0.03 - ARM), (0.0, y, -0.03 - ARM), 0.043, "skin", touches=True), SHOULDER_WIDTH
    )
    thighs = _pair(lambda y: bar((0.0, y, 0.0), (0.0, y, -THIGH), 0.075, "denim", touches=True), HIP_WIDTH)
    shanks = _pair(lambda y: bar((0.0, y, 0.0), (0.0, y, -SHANK), 0.052, "denim", touches=True), HIP_WIDTH)
    middle = (HEEL + TOE) / 2.0
    feet = _pair(lambda y: box((TOE - HEEL, 0.09, 0.03), (middle, y, 0.015 - ANKLE), "rubber", touches=True), HIP_WIDTH)
    feet += _pair(lambda y: bar((0.0, y, 0.048 - ANKLE), (0.13, y, 0.042 - ANKLE), 0.04, "graphite"), HIP_WIDTH)

    # Both legs, both arms: the efforts are those of two.
    robot.add(
        "trunk",
        "pelvis",
        (0.0, 0.0, 0.12),
        Joint("lumbar", Y, -0.5, 1.4, 450.0, 10.0),
        32.6,
        trunk,
        hidden=[box((0.20, 0.32, 0.44), (0.0, 0.0, 0.17))],
    )
    robot.add("arms", "trunk", (0.0, 0.0, 0.36), Joint("shoulder", Y, -3.1, 1.0, 180.0, 15.0), 7.4, arms)
    robot.add("thighs", "pelvis", (0.0, 0.0, 0.0), Joint("hip", Y, -2.3, 0.4, 500.0, 15.0), 17.6, thighs)
    robot.add("shanks", "thighs", (0.0, 0.0, -THIGH), Joint("knee", Y, 0.0, 2.5, 480.0, 15.0), 6.8, shanks)
    robot.add("feet", "shanks", (0.0, 0.0, -SHANK), Joint("ankle", Y, -0.9, 0.7, 320.0, 15.0), 2.2, feet)
    robot.apart += [("arms", link) for link in ("pelvis", "thighs", "shanks", "feet")] + [("trunk", "thighs")]
    robot.add("toe", "feet", (TOE, 0.0, -ANKLE))
    robot.add("heel", "feet", (HEEL, 0.0, -ANKLE))
    robot.add("hand", "arms", (0.0, 0.0, -ARM))
    return robot, _standing(robot)


def _pair(solid: Callable[[float], Solid], width: float) -> list[Solid]:
    return [solid(width), solid(-width)]


def _standing(robot: Robot) -> Pose:
    """Upright, the knees a little bent: soles on the ground, the centre of mass over their middle."""
    free = ("root_x", "root_z", "hip", "ankle")
    rest = {"knee": 0.15, "shoulder": -0.05}

    def residual(values: np.ndarray) -> np.ndarray:
        places = robot.placements(rest | dict(zip(free, values.tolist(), strict=True)))
        heel, toe = places["heel"][:3, 3], places["toe"][:3, 3]
        middle = (heel[0] + toe[0]) / 2.0
        return np.array([middle, heel[2], toe[2], robot.center_of_mass(places)[0] - middle])

    values = solve(residual, [0.0, 0.9, -0.1, -0.1])
    return Pose(rest | dict(zip(free, values, strict=True)))
