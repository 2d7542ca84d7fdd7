"""What an MJCF model has beside its bodies and joints: loops, motors, shapes; and what a `Model` has no place for.

`m` is a compiled `mujoco.MjModel`; `place` gives for each of its bodies the joint that moves it and its placement there.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from saltus.model.builder import ModelBuilder
from saltus.model.checks import Array
from saltus.model.placements import inverse, placement, rotation_from_quaternion

Place = list[tuple[int, Array]]
DEFAULT_COLOR = [0.5, 0.5, 0.5, 1.0]
SHOWN_GROUPS = 3


def pose(position: Array, quaternion: Array) -> Array:
    """A placement (4, 4) from MuJoCo's position (3,) [m] and quaternion w x y z (4,)."""
    return placement(rotation_from_quaternion(xyzw(quaternion)), position)


def xyzw(quaternion: Array) -> Array:
    """Our quaternion (4,) from MuJoCo's, w x y z."""
    return np.roll(quaternion, -1)


def is_one(values: Any, *kinds: Any) -> Any:
    """Whether a number, or each of an array, is one of these members of MuJoCo's enums, which equal no NumPy integer."""
    return np.isin(values, [int(kind) for kind in kinds])


class Names:
    """The names of a model's bodies, joints and so on by their index; made up, from kind and index, where there is none."""

    def __init__(self, m: Any) -> None:
        self.body = self._of(m, "BODY", m.nbody)
        self.joint = self._of(m, "JOINT", m.njnt)
        self.geom = self._of(m, "GEOM", m.ngeom)
        self.site = self._of(m, "SITE", m.nsite)
        self.equality = self._of(m, "EQUALITY", m.neq)
        self.actuator = self._of(m, "ACTUATOR", len(m.actuator_trntype))
        self.tendon = self._of(m, "TENDON", m.ntendon)
        self.key = self._of(m, "KEY", m.nkey)

    @staticmethod
    def _of(m: Any, kind: str, count: int) -> list[str]:
        import mujoco  # type: ignore[import-untyped]

        objects = getattr(mujoco.mjtObj, f"mjOBJ_{kind}")
        given = [mujoco.mj_id2name(m, objects, index) or "" for index in range(count)]
        taken = {*given, "universe"}
        for index, name in enumerate(given):
            if not name or name == "universe":
                name = f"{kind.lower()}_{index}"
                while name in taken:
                    name += "_"
                given[index] = name
                taken.add(name)
        return given


def gears(m: Any) -> Array:
    """The gear of every actuator, the first of those that have several outputs (since MuJoCo 4)."""
    first = getattr(m, "actuator_outadr", slice(None))
    return np.asarray(m.actuator_gear[first, 0])


def with_rotors(m: Any, what: str) -> Array:
    """The armature or damping (nv,) of all joints, with what their actuators bring, times their gear squared."""
    from mujoco import mjtTrn

    total = np.array(getattr(m, f"dof_{what}"))
    of_actuators = getattr(m, f"actuator_{what}", None)  # of MuJoCo 3.5 and later
    if of_actuators is not None:
        its = is_one(m.actuator_trntype, mjtTrn.mjTRN_JOINT, mjtTrn.mjTRN_JOINTINPARENT)
        on_joints = np.bincount(m.actuator_trnid[its, 0], of_actuators[its] * gears(m)[its] ** 2, m.njnt)
        total += on_joints[m.dof_jntid]
    return total


class Springs(NamedTuple):
    stiffness: Array  # (nv,)
    reference: Array  # (nv,)


def springs_of(m: Any) -> Springs:
    """The linear springs of hinges and slides; none where the file switches springs off."""
    from mujoco import mjtDisableBit, mjtJoint

    switch = (
        "mjDSBL_SPRING" if hasattr(mjtDisableBit, "mjDSBL_SPRING") else "mjDSBL_PASSIVE"
    )  # that of MuJoCo before 3.3
    off = bool(m.opt.disableflags & int(getattr(mjtDisableBit, switch)))
    single = is_one(m.jnt_type, mjtJoint.mjJNT_HINGE, mjtJoint.mjJNT_SLIDE) & (not off)
    stiffness, reference = np.zeros(m.nv), np.zeros(m.nv)
    stiffness[m.jnt_dofadr[single]] = m.jnt_stiffness[single]
    reference[m.jnt_dofadr[single]] = m.qpos_spring[m.jnt_qposadr[single]]
    return Springs(stiffness, reference)


class Motors(NamedTuple):
    kept: list[dict[str, Any]]  # arguments of `ModelBuilder.add_actuator`
    effort_limits: Array  # (nv,) what their joints allow them; infinite where there is no such limit
    left_out: dict[str, list[str]]


def motors(m: Any, names: Names) -> Motors:
    """Actuators on hinges and slides. A servo is a motor as far as its force is limited; its law is left out."""
    from mujoco import mjtBias, mjtGain, mjtJoint, mjtTrn

    kept, effort, others, servos = [], np.full(m.nv, np.inf), [], []
    gear_of = gears(m)
    controls = getattr(
        m, "actuator_ctrladr", np.arange(len(names.actuator))
    )  # since MuJoCo 4 there may be several each
    for index, name in enumerate(names.actuator):
        on_joint = is_one(m.actuator_trntype[index], mjtTrn.mjTRN_JOINT, mjtTrn.mjTRN_JOINTINPARENT)
        joint = m.actuator_trnid[index, 0]
        if not on_joint or not is_one(m.jnt_type[joint], mjtJoint.mjJNT_HINGE, mjtJoint.mjJNT_SLIDE):
            others.append(name)
            continue
        fixed_gain = is_one(m.actuator_gaintype[index], mjtGain.mjGAIN_FIXED)
        plain = fixed_gain and is_one(m.actuator_biastype[index], mjtBias.mjBIAS_NONE)
        if not plain:
            servos.append(name)
        bounds = np.array([-np.inf, np.inf])
        if m.actuator_forcelimited[index]:
            bounds = m.actuator_forcerange[index]
        if plain and m.actuator_ctrllimited[controls[index]]:
            forces = np.sort(m.actuator_gainprm[index, 0] * m.actuator_ctrlrange[controls[index]])
            bounds = np.clip(forces, *bounds)
        command = "effort" if plain else _command(m, index)
        kept.append({"name": name, "joint": names.joint[joint], "gear": gear_of[index],
                     "lower": bounds[0], "upper": bounds[1], "command": command})  # fmt: skip
        if m.jnt_actfrclimited[joint]:
            effort[m.jnt_dofadr[joint]] = np.abs(m.jnt_actfrcrange[joint]).max()
    return Motors(kept, effort, {"actuators that drive no hinge or slide": others, "the laws of servos": servos})


def _command(m: Any, actuator: int) -> str:
    """What a servo follows: MuJoCo's shortcuts `position` and `velocity` pull back with what they are told."""
    from mujoco import mjtBias, mjtGain

    plain = is_one(m.actuator_gaintype[actuator], mjtGain.mjGAIN_FIXED)
    if not plain or not is_one(m.actuator_biastype[actuator], mjtBias.mjBIAS_AFFINE):
        return "other"
    gain, (_, position, velocity) = m.actuator_gainprm[actuator, 0], m.actuator_biasprm[actuator, :3]
    return "position" if position == -gain else "velocity" if position == 0.0 and velocity == -gain else "other"


def add_loops(builder: ModelBuilder, m: Any, names: Names, place: Place) -> None:
    """The active `connect` and `weld` equalities; their data are those of mjModel's `eq_data`."""
    from mujoco import mjtEq, mjtObj

    for index in np.flatnonzero(m.eq_active0):
        data, name = m.eq_data[index], names.equality[index]
        connect = is_one(m.eq_type[index], mjtEq.mjEQ_CONNECT)
        if not connect and not is_one(m.eq_type[index], mjtEq.mjEQ_WELD):
            continue
        ends = [m.eq_obj1id[index], m.eq_obj2id[index]]
        if is_one(m.eq_objtype[index], mjtObj.mjOBJ_SITE):
            bodies = m.site_bodyid[ends]
            anchors = [pose(m.site_pos[site], m.site_quat[site]) for site in ends]
        elif connect:
            bodies = ends
            anchors = [placement(np.eye(3), data[:3]), placement(np.eye(3), data[3:6])]
        else:
            bodies = ends
            anchors = [pose(data[3:6], data[6:10]), placement(np.eye(3), data[:3])]
        (joint_a, in_a), (joint_b, in_b) = (place[body] for body in bodies)
        dim = 3 if connect else 6
        builder.close_loop(name, joint_a, in_a @ anchors[0], joint_b, in_b @ anchors[1], dim)


def add_shapes(builder: ModelBuilder, spec: Any, m: Any, names: Names, place: Place) -> dict[str, list[str]]:
    """The geoms that MuJoCo shows, but for planes; returns those that cannot be had."""
    from mujoco import mjtGeom

    solid = ~is_one(m.geom_type, mjtGeom.mjGEOM_PLANE)
    shown = solid & (m.geom_group < SHOWN_GROUPS)
    lost = []
    for geom in np.flatnonzero(shown if shown.any() else solid).tolist():
        joint, here = place[m.geom_bodyid[geom]]
        look = look_of(spec, m, geom)
        if look is None:
            lost.append(names.geom[geom])
            continue
        kind, size, at, path = look
        color = m.geom_rgba[geom]
        if m.geom_matid[geom] >= 0 and np.allclose(color, DEFAULT_COLOR):
            color = m.mat_rgba[m.geom_matid[geom]]
        builder.add_shape(joint, kind, size, here @ at, color=color, path=path, name=names.geom[geom])
    return {"the looks of geoms": lost}


def look_of(spec: Any, m: Any, geom: int) -> tuple[str, Array, Array, str] | None:
    """Kind, size, placement (4, 4) in its body, and mesh file of a geom; None if it is of no kind that a shape has."""
    from mujoco import mjtGeom

    at, kind = pose(m.geom_pos[geom], m.geom_quat[geom]), mjtGeom(m.geom_type[geom])
    factors = {  # our sizes, as multiples of MuJoCo's
        mjtGeom.mjGEOM_SPHERE: [1],
        mjtGeom.mjGEOM_CAPSULE: [1, 2],
        mjtGeom.mjGEOM_CYLINDER: [1, 2],
        mjtGeom.mjGEOM_ELLIPSOID: [1, 1, 1],
        mjtGeom.mjGEOM_BOX: [2, 2, 2],
    }.get(kind)
    if factors is not None:
        return kind.name.removeprefix("mjGEOM_").lower(), m.geom_size[geom][: len(factors)] * factors, at, ""
    mesh = m.geom_dataid[geom]
    path = _mesh_file(spec, m, mesh) if kind == mjtGeom.mjGEOM_MESH else ""
    if not path:
        return None
    # MuJoCo moves a mesh into the frame of its inertia; its file knows nothing of that.
    return "mesh", m.mesh_scale[mesh], at @ inverse(pose(m.mesh_pos[mesh], m.mesh_quat[mesh])), path


def _mesh_file(spec: Any, m: Any, mesh: int) -> str:
    """The path of a mesh's file; empty if it has none, or is not shown as the file has it."""
    import mujoco

    source = spec.mesh(mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_MESH, mesh))
    if m.mesh_pathadr[mesh] < 0 or np.any(source.refpos) or np.any(source.refquat[1:]):
        return ""
    start, paths = m.mesh_pathadr[mesh], m.paths
    return os.path.normpath(str(paths[start : paths.index(b"\0", start)].decode()))


def left_out(m: Any, names: Names) -> dict[str, list[str]]:
    """What a `Model` has no counterpart for, by name."""
    from mujoco import mjtEq, mjtJoint

    def named(which: list[str], chosen: Any) -> list[str]:
        return [which[index] for index in np.flatnonzero(chosen)]

    bilateral = is_one(m.eq_type, mjtEq.mjEQ_CONNECT, mjtEq.mjEQ_WELD) & (m.eq_active0 != 0)
    single = is_one(m.jnt_type, mjtJoint.mjJNT_HINGE, mjtJoint.mjJNT_SLIDE)
    stiff, curved, bent = m.jnt_stiffness != 0, _higher(m, "jnt_stiffness"), _higher(m, "dof_damping")
    fluid = {"density": m.opt.density, "viscosity": m.opt.viscosity, "wind": np.any(m.opt.wind)}
    return {
        "springs of ball and free joints": named(names.joint, (stiff | curved) & ~single),
        "stiffness that is not linear": named(names.joint, curved & single),
        "damping that is not linear": sorted({names.joint[m.dof_jntid[dof]] for dof in np.flatnonzero(bent)}),
        "limits of ball joints": named(names.joint, is_one(m.jnt_type, mjtJoint.mjJNT_BALL) & (m.jnt_limited != 0)),
        "gravity compensation": named(names.body, m.body_gravcomp),
        "mocap bodies, which are fixed here": named(names.body, m.body_mocapid >= 0),
        "equalities, other than active connect and weld": named(names.equality, ~bilateral),
        "tendons": names.tendon,
        "flexible bodies": [f"flex_{index}" for index in range(m.nflex)],
        "pairs of geoms that touch in their own way": [f"{m.npair} pairs"] * (m.npair > 0),
        "fluid forces": [name for name, value in fluid.items() if value],
        "plugins": [f"plugin_{index}" for index in range(m.nplugin)],
    }


def _higher(m: Any, name: str) -> Array:
    """Whether a stiffness or damping has coefficients of higher order, as in MuJoCo 3.5 and later."""
    return np.asarray(np.any(getattr(m, f"{name}poly", np.zeros((len(getattr(m, name)), 1))), axis=-1))
