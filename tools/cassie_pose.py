"""The pose in which Cassie stands, as `saltus/model/robots/cassie.py` has it: `python -m tools.cassie_pose`.

23 equations for 23 numbers, the base upright and the knees bent as given: both ends of either sole at z = 0, one beside the
other, loops closed, the centre of mass over the middle of the soles, and equilibrium of the four springs with what loops and
the ground make of the weight, motors holding their joints. Of all forces that do, the smallest on the ground.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import fsolve

import saltus as sl
from saltus.model.robots.cassie import SIDES

Array = NDArray[np.float64]

KNEE = -0.75  # rad, the mean of both
ENDS = (0.090, 0.0, 0.0), (-0.048, 0.115, 0.0)  # of the lowest line of the file's cylinder, in the frame of a foot [m]
START = {
    "pitch-op": 0.6, "knee-op": KNEE, "knee-shin-joint": 0.0, "shin-tarsus-joint": 0.75, "tarsus-spring-joint": 0.0,
    "achilles-spring-joint": -0.75, "achilles-spring-joint_2": 0.0,
    "crank-rod-joint": 1.726, "crank-rod-joint_2": 0.0, "tarsus-crank-joint": -1.726, "foot-op": -1.726,
}  # fmt: skip


def with_soles(robot: sl.Model) -> sl.Model:
    """With both ends of either sole as frames `left_sole_0` and so on."""
    frames = list(robot.frames)
    for side in SIDES:
        foot = robot.frame_index(f"{side}-foot")
        for k, end in enumerate(ENDS):
            shift = np.eye(4)
            shift[:3, 3] = end
            at = frames[foot].placement @ shift
            frames.append(sl.Frame(f"{side}_sole_{k}", frames[foot].joint, at, sl.FrameKind.OP, foot))
    return robot.replace(frames=tuple(frames))


def ends_of_soles(robot: sl.Model, q: Array) -> Array:
    """(4, 3) in the world [m]."""
    return np.array([sl.frame_placement(robot, q, f"{side}_sole_{k}")[:3, 3] for side in SIDES for k in range(2)])


def gaps(robot: sl.Model, q: Array) -> Array:
    """Of the loops: (12,) [m]."""
    place = [[sl.frame_placement(robot, q, frame)[:3, 3] for frame in (x.frame_a, x.frame_b)] for x in robot.loops]
    return np.concatenate([a - b for a, b in place])


def statics(robot: sl.Model, q: Array) -> tuple[Array, Array]:
    """Torques (nv,) with which motors and springs' bearings hold the robot, at the smallest forces on the ground, and forces
    (4, 3) there [N]."""

    def rows(frame: str) -> Array:
        return np.asarray(sl.frame_jacobian(robot, q, frame, "local_world_aligned"))[:3]

    loops = np.concatenate([rows(x.frame_a) - rows(x.frame_b) for x in robot.loops])
    ground = np.concatenate([rows(f"{side}_sole_{k}") for side in SIDES for k in range(2)])
    held = [*sl.motors_of(robot), *np.flatnonzero(robot.stiffness)]
    columns = np.concatenate([np.eye(robot.nv)[held], loops, ground]).T
    cheap = np.r_[
        np.full(len(held) + len(loops), 1e-3), np.ones(len(ground))
    ]  # what the smallest forces are counted by
    found = np.linalg.lstsq(columns / cheap, sl.gravity(robot, q), rcond=1e-10)[0] / cheap
    tau = np.zeros(robot.nv)
    tau[held] = found[: len(held)]
    return tau, found[-12:].reshape(4, 3)


def standing(robot: sl.Model) -> Array:
    """The pose (nq,) of a robot `with_soles`."""
    joints = [robot.joints[robot.joint_index(f"{side}-{name}")] for side in SIDES for name in START]
    places, sprung = [2, *(joint.iq for joint in joints)], robot.stiffness > 0
    knees = [joint.iq for joint in joints if joint.name.endswith("knee-op")]

    def pose(x: Array) -> Array:
        q = robot.neutral()
        q[places] = x
        return q

    def equations(x: Array) -> Array:
        q = pose(x)
        ends, (tau, _) = ends_of_soles(robot, q), statics(robot, q)
        off = (tau - sl.passive_torques(robot, q))[sprung] / robot.stiffness[sprung]
        left, right = ends[:2, 0].mean(), ends[2:, 0].mean()
        ahead = sl.center_of_mass(robot, q)[0] - 0.5 * (left + right)
        return np.concatenate([ends[:, 2], gaps(robot, q), off, [left - right, ahead, q[knees].mean() - KNEE]])

    x = np.r_[0.9, np.tile(list(START.values()), 2)]
    for _ in range(3):
        x = fsolve(equations, x, xtol=1e-14)
    left = np.abs(equations(x)).max()
    assert left < 1e-10, left
    return pose(x)


def main() -> None:
    robot = with_soles(sl.load_robot("cassie"))
    q = standing(robot)
    print(f"BASE_HEIGHT = {q[2]:.13f}  # m")
    print("STANDING = {  # joint: left and right [rad]; others at zero")
    for name in START:
        left, right = (q[robot.joints[robot.joint_index(f"{side}-{name}")].iq] for side in SIDES)
        print(f'    "{name}": ({left:.13f}, {right:.13f}),')
    print("}")


if __name__ == "__main__":
    main()
