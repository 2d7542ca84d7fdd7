"""A humanoid of 90 kg and 1.7 m: legs of 6 joints, waist of 3, arms of 7, neck of 2; with grippers or with hands."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tools.make_robots.hand import add_hand
from tools.make_robots.parts import Joint, Robot, X, Y, Z, ball, bar, box, mirrored, motor, pillow
from tools.make_robots.poses import Pose, grounded, solve

HIP, THIGH, SHANK, ANKLE = 0.115, 0.385, 0.385, 0.085  # half the distance of the hips; lengths; height over the sole
UPPER_ARM, FOREARM = 0.29, 0.26
SOLE_LENGTH, SOLE_WIDTH, SOLE_FRONT = 0.25, 0.11, 0.035  # the middle of the sole is this far before the ankle
KNEE_ANGLE = 0.55  # when it stands

Hand = Callable[[Robot, str, int, str], None]
"""Adds a hand to the robot: its side by name, its side by sign, the link that carries it."""


def humanoid() -> tuple[Robot, Pose]:
    return _humanoid("humanoid", _add_gripper)


def humanoid_hands() -> tuple[Robot, Pose]:
    return _humanoid("humanoid_hands", add_hand)


def _humanoid(name: str, add_end: Hand) -> tuple[Robot, Pose]:
    robot = Robot(name, floating=True)
    _add_trunk(robot)
    for side_name, side in (("left", 1), ("right", -1)):
        _add_leg(robot, side_name, side)
        _add_arm(robot, side_name, side)
        add_end(robot, side_name, side, f"{side_name}_palm")
    robot.apart += _apart(robot)
    return robot, _standing(robot)


def _apart(robot: Robot) -> list[tuple[str, str]]:
    """Too far from each other, or held so by limits of the joints between."""
    sides = ("left", "right")
    legs = [f"{side}_{part}" for side in sides for part in ("thigh", "shank", "foot")]
    pairs = [("head", "pelvis"), ("head", "belly"), *(("belly", link) for link in legs)]
    for side in sides:
        pairs += [("pelvis", f"{side}_shank"), (f"{side}_thigh", f"{side}_foot")]
        hand = [link for link in ("palm", "fixed_jaw", "jaw") if f"{side}_{link}" in robot.links]
        pairs += [(f"{side}_{arm}", f"{side}_{link}") for arm in ("upper_arm", "forearm") for link in hand]
        pairs += [(f"{side}_wrist", f"{side}_{link}") for link in hand[1:]]
    return pairs


def _add_trunk(robot: Robot) -> None:
    pelvis = [
        bar((0.0, -0.085, 0.0), (0.0, 0.085, 0.0), 0.082, "cream", touches=True),
        motor(0.065, 0.09, Z, (0.0, 0.0, 0.08)),
    ]
    waist = [motor(0.055, 0.175, X, color="teal")]  # longer than the belly's drum is thick: its ends are seen
    belly = [motor(0.078, 0.19, Y), bar((0.0, -0.05, 0.075), (0.0, 0.05, 0.075), 0.085, "cream", touches=True)]
    chest = [
        bar((0.0, -0.085, 0.18), (0.0, 0.085, 0.18), 0.115, "cream"),
        bar((0.0, -0.065, 0.08), (0.0, 0.065, 0.08), 0.1, "cream"),
        motor(0.05, 0.05, X, (0.098, 0.0, 0.18), "teal"),
        *pillow((0.09, 0.21, 0.22), (-0.11, 0.0, 0.15), "graphite"),
        motor(0.05, 0.05, Z, (0.0, 0.0, 0.26), "graphite"),
    ]
    neck = [motor(0.035, 0.09, Z, (0.0, 0.0, 0.02), "silver")]
    head = [
        ball(0.095, (0.005, 0.0, 0.105), "cream", touches=True),
        bar((0.068, -0.038, 0.112), (0.068, 0.038, 0.112), 0.04, "graphite"),
        motor(0.03, 0.21, Y, (0.0, 0.0, 0.105), "teal"),
    ]
    robot.add("pelvis", mass=11.0, solids=pelvis)
    yaw = Joint("waist_yaw", Z, -1.2, 1.2, effort=200.0, velocity=6.0)
    roll = Joint("waist_roll", X, -0.5, 0.5, effort=200.0, velocity=6.0)
    pitch = Joint("waist_pitch", Y, -0.6, 1.3, effort=250.0, velocity=6.0)
    robot.add("waist", "pelvis", (0.0, 0.0, 0.135), yaw, 2.5, waist)
    robot.add("belly", "waist", (0.0, 0.0, 0.0), roll, 5.0, belly)
    robot.add(
        "chest", "belly", (0.0, 0.0, 0.08), pitch, 18.7, chest, hidden=[box((0.26, 0.34, 0.28), (-0.02, 0.0, 0.15))]
    )
    robot.add("neck", "chest", (0.0, 0.0, 0.285), Joint("neck_yaw", Z, -1.4, 1.4, effort=25.0, velocity=6.0), 0.9, neck)
    robot.add("head", "neck", (0.0, 0.0, 0.055), Joint("neck_pitch", Y, -0.6, 0.8, 25.0, 6.0), 4.1, head)


def _add_leg(robot: Robot, name: str, side: int) -> None:
    yaw = Joint(f"{name}_hip_yaw", Z, -0.9, 0.9, effort=150.0, velocity=8.0)
    inner, outer = sorted((-0.35 * side, 0.9 * side))
    roll = Joint(f"{name}_hip_roll", X, inner, outer, effort=200.0, velocity=8.0)
    pitch = Joint(f"{name}_hip_pitch", Y, -2.1, 0.7, effort=300.0, velocity=9.0)
    knee = Joint(f"{name}_knee", Y, 0.0, 2.4, effort=350.0, velocity=9.0)
    ankle_pitch = Joint(f"{name}_ankle_pitch", Y, -1.2, 0.8, effort=200.0, velocity=8.0)
    ankle_roll = Joint(f"{name}_ankle_roll", X, -0.5, 0.5, effort=120.0, velocity=8.0)
    at_knee, at_ankle = (0.0, 0.0, -THIGH), (0.0, 0.0, -SHANK)
    thigh = [
        motor(0.078, 0.13, Y, color="teal"),
        bar((0.0, 0.0, -0.05), (0.0, 0.0, 0.05 - THIGH), 0.064, "cream", touches=True),
        motor(0.062, 0.12, Y, at_knee),
    ]
    shank = [
        bar((0.0, 0.0, -0.06), (0.0, 0.0, 0.07 - SHANK), 0.052, "cream", touches=True),
        box((0.035, 0.07, 0.20), (0.045, 0.0, -0.17), "teal"),
        bar((0.0, 0.0, 0.10 - SHANK), at_ankle, 0.035, "graphite"),
    ]
    under = (SOLE_FRONT, 0.0, 0.015 - ANKLE)
    foot = [
        box((SOLE_LENGTH, SOLE_WIDTH, 0.03), under, "rubber", touches=True),
        bar((-0.035, 0.0, 0.04 - ANKLE), (0.105, 0.0, 0.04 - ANKLE), 0.035, "cream", touches=True),
        motor(0.032, 0.10, X, color="teal"),
    ]
    robot.add(f"{name}_hip", "pelvis", (0.0, side * HIP, -0.05), yaw, 1.3, [motor(0.06, 0.07, Z, (0.0, 0.0, -0.02))])
    robot.add(f"{name}_hip_cross", f"{name}_hip", (0.0, 0.0, -0.06), roll, 1.6, [motor(0.06, 0.15, X)])
    robot.add(f"{name}_thigh", f"{name}_hip_cross", (0.0, 0.0, 0.0), pitch, 7.6, thigh)
    robot.add(f"{name}_shank", f"{name}_thigh", at_knee, knee, 3.9, shank)
    robot.add(f"{name}_ankle", f"{name}_shank", at_ankle, ankle_pitch, 0.5, [motor(0.036, 0.08, Y)])
    robot.add(f"{name}_foot", f"{name}_ankle", (0.0, 0.0, 0.0), ankle_roll, 1.6, foot)
    robot.add(f"{name}_sole", f"{name}_foot", (0.0, 0.0, -ANKLE))


def _add_arm(robot: Robot, name: str, side: int) -> None:
    def swing(joint: str, axis: tuple[float, float, float], inwards: float, outwards: float, effort: float) -> Joint:
        """A joint about x or z: mirrored, so that both arms move outwards alike."""
        lower, upper = sorted((side * inwards, side * outwards))
        return Joint(f"{name}_{joint}", axis, lower, upper, effort, 9.0)

    pitch = Joint(f"{name}_shoulder_pitch", Y, -2.9, 1.2, effort=100.0, velocity=8.0)
    roll = swing("shoulder_roll", X, -0.2, 2.6, 100.0)
    yaw = swing("shoulder_yaw", Z, -1.6, 1.6, 60.0)
    elbow = Joint(f"{name}_elbow", Y, -2.4, 0.05, effort=80.0, velocity=9.0)
    wrist_yaw = swing("wrist_yaw", Z, -1.6, 1.6, 30.0)
    wrist_roll = swing("wrist_roll", X, -0.6, 0.6, 20.0)
    wrist_pitch = Joint(f"{name}_wrist_pitch", Y, -0.9, 0.9, effort=20.0, velocity=9.0)
    at_elbow = (0.0, 0.0, -UPPER_ARM)
    middle = -0.13  # of the forearm, where it turns
    shoulder = [motor(0.052, 0.10, Y, mirrored((0.0, -0.01, 0.0), side), "graphite")]
    upper_arm = [
        bar((0.0, 0.0, -0.07), (0.0, 0.0, 0.04 - UPPER_ARM), 0.043, "cream", touches=True),
        motor(0.042, 0.09, Y, at_elbow),
    ]
    forearm = [bar((0.0, 0.0, -0.03), (0.0, 0.0, middle), 0.036, "cream", touches=True)]
    wrist = [bar((0.0, 0.0, 0.0), (0.0, 0.0, 0.035 - FOREARM - middle), 0.031, "silver", touches=True)]
    palm = [box((0.080, 0.028, 0.085), (0.0, 0.0, -0.055), "graphite", touches=True)]
    robot.add(f"{name}_shoulder", "chest", (0.0, side * 0.205, 0.205), pitch, 1.5, shoulder)
    robot.add(
        f"{name}_shoulder_cross",
        f"{name}_shoulder",
        mirrored((0, 0.03, 0), side),
        roll,
        1.2,
        [ball(0.055, color="teal")],
    )
    robot.add(f"{name}_upper_arm", f"{name}_shoulder_cross", (0.0, 0.0, -0.02), yaw, 2.1, upper_arm)
    robot.add(f"{name}_forearm", f"{name}_upper_arm", at_elbow, elbow, 1.1, forearm)
    robot.add(f"{name}_wrist", f"{name}_forearm", (0.0, 0.0, middle), wrist_yaw, 0.6, wrist)
    robot.add(
        f"{name}_wrist_cross", f"{name}_wrist", (0, 0, -FOREARM - middle), wrist_roll, 0.2, [ball(0.026, color="teal")]
    )
    robot.add(f"{name}_palm", f"{name}_wrist_cross", (0.0, 0.0, 0.0), wrist_pitch, 0.4, palm)
    # In the middle of what it would hold.
    robot.add(f"{name}_hand", f"{name}_palm", mirrored((0.0, -0.035, -0.10), side))


def _add_gripper(robot: Robot, name: str, side: int, palm: str) -> None:
    """A fixed jaw, and one that opens."""
    lower, upper = sorted((0.0, -1.0 * side))
    joint = Joint(f"{name}_gripper", X, lower, upper, effort=15.0, velocity=6.0)
    fixed = [box((0.07, 0.016, 0.085), mirrored((0.0, 0.004, -0.04), side), "silver", touches=True)]
    moving = [
        motor(0.014, 0.06, X, color="teal"),
        bar((0.0, 0.0, 0.0), mirrored((0.0, -0.04, -0.035), side), 0.012, "silver"),
        bar(mirrored((0.0, -0.04, -0.035), side), mirrored((0.0, -0.03, -0.10), side), 0.012, "silver", touches=True),
    ]
    robot.add(f"{name}_fixed_jaw", palm, (0.0, 0.0, -0.095), mass=0.15, solids=fixed)
    robot.add(f"{name}_jaw", palm, mirrored((0.0, -0.02, -0.08), side), joint, 0.15, moving)


def _standing(robot: Robot) -> Pose:
    """Knees bent, soles flat, the centre of mass over the middle of the feet."""
    relaxed = {joint.name: 0.15 for joint in robot.joints if joint.name.endswith(("_mcp", "_pip", "_dip"))}  # fingers
    for name, side in (("left", 1), ("right", -1)):
        relaxed |= {f"{name}_shoulder_pitch": 0.15, f"{name}_shoulder_roll": 0.15 * side, f"{name}_elbow": -0.5}

    def angles(hip: float) -> dict[str, float]:
        legs = {}
        for name in ("left", "right"):
            legs |= {f"{name}_hip_pitch": hip, f"{name}_knee": KNEE_ANGLE, f"{name}_ankle_pitch": -hip - KNEE_ANGLE}
        return relaxed | legs

    def imbalance(hip: np.ndarray) -> np.ndarray:
        places = robot.placements(angles(float(hip[0])))
        return robot.center_of_mass(places)[:1] - places["left_sole"][:1, 3] - SOLE_FRONT

    (hip,) = solve(imbalance, [-KNEE_ANGLE / 2.0])
    return grounded(robot, angles(hip), "left_sole")
