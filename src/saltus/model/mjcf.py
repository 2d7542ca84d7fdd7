"""Robots from MJCF files, read and compiled by MuJoCo itself: defaults, includes and compiler settings are its own.

Joints come in MuJoCo's order, so q and v have MuJoCo's numbers in MuJoCo's places, but for three conventions:

| | MuJoCo | here |
|---|---|---|
| quaternions of free and ball joints | w x y z | x y z w |
| linear velocity of a free joint | in the world's axes | in the body's |
| a pose in which nothing moves (`neutral`) | `qpos0`, with every joint at its `ref` | zero |

`qpos0` and the keyframes are reference configurations of the model. Several joints on one body become a chain, with
bodies of no mass in between. Bodies without a joint are merged into the joint that moves them. Bodies are frames of kind
BODY, sites of kind OP; what has no name is called by its kind and MuJoCo's index. `connect` and `weld` are loops, with an
OP frame at either end. Geoms are shapes, of the groups that MuJoCo shows (0 to 2) if there are any; those that may touch
others are colliders, with their friction (mjcf_colliders.py).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from saltus.model.builder import ModelBuilder
from saltus.model.checks import Array, ModelError
from saltus.model.frames import FrameKind
from saltus.model.joints import JointKind
from saltus.model.mjcf_colliders import add_colliders
from saltus.model.mjcf_files import check_files
from saltus.model.mjcf_parts import (
    Names,
    add_loops,
    add_shapes,
    is_one,
    left_out,
    motors,
    pose,
    springs_of,
    with_rotors,
    xyzw,
)
from saltus.model.model import Model
from saltus.model.placements import inverse, placement, rotation_from_quaternion
from saltus.model.safe_xml import robot_file

_logger = logging.getLogger(__name__)


def load_mjcf(path: str | os.PathLike[str]) -> Model:
    """The robot that an MJCF file describes; a `ModelError` says what is wrong with the file. Needs the package `mujoco`.

    Armature (of joints, and of actuators times their gear squared), damping, springs of hinges and slides, dry friction,
    limits and gravity are kept; actuators on hinges and slides are motors, and limit the effort of their joints. What a
    `Model` has no place for, as springs of other joints, tendons, fluids, or equalities between joints, is logged as a
    warning. One thing differs: armature of a free joint, which MuJoCo has along the world's axes and we along the body's.

    >>> import tempfile
    >>> text = '''<mujoco model="pendulum"><worldbody><body name="rod">
    ...   <joint name="hinge" axis="0 1 0" range="-90 90"/><geom type="capsule" size="0.02" fromto="0 0 0 0 0 -1"/>
    ... </body></worldbody></mujoco>'''
    >>> with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
    ...     _ = file.write(text)
    ...     file.flush()
    ...     model = load_mjcf(file.name)
    >>> model, model.upper_position_limit.round(4), model.shapes[0].size
    (Model('pendulum', nq=1, nv=1, njoints=2, nframes=4), array([1.5708]), array([0.02, 1.  ]))
    """
    file = robot_file(path, "an MJCF")
    check_files(file)
    spec, compiled = _compiled(file)
    try:
        return _build(spec, compiled, file)
    except ModelError as error:
        raise ModelError(f"{file}: {error}") from None


def _compiled(file: Path) -> tuple[Any, Any]:
    """MuJoCo's `MjSpec` and `MjModel` of a file."""
    try:
        import mujoco  # type: ignore[import-untyped]
    except ImportError:
        raise ModelError(f"{file}: MJCF files need the package mujoco: pip install 'saltus[mjcf]'") from None
    try:
        with _no_log_file(mujoco):
            spec = mujoco.MjSpec.from_file(str(file.absolute()))
            return spec, spec.compile()
    except (ValueError, RuntimeError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        if "decoder" in str(error) and file.suffix.lower() != ".xml":
            raise ModelError(
                f"{file}: MuJoCo knows MJCF files by their names, expected one that ends in .xml"
            ) from None
        raise ModelError(f"{file}: MuJoCo refuses it: {' '.join(str(error).split())}") from None


@contextmanager
def _no_log_file(mujoco: Any) -> Iterator[None]:
    """MuJoCo would write its warnings into a file in the current directory; Python hears of them anyway."""
    if not hasattr(mujoco, "MjLogConfig"):  # before MuJoCo 4
        yield
        return
    config = mujoco.MjLogConfig.get()
    wanted, config.logto_file = config.logto_file, False
    config.set()
    try:
        yield
    finally:
        config.logto_file = wanted
        config.set()


def _build(spec: Any, m: Any, file: Path) -> Model:
    import mujoco

    names = Names(m)
    gravity = np.zeros(3) if m.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY else m.opt.gravity
    builder = ModelBuilder(spec.modelname or file.stem, gravity, physical=False)
    actuators, springs = motors(m, names), springs_of(m)
    per_dof = {
        "effort_limit": actuators.effort_limits,
        "armature": with_rotors(m, "armature"),
        "stiffness": springs.stiffness,
        "spring_reference": springs.reference,
        "damping": with_rotors(m, "damping"),
        "friction": m.dof_frictionloss,
    }
    place = [(0, np.eye(4))]  # of every body: the joint that moves it, and its placement there
    for body in range(m.nbody):
        if body:
            place.append(_add_joints(builder, m, names, body, place[m.body_parentid[body]], per_dof))
        joint, here = place[body]
        turn = rotation_from_quaternion(xyzw(m.body_iquat[body]))
        inertia = turn @ np.diag(m.body_inertia[body]) @ turn.T
        builder.add_body(joint, m.body_mass[body], m.body_ipos[body], inertia, here, names.body[body])
    for site in range(m.nsite):
        joint, here = place[m.site_bodyid[site]]
        builder.add_frame(names.site[site], joint, here @ pose(m.site_pos[site], m.site_quat[site]), FrameKind.OP)
    for motor in actuators.kept:
        builder.add_actuator(**motor)
    add_loops(builder, m, names, place)
    meshes_left_out = add_shapes(builder, spec, m, names, place)
    add_colliders(builder, spec, m, names, place)
    builder.add_reference("qpos0", _configuration(m, m.qpos0))
    for key in range(m.nkey):
        builder.add_reference(names.key[key], _configuration(m, m.key_qpos[key]))
    for what, which in (left_out(m, names) | actuators.left_out | meshes_left_out).items():
        if which:
            _logger.warning("%s: there is no counterpart for %s: %s", file, what, ", ".join(which))
    return builder.build()


def _add_joints(
    builder: ModelBuilder, m: Any, names: Names, body: int, parent: tuple[int, Array], per_dof: dict[str, Array]
) -> tuple[int, Array]:
    """Adds the joints of a body; returns the last one and the body's placement there."""
    from mujoco import mjtJoint

    mover, here = parent[0], parent[1] @ pose(m.body_pos[body], m.body_quat[body])
    for joint in range(m.body_jntadr[body], m.body_jntadr[body] + m.body_jntnum[body]):
        kind, position, axis = m.jnt_type[joint], m.jnt_pos[joint], m.jnt_axis[joint]
        anchor = placement(np.eye(3), position)
        # At q = ref the joint does not move its body. Ours rests at q = 0: so it is turned, or shifted, back by ref.
        ref = m.qpos0[m.jnt_qposadr[joint]]
        if is_one(kind, mjtJoint.mjJNT_FREE):
            own, here, anchor = JointKind.FREE_FLYER, np.eye(4), np.eye(4)
        elif is_one(kind, mjtJoint.mjJNT_BALL):
            own, here = JointKind.SPHERICAL, here @ anchor
        elif is_one(kind, mjtJoint.mjJNT_SLIDE):
            own, here = JointKind.PRISMATIC, here @ placement(np.eye(3), position - ref * axis)
        else:
            back = rotation_from_quaternion([*(axis * np.sin(-ref / 2)), np.cos(-ref / 2)])
            own, here = JointKind.REVOLUTE, here @ anchor @ placement(back)
        limits = {}
        if own.has_axis and m.jnt_limited[joint]:
            limits = {"lower": m.jnt_range[joint, 0], "upper": m.jnt_range[joint, 1]}
        dofs = slice(m.jnt_dofadr[joint], m.jnt_dofadr[joint] + own.nv)
        settings = {name: values[dofs] for name, values in per_dof.items()} | limits
        mover = builder.add_joint(names.joint[joint], own, mover, here, axis, **settings)
        here = inverse(anchor)
    return mover, here


def _configuration(m: Any, qpos: Array) -> Array:
    """MuJoCo's qpos (nq,) with its quaternions of unit length, in our order."""
    from mujoco import mjtJoint

    q = np.array(qpos)
    for kind, start in zip(m.jnt_type, m.jnt_qposadr, strict=True):
        if is_one(kind, mjtJoint.mjJNT_FREE, mjtJoint.mjJNT_BALL):
            begin = start + 3 * is_one(kind, mjtJoint.mjJNT_FREE)
            part = slice(begin, begin + 4)
            q[part] = xyzw(q[part]) / np.linalg.norm(q[part])
    return q
