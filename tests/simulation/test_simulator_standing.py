"""Robots stand: on a slope for a minute without creeping, MuJoCo's beside them, and with their loops closed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import mujoco
import numpy as np
import pytest

import saltus as sl
import saltus.model.robots
from tests.simulation.test_standing import GAINS, gaps

SLOPE, FRICTION, SETTLED = np.deg2rad(20.0), 0.5, 1.0  # tan 20 = 0.364
NORMAL = np.array([-np.sin(SLOPE), 0.0, np.cos(SLOPE)])
PD = {"quadruped": (1500.0, 40.0), "humanoid": (2000.0, 50.0)}
each_robot = pytest.mark.parametrize("name", PD)


@cache
def on_the_slope(name: str) -> tuple[sl.Model, np.ndarray]:
    """The robot facing uphill, its feet flat on the slope, its middle over them."""
    robot = sl.load_robot(name)
    q = robot.reference_configurations["standing"].copy()
    if name == "humanoid":
        turned = {"left_ankle_pitch": -SLOPE, "right_ankle_pitch": -SLOPE}
    else:  # the trunk lies along the slope, the legs stand upright
        turned = {f"{leg}_HFE": SLOPE for leg in ("LF", "RF", "LH", "RH")}
        q[3:7] = 0.0, -np.sin(SLOPE / 2), 0.0, np.cos(SLOPE / 2)
    for joint, angle in turned.items():
        q[robot.joints[robot.joint_index(joint)].iq] += angle
    q[:3] -= NORMAL * sl.find_contacts(robot, sl.Ground(normal=NORMAL), q, margin=5.0, self_collision=False).gap.min()
    return robot, q


def creep(robot: sl.Model, name: str, t: np.ndarray, q: np.ndarray) -> float:
    """How far feet have gone since they settled [m]."""
    feet = np.stack([sl.frame_placement(robot, q, foot)[:, :3, 3] for foot in sl.robot_frames(name).feet], axis=1)
    after = feet[t >= SETTLED - 1e-9]
    return float(np.linalg.norm(after - after[0], axis=-1).max())


@each_robot
def test_nothing_creeps_on_a_slope(name: str) -> None:
    robot, q = on_the_slope(name)
    sim = sl.Simulator(robot, sl.Ground(normal=NORMAL, friction=FRICTION))
    motion = sim.rollout(q, np.zeros(robot.nv), sl.PDTargets(q, *PD[name]), duration=60.0, every=100)
    assert motion.status.max() == 0 and not motion.fallen.any()
    assert creep(robot, name, motion.t, motion.q) < 1e-6
    forces = motion.contact_forces[-1].sum(axis=0)
    assert np.abs(forces - [0, 0, 9.81 * robot.total_mass]).max() < 1e-3 * robot.total_mass


@each_robot
def test_mujoco_creeps(name: str) -> None:
    """The same robot, pose, gains and step: what there is to be better than, in a tenth of the time."""
    robot, q = on_the_slope(name)
    spec = mujoco.MjSpec.from_file(str(Path(saltus.model.robots.__file__).parent / f"{name}.urdf"))
    spec.worldbody.first_body().add_freejoint()
    tilt = [np.cos(SLOPE / 2), 0.0, -np.sin(SLOPE / 2), 0.0]
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5, 5, 0.1], quat=tilt)
    for geom in spec.geoms:
        geom.friction = [FRICTION, 0.005, 0.0001]
    spec.option.timestep, spec.option.cone = 1e-3, mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    kp, kd = PD[name]
    hinges = [joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_HINGE]
    for joint in hinges:
        motor = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.biastype = mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0], motor.biasprm[:3] = kp, [0.0, -kp, -kd]
    m = spec.compile()
    data = mujoco.MjData(m)
    places = [(joint.iq, m.joint(joint.name).qposadr[0]) for joint in robot.joints[2:]]
    data.qpos[:7] = np.r_[q[:3], np.roll(q[3:7], 1)]
    for ours, its in places:
        data.qpos[its] = q[ours]
    data.ctrl[:] = [q[robot.joints[robot.joint_index(m.actuator(k).name)].iq] for k in range(m.nu)]
    found = []
    for _ in range(61):
        found.append(np.r_[data.qpos[:3], np.roll(data.qpos[3:7], -1), [data.qpos[its] for _, its in places]])
        for _ in range(100):
            mujoco.mj_step(m, data)
    its = np.array(found)
    its[:, [iq for iq, _ in places]] = its[:, 7:]
    assert creep(robot, name, 0.1 * np.arange(61), its) > 1e-2  # m in 5 s


@pytest.mark.parametrize("name", ["cassie", "biped"])
def test_loops_stay_closed(name: str) -> None:
    """As loaded, by springs and PD motors within their limits, for ten seconds, pushed once."""
    robot = sl.load_robot(name)
    q = robot.reference_configurations["standing"]
    kp, kd = np.zeros((2, robot.nv))
    for k in sl.motors_of(robot):
        joint = next(joint.name for joint in robot.joints[2:] if joint.iv == k)
        kp[k], kd[k] = next(gains for end, gains in GAINS[name].items() if joint.endswith(end))
    sim = sl.Simulator(robot, sl.Ground(), constraints=sl.model_loops(robot))
    push = sl.Push(robot.joints[1].name, (10.0, 3.0, 0.0), start=1.0, duration=0.2)
    motion = sim.rollout(q, np.zeros(robot.nv), sl.PDTargets(q, kp, kd), duration=10.0, every=10, pushes=[push])
    assert gaps(robot, motion.q).max() < 1e-6  # 0.1 mm is asked for
    assert motion.status.max() == 0 and not motion.fallen.any()
    assert np.abs(motion.q[-1] - q).max() < 0.05 and np.abs(motion.v[-1]).max() < 1e-3
    motors = sl.motors_of(robot)
    assert (np.abs(motion.tau[:, motors]) <= robot.effort_limit[motors]).all()
    assert not np.delete(motion.tau, motors, axis=-1).any()
