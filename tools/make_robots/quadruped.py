"""A quadruped of 30 kg with twelve joints, of the build of an ANYmal: knees point inwards, feet are rubber balls."""

from __future__ import annotations

import math
from itertools import combinations

from tools.make_robots.parts import Joint, Robot, X, Y, Z, ball, bar, box, mirrored, motor, pillow
from tools.make_robots.poses import Pose, grounded

THIGH = SHANK = 0.29
FOOT_RADIUS = 0.028
LEG_PARTS = (("THIGH", "THIGH"), ("THIGH", "SHANK"), ("SHANK", "THIGH"))
HIP_ANGLE = 0.62  # of the thighs when it stands; with twice as much at the knee the feet are under the hips


def quadruped() -> tuple[Robot, Pose]:
    robot = Robot("quadruped", floating=True)
    trunk = [
        *pillow((0.60, 0.23, 0.15), color="cream"),
        *pillow((0.40, 0.16, 0.06), (-0.02, 0.0, 0.085), "graphite"),
        bar((0.28, -0.05, 0.0), (0.28, 0.05, 0.0), 0.052, "teal"),
        bar((-0.28, -0.05, 0.0), (-0.28, 0.05, 0.0), 0.052, "graphite"),
        motor(0.035, 0.05, Z, (0.13, 0.0, 0.135), "teal"),
    ]
    robot.add("base", mass=16.4, solids=trunk, hidden=[box((0.60, 0.23, 0.15))])
    angles: dict[str, float] = {}
    for leg, front, side in (("LF", 1, 1), ("RF", 1, -1), ("LH", -1, 1), ("RH", -1, -1)):
        angles |= _add_leg(robot, leg, front, side)
    robot.apart += _apart()
    return robot, grounded(robot, angles, "LF_FOOT")


def _apart() -> list[tuple[str, str]]:
    """Hips, and legs across a diagonal, are too far from each other."""
    legs = ("LF", "RF", "LH", "RH")
    pairs = [(f"{leg}_HIP", f"{leg}_SHANK") for leg in legs]
    for one, other in combinations(legs, 2):
        across = {one, other} in ({"LF", "RH"}, {"RF", "LH"})
        beside = one[1] == other[1]  # both in front, or both behind
        pairs += [(f"{one}_HIP", f"{other}_HIP"), (f"{one}_HIP", f"{other}_THIGH"), (f"{one}_THIGH", f"{other}_HIP")]
        if across or beside:
            pairs += [(f"{one}_HIP", f"{other}_SHANK"), (f"{one}_SHANK", f"{other}_HIP")]
        if across:
            pairs += [(f"{one}_{a}", f"{other}_{b}") for a, b in LEG_PARTS]
    return pairs


def _add_leg(robot: Robot, leg: str, front: int, side: int) -> dict[str, float]:
    """Adds a leg; returns its angles when it stands."""
    haa = Joint(f"{leg}_HAA", X, -0.72, 0.72, effort=80.0, velocity=12.0)
    hfe = Joint(f"{leg}_HFE", Y, -2.4, 2.4, effort=80.0, velocity=12.0)
    kfe = Joint(f"{leg}_KFE", Y, -2.6, 2.6, effort=100.0, velocity=12.0)
    outwards = mirrored((0.0, 0.10, 0.0), side)
    hip = [
        motor(0.05, 0.11, X, (0.0, 0.0, 0.0), "graphite"),
        motor(0.052, 0.07, Y, mirrored((0.0, 0.055, 0.0), side), "teal"),
    ]
    drives = [bar((0.0, 0.0, 0.0), mirrored((0.0, 0.055, 0.0), side), 0.052)]
    knee = (0.0, 0.0, -THIGH)
    thigh = [
        motor(0.056, 0.07, Y, color="graphite"),
        bar((0.0, 0.0, -0.03), knee, 0.030, "cream", touches=True),
        motor(0.04, 0.07, Y, knee),
    ]
    sole = (0.0, 0.0, -SHANK)
    shank = [bar((0.0, 0.0, -0.02), (0.0, 0.0, -SHANK), 0.016, "silver", touches=True)]
    shank += [ball(FOOT_RADIUS, sole, "rubber", touches=True)]
    robot.add(f"{leg}_HIP", "base", (front * 0.30, side * 0.12, 0.0), haa, 1.3, hip, hidden=drives)
    robot.add(f"{leg}_THIGH", f"{leg}_HIP", outwards, hfe, 1.7, thigh)
    robot.add(f"{leg}_SHANK", f"{leg}_THIGH", knee, kfe, 0.4, shank)
    # The point of the ball that is lowest when the robot stands, its axes along the world's then.
    tilt = front * HIP_ANGLE
    contact = (-FOOT_RADIUS * math.sin(tilt), 0.0, -SHANK - FOOT_RADIUS * math.cos(tilt))
    robot.add(f"{leg}_FOOT", f"{leg}_SHANK", contact, rpy=(0.0, tilt, 0.0))
    return {hfe.name: front * HIP_ANGLE, kfe.name: -2.0 * front * HIP_ANGLE}
