"""Cassie: its file, and what that leaves out.

The file is `cassie_v2.sdf` of example-robot-data. Three things are not as on the robot, and are so here:

- **Rods.** Those between hip and heel spring, and between crank and foot, have balls at both ends. The file has one axis at
  one of them: a slanted one, by which a knee could bend only as far as the springs do (by 0.6 rad in the pose of the SRDF
  file, in which loops are 11 mm open), and one by which rounding keeps the right foot's loop 25 nm open. Here a rod turns
  about a second axis, `<name>_2`, across the first and itself; how it spins about itself is left out.
- **Motors.** The file has none. Where they are and their gears, `cassie.sdf` beside it says (its gearboxes); what they can
  do, and the inertia of their rotors, Agility's model for MuJoCo (`agility_cassie` of the MuJoCo Menagerie). What no motor
  drives has an effort limit of zero.
- **A pose to stand in.** Loops closed, soles flat at z = 0, the centre of mass over their middle, springs bent as the weight
  bends them: motors alone can hold it. `python -m tools.cassie_pose` finds it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from saltus.model.loops import Actuator
from saltus.model.model import Model
from saltus.model.sdf import load_changed
from saltus.model.sdf_xml import SdfModel

SIDES = "left", "right"
RODS = "achilles-spring-joint", "crank-rod-joint"
MOTORS = {  # joint: gear, the motor's largest effort [N m], and its rotor's inertia [kg m^2]
    "roll-op": (25.0, 4.5, 6.1e-5),
    "yaw-op": (25.0, 4.5, 6.1e-5),
    "pitch-op": (16.0, 12.2, 3.65e-4),
    "knee-op": (16.0, 12.2, 3.65e-4),
    "foot-op": (50.0, 0.9, 4.9e-6),
}
BASE_HEIGHT = 0.8712083115911  # m
STANDING = {  # joint: left and right [rad]; others at zero
    "pitch-op": (0.6307106348957, 0.6303704415623),
    "knee-op": (-0.7502564520680, -0.7497435479320),
    "knee-shin-joint": (-0.0451192724560, -0.0452928379447),
    "shin-tarsus-joint": (0.8451558312879, 0.8452332498657),
    "tarsus-spring-joint": (-0.0374003318103, -0.0375345613728),
    "achilles-spring-joint": (-0.7975386864235, -0.7975524939658),
    "achilles-spring-joint_2": (-0.0134280177476, 0.0134446434186),
    "crank-rod-joint": (1.7834099706206, 1.7868181972905),
    "crank-rod-joint_2": (0.0000000000000, -0.0000000749762),
    "tarsus-crank-joint": (-1.7834198262372, -1.7836753984760),
    "foot-op": (-1.7834449660116, -1.7634215299113),
}


def load_cassie(file: Path) -> Model:
    """With its rods, its motors, and the pose `standing`."""
    model = load_changed(file, True, with_rods)
    motors, q = [], model.neutral()
    limit, armature = np.zeros(model.nv), np.zeros(model.nv)
    limit[:6], q[2] = model.effort_limit[:6], BASE_HEIGHT
    for k, side in enumerate(SIDES):
        for name, (gear, effort, rotor) in MOTORS.items():
            joint = model.joints[model.joint_index(f"{side}-{name}")]
            motors.append(Actuator(f"{joint.name}-motor", joint.name, gear, -effort, effort))
            limit[joint.iv], armature[joint.iv] = motors[-1].most, rotor * gear**2
        for name, angles in STANDING.items():
            q[model.joints[model.joint_index(f"{side}-{name}")].iq] = angles[k]
    poses = dict(model.reference_configurations) | {"standing": q}
    return model.replace(actuators=tuple(motors), effort_limit=limit, armature=armature, reference_configurations=poses)


def with_rods(sdf: SdfModel) -> SdfModel:
    """What the file says, with rods that turn about two axes."""
    joints = dict(sdf.joints)
    for name in (f"{side}-{rod}" for side in SIDES for rod in RODS):
        joint = joints[name]
        rod, axis = sdf.links[joint.child], joint.axes[0]["axis"]
        along = joint.pose[:3, :3].T @ rod.pose[:3, :3] @ rod.com
        joints[name] = replace(joint, kind="universal", axes=[joint.axes[0], {"axis": np.cross(axis, along)}])
    return replace(sdf, joints=joints)
