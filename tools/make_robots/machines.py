"""The small ones: an arm, a double pendulum, a cart-pole and a four-bar linkage."""

from __future__ import annotations

import math

import numpy as np

from tools.make_robots.parts import Joint, Robot, Solid, Triple, X, Y, Z, ball, bar, box, motor, pillow
from tools.make_robots.poses import Pose, solve

TURN = 2.0 * math.pi


def arm() -> tuple[Robot, Pose]:
    """Seven joints, 19.5 kg, of the build of a Panda. At zero it points straight up; standing, its tool points down."""
    robot = Robot("arm")
    pedestal = [box((0.22, 0.18, 0.05), (-0.02, 0.0, 0.025), "graphite"), _tube(0.05, 0.15, 0.062, "graphite")]
    shoulder = [_tube(0.0, 0.16, 0.060), motor(0.064, 0.11, Y, (0.0, 0.0, 0.18), "cream")]
    upper_arm = [motor(0.058, 0.15, Y, color="teal"), _tube(0.05, 0.18, 0.056)]
    elbow = [_tube(0.0, 0.06, 0.054), bar((0.0, 0.0, 0.07), (0.08, 0.0, 0.13), 0.046, "cream")]
    elbow += [motor(0.054, 0.10, Y, (0.08, 0.0, 0.13), "cream")]
    fold = [motor(0.048, 0.14, Y, color="teal"), bar((0.0, 0.0, 0.0), (-0.08, 0.0, 0.11), 0.044, "cream")]
    forearm = [_tube(0.0, 0.22, 0.046), motor(0.050, 0.09, Y, (0.0, 0.0, 0.24), "cream")]
    wrist = [motor(0.045, 0.12, Y, color="teal"), bar((0.0, 0.0, 0.0), (-0.09, 0.0, 0.02), 0.040, "cream")]
    hand = [_tube(0.03, 0.10, 0.042), box((0.04, 0.20, 0.045), (0.0, 0.0, 0.12), "graphite", touches=True)]
    hand += [box((0.02, 0.016, 0.07), (0.0, side * 0.045, 0.175), "silver", touches=True) for side in (1, -1)]

    limbs = {  # thick ones, which cover tubes and drives
        "shoulder": [bar((0.0, 0.0, 0.06), (0.0, 0.0, 0.18), 0.066)],
        "upper_arm": [bar((0.0, 0.0, 0.0), (0.0, 0.0, 0.14), 0.060)],
        "elbow": [bar((0.0, 0.0, 0.03), (0.08, 0.0, 0.13), 0.056)],
        "fold": [bar((0.0, 0.0, 0.0), (-0.08, 0.0, 0.11), 0.050)],
        "forearm": [bar((0.0, 0.0, 0.04), (0.0, 0.0, 0.24), 0.050)],
        "wrist": [bar((0.0, 0.0, 0.0), (-0.09, 0.0, 0.02), 0.047)],
        "hand": [bar((0.0, 0.0, 0.075), (0.0, 0.0, 0.10), 0.042)],
    }
    robot.add("base", mass=3.0, solids=pedestal, hidden=[box((0.22, 0.18, 0.20), (-0.02, 0.0, 0.10))])
    chain = [  # link, joint's place on the link before, axis, limits, effort, velocity, mass, solids
        ("shoulder", (0.0, 0.0, 0.15), Z, (-2.8, 2.8), (90.0, 2.2), 3.2, shoulder),
        ("upper_arm", (0.0, 0.0, 0.18), Y, (-1.8, 1.8), (90.0, 2.2), 3.1, upper_arm),
        ("elbow", (0.0, 0.0, 0.19), Z, (-2.8, 2.8), (90.0, 2.2), 2.8, elbow),
        ("fold", (0.08, 0.0, 0.13), Y, (-0.1, 3.0), (90.0, 2.2), 2.4, fold),
        ("forearm", (-0.08, 0.0, 0.14), Z, (-2.8, 2.8), (15.0, 2.6), 2.4, forearm),
        ("wrist", (0.0, 0.0, 0.24), Y, (-0.1, 3.7), (15.0, 2.6), 1.4, wrist),
        ("hand", (-0.09, 0.0, 0.02), Z, (-2.8, 2.8), (15.0, 2.6), 1.2, hand),
    ]
    before = "base"
    for number, (name, at, axis, (lower, upper), (effort, velocity), mass, solids) in enumerate(chain, start=1):
        joint = Joint(f"joint_{number}", axis, lower, upper, effort, velocity)
        before = robot.add(name, before, at, joint, mass, solids, hidden=limbs.get(name, ()))
    robot.add("tool", "hand", (0.0, 0.0, 0.20))
    robot.apart += [("base", "upper_arm"), ("shoulder", "elbow"), ("upper_arm", "fold"), ("elbow", "forearm")]
    robot.apart += [("fold", "wrist"), ("fold", "hand"), ("shoulder", "fold"), ("upper_arm", "forearm")]
    right_angle = math.pi / 2.0
    folded = {"joint_2": -right_angle / 2.0, "joint_4": 1.5 * right_angle, "joint_6": right_angle}
    return robot, Pose(folded | {"joint_7": right_angle / 2.0})


def _tube(bottom: float, top: float, radius: float, color: str = "cream") -> Solid:
    return bar((0.0, 0.0, bottom), (0.0, 0.0, top), radius, color, "cylinder")


def double_pendulum() -> tuple[Robot, Pose]:
    """Two driven rods of half a metre. At zero they hang, standing they balance upright."""
    robot = Robot("double_pendulum")
    stand = [
        box((0.30, 0.30, 0.04), (0.0, -0.08, 0.02), "graphite"),
        bar((0.0, -0.08, 0.04), (0.0, -0.08, 1.15), 0.032, "silver"),
        motor(0.045, 0.12, Y, (0.0, -0.06, 1.15), "graphite"),
    ]
    end = (0.0, 0.0, -0.5)
    upper = [bar((0.0, 0.0, 0.0), end, 0.022, "teal", touches=True), motor(0.035, 0.06, Y, end, "graphite")]
    lower = [
        bar((0.0, 0.0, 0.0), end, 0.018, "orange", touches=True),
        ball(0.032, end, "orange", touches=True),
    ]
    robot.add("stand", mass=10.0, solids=stand)
    robot.add("upper", "stand", (0.0, 0.02, 1.15), Joint("shoulder", Y, -TURN, TURN, 30.0, 15.0), 1.2, upper)
    robot.add("lower", "upper", (0.0, 0.045, -0.5), Joint("elbow", Y, -TURN, TURN, 15.0, 15.0), 0.6, lower)
    robot.add("tip", "lower", end)
    return robot, Pose({"shoulder": math.pi})


def cartpole() -> tuple[Robot, Pose]:
    """A cart that a motor drives along a rail, and a free pole on it, which stands up at zero."""
    robot = Robot("cartpole")
    rail = [bar((-2.2, 0.0, 0.5), (2.2, 0.0, 0.5), 0.025, "silver", "cylinder")]
    rail += [box((0.06, 0.20, 0.5), (end, 0.0, 0.25), "graphite") for end in (-2.2, 2.2)]
    cart = [*pillow((0.34, 0.20, 0.12), color="teal"), motor(0.035, 0.07, Y, (0.0, 0.10, 0.0), "graphite")]
    pole = [
        bar((0.0, 0.0, 0.0), (0.0, 0.0, 0.8), 0.016, "orange", touches=True),
        ball(0.035, (0.0, 0.0, 0.8), "orange", touches=True),
    ]
    robot.add("rail", mass=12.0, solids=rail)
    robot.add("cart", "rail", (0.0, 0.0, 0.5), Joint("slide", X, -2.0, 2.0, 100.0, 10.0, "prismatic"), 1.5, cart)
    robot.add("pole", "cart", (0.0, 0.14, 0.0), Joint("hinge", Y, -TURN, TURN, 0.0, 25.0), 0.3, pole)
    robot.add("tip", "pole", (0.0, 0.0, 0.8))
    return robot, Pose()


def four_bar() -> tuple[Robot, Pose]:
    """A crank that can turn all the way round drives a rocker. At zero it is closed, with the crank upright."""
    ground, crank, coupler, rocker = 0.40, 0.15, 0.38, 0.30
    height = 0.25
    # Where coupler and rocker meet: on two circles, about the crank's tip and the rocker's pivot.
    tip, pivot = np.array([0.0, crank]), np.array([ground, 0.0])
    meeting = solve(
        lambda point: np.array([np.hypot(*(point - tip)) - coupler, np.hypot(*(point - pivot)) - rocker]),
        [ground, rocker],
    )
    x, z = (round(value, 12) for value in meeting)
    along, up = (x, 0.0, z - crank), (x - ground, 0.0, z)

    robot = Robot("four_bar")
    base = [box((ground + 0.16, 0.14, 0.04), (ground / 2.0, 0.0, 0.02), "graphite")]
    for place in (0.0, ground):
        base += [
            box((0.05, 0.02, height - 0.02), (place, -0.05, height / 2.0 + 0.01), "silver"),
            motor(0.03, 0.06, Y, (place, -0.035, height)),
        ]

    def rod(name: str, parent: str, at: Triple, end: Triple, joint: Joint, mass: float, color: str) -> None:
        robot.add(name, parent, at, joint, mass, [bar((0.0, 0.0, 0.0), end, 0.013, color), motor(0.018, 0.04, Y, end)])

    robot.add("base", mass=3.0, solids=base)
    crank_hinge = Joint("crank_hinge", Y, -math.inf, math.inf, effort=10.0, velocity=20.0)
    coupler_hinge = Joint("coupler_hinge", Y, -math.inf, math.inf, effort=0.0, velocity=20.0)
    rocker_hinge = Joint("rocker_hinge", Y, -2.0, 2.0, effort=0.0, velocity=20.0)
    rod("crank", "base", (0.0, 0.0, height), (0.0, 0.0, crank), crank_hinge, 0.3, "orange")
    rod("coupler", "crank", (0.0, 0.03, crank), along, coupler_hinge, 0.5, "teal")
    rod("rocker", "base", (ground, 0.0, height), up, rocker_hinge, 0.4, "cream")
    robot.close("closure", "rocker", "coupler", along)
    return robot, Pose()
