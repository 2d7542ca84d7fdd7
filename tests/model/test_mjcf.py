"""`load_mjcf` against MuJoCo itself: mass matrix, bias forces, accelerations, and where bodies and sites are."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

import saltus as sl
from saltus.model.robots.table import SHIPPED
from tests.closeness import assert_close
from tests.model.mujoco_peer import peer_at
from tests.model.shipped import mjcf_file

MODELS = Path(__file__).parent / "mjcf"
WRITTEN = sorted(path.name for path in MODELS.glob("*.xml"))
SAMPLE = Path(mujoco.__file__).parent / "testdata" / "model.xml"
TOLERANCE = 1e-9


def random_mjcf(seed: int, bodies: int) -> str:
    """A random tree, built and written out by MuJoCo: every kind of joint, several of them on one body, any geoms."""
    rng = np.random.default_rng(seed)
    spec = mujoco.MjSpec()
    spec.modelname = f"random_{seed}"
    spec.option.gravity = rng.normal(size=3) * 6
    parents = [spec.worldbody]
    kinds = {"h": mujoco.mjtJoint.mjJNT_HINGE, "s": mujoco.mjtJoint.mjJNT_SLIDE, "b": mujoco.mjtJoint.mjJNT_BALL}
    chains = ["h", "s", "b", "hs", "shh", "hb", "ssh", "sb", "hhh", "bs", ""]  # no rotation may follow a ball
    for index in range(bodies):
        parent = parents[rng.integers(len(parents))]
        body = parent.add_body(name=f"b{index}", pos=rng.normal(size=3) * 0.3, quat=rng.normal(size=4))
        if parent is spec.worldbody and rng.random() < 0.5:
            body.add_freejoint()
        else:
            for k, letter in enumerate(chains[rng.integers(len(chains) - (parent is spec.worldbody))]):
                body.add_joint(
                    name=f"j{index}_{k}",
                    type=kinds[letter],
                    axis=rng.normal(size=3),
                    pos=rng.normal(size=3) * 0.1,
                    ref=0.0 if letter == "b" else rng.normal(),
                    armature=rng.uniform(0, 0.2),
                    damping=[rng.uniform(0, 0.5), 0, 0],
                    stiffness=[rng.uniform(0, 5.0), 0, 0] if letter != "b" else 0,
                    springref=0.0 if letter == "b" else rng.normal(),
                    frictionloss=rng.uniform(0, 0.5),
                )
        for _ in range(rng.integers(1, 3)):
            shape = [mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_ELLIPSOID]
            body.add_geom(
                type=shape[rng.integers(3)],
                size=rng.uniform(0.05, 0.2, 3),
                pos=rng.normal(size=3) * 0.1,
                quat=rng.normal(size=4),
            )
        body.add_site(name=f"s{index}", pos=rng.normal(size=3), quat=rng.normal(size=4))
        parents.append(body)
    spec.compile()
    return spec.to_xml()


RANDOM = [(seed, bodies) for seed, bodies in enumerate([1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30])]


@pytest.fixture
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of tests/model/mjcf, a shipped robot, MuJoCo's sample, or a random one."""
    if request.param in SHIPPED:
        return mjcf_file(request.param, tmp_path)
    if isinstance(request.param, tuple):
        file = tmp_path / "random.xml"
        file.write_text(random_mjcf(*request.param))
        return file
    return SAMPLE if request.param == "sample" else MODELS / request.param


ALL = pytest.mark.parametrize("path", [*WRITTEN, *SHIPPED, "sample", *RANDOM], indirect=True, ids=str)


def test_there_are_enough() -> None:
    assert len(WRITTEN) + len(SHIPPED) + 1 + len(RANDOM) >= 35


@ALL
def test_same_dynamics_as_mujoco(path: Path) -> None:
    model = sl.load_mjcf(path)
    rng = np.random.default_rng(7)
    for _ in range(3):
        q = sl.random_configuration(model, rng)
        v, tau = rng.normal(size=(2, model.nv))
        peer = peer_at(path, model, q, v, tau)
        M, T = peer.mass_matrix, peer.T
        assert_close(sl.crba(model, q), T.T @ M @ T, TOLERANCE, what="mass matrix")
        bias = T.T @ (peer.data.qfrc_bias + M @ peer.drift)
        assert_close(sl.nonlinear_effects(model, q, v), bias, TOLERANCE, what="bias forces")
        # Dampers, springs and servos are not in the tree's dynamics: given to it as forces.
        forces = T.T @ (peer.data.qfrc_passive + peer.data.qfrc_actuator) + tau
        a = T @ sl.aba(model, q, v, forces) + peer.drift
        assert_close(a, peer.data.qacc_smooth, TOLERANCE, what="accelerations")


@ALL
def test_same_places_as_mujoco(path: Path) -> None:
    model = sl.load_mjcf(path)
    q = sl.random_configuration(model, 3)
    peer = peer_at(path, model, q, np.zeros(model.nv), np.zeros(model.nv))
    placements = sl.frame_placements(model, q)
    counts = {sl.FrameKind.BODY: peer.m.nbody, sl.FrameKind.OP: peer.m.nsite + 2 * len(model.loops)}
    for kind, count in counts.items():
        assert sum(frame.kind == kind for frame in model.frames) == count
    for index in range(1, peer.m.nbody):
        name = peer.m.body(index).name or f"body_{index}"
        ours = placements[model.frame_index(name, sl.FrameKind.BODY)]
        assert_close(ours[:3, 3], peer.data.xpos[index], 1e-12, scale=1.0, what=name)
        assert_close(ours[:3, :3], peer.data.xmat[index].reshape(3, 3), 1e-12, what=name)
    for index in range(peer.m.nsite):
        ours = placements[model.frame_index(peer.m.site(index).name, sl.FrameKind.OP)]
        assert_close(ours[:3, 3], peer.data.site_xpos[index], 1e-12, scale=1.0)
        assert_close(ours[:3, :3], peer.data.site_xmat[index].reshape(3, 3), 1e-12)


@ALL
def test_same_joints_as_mujoco(path: Path) -> None:
    model = sl.load_mjcf(path)
    m = mujoco.MjModel.from_xml_path(str(path))
    assert model.nb == m.njnt
    assert_close(model.friction, m.dof_frictionloss, 0.0)
    for index, joint in enumerate(model.joints[1:]):
        assert joint.name == (m.jnt(index).name or f"joint_{index}")
        assert (joint.iq, joint.iv) == (m.jnt_qposadr[index], m.jnt_dofadr[index])
        if joint.kind.has_axis:
            limits = m.jnt_range[index] if m.jnt_limited[index] else (-np.inf, np.inf)
            assert model.lower_position_limit[joint.iq] == limits[0]
            assert model.upper_position_limit[joint.iq] == limits[1]
    assert_close(
        model.total_mass, sum(mass for mass, tied in zip(m.body_mass, m.body_weldid, strict=True) if tied), 1e-12
    )
    # Where there are no springs, all passive forces are our dampers.
    if not (m.jnt_stiffness.any() or m.opt.density or m.ngravcomp):
        data = mujoco.MjData(m)
        data.qvel = np.random.default_rng(0).normal(size=m.nv)
        mujoco.mj_forward(m, data)
        assert_close(-model.damping * data.qvel, data.qfrc_passive, 1e-12)


@ALL
def test_geoms_are_shapes(path: Path) -> None:
    """Where MuJoCo has them, in MuJoCo's default pose."""
    model = sl.load_mjcf(path)
    m = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(m)
    mujoco.mj_forward(m, data)
    joints = sl.joint_placements(model, model.reference_configurations["qpos0"])
    primitive = 0
    for shape in model.shapes:
        if shape.kind == "mesh":
            continue
        primitive += 1
        geom = m.geom(shape.name).id if not shape.name.startswith("geom_") else int(shape.name[5:])
        ours = joints[shape.joint] @ shape.placement
        assert_close(ours[:3, 3], data.geom_xpos[geom], 1e-12, scale=1.0)
        assert_close(ours[:3, :3], data.geom_xmat[geom].reshape(3, 3), 1e-12)
        size, factors = m.geom_size[geom], {"box": (2, 2, 2), "ellipsoid": (1, 1, 1), "sphere": (1,)}
        assert_close(shape.size, size[: shape.size.size] * factors.get(shape.kind, (1, 2)), 1e-15)
    kinds = [mujoco.mjtGeom.mjGEOM_PLANE, mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_MESH]
    assert primitive == np.sum(~np.isin(m.geom_type, [int(kind) for kind in kinds]) & (m.geom_group < 3))


def test_a_mesh_is_where_its_file_says() -> None:
    """MuJoCo moves the vertices of a mesh into the frame of its inertia; the file has them as they are."""
    model = sl.load_mjcf(MODELS / "mesh.xml")
    (shape,) = model.shapes
    assert shape.path == str(MODELS / "parts" / "wedge.obj") and shape.color.tolist() == [0, 1, 0, 1]
    lines = Path(shape.path).read_text().splitlines()
    vertices = np.array([line.split()[1:] for line in lines if line.startswith("v")], float) * shape.size
    q = np.array([0.7])
    m = mujoco.MjModel.from_xml_path(str(MODELS / "mesh.xml"))
    data = mujoco.MjData(m)
    data.qpos = q
    mujoco.mj_forward(m, data)
    X = sl.joint_placements(model, q)[shape.joint] @ shape.placement
    theirs = m.mesh_vert @ data.geom_xmat[0].reshape(3, 3).T + data.geom_xpos[0]
    assert_close(vertices @ X[:3, :3].T + X[:3, 3], theirs, 1e-7)  # MuJoCo keeps vertices in single precision


def test_loops_are_closed_in_the_default_pose() -> None:
    model = sl.load_mjcf(MODELS / "four_bar.xml")
    assert [(loop.name, loop.dim) for loop in model.loops] == [
        ("pin", 3), ("glue", 6), ("posed", 6), ("on_sites", 6), ("equality_4", 6),
    ]  # fmt: skip
    placements = sl.frame_placements(model, model.reference_configurations["qpos0"])
    for loop in model.loops:
        a, b = (placements[model.frame_index(frame)] for frame in (loop.frame_a, loop.frame_b))
        if loop.name in ("pin", "glue", "equality_4"):
            assert_close(a[:3, 3], b[:3, 3], 1e-12, scale=1.0, what=loop.name)
            if loop.dim == 6:
                assert_close(a, b, 1e-12, what=loop.name)


def test_welds_hold_what_mujoco_holds() -> None:
    """The violation of every weld and connect, in a random pose, against MuJoCo's constraint residuals."""
    path = MODELS / "four_bar.xml"
    model = sl.load_mjcf(path)
    q = sl.random_configuration(model, 5)
    peer = peer_at(path, model, q, np.zeros(model.nv), np.zeros(model.nv))
    placements, row = sl.frame_placements(model, q), 0
    for loop in model.loops:
        a, b = (placements[model.frame_index(frame)] for frame in (loop.frame_a, loop.frame_b))
        residual = peer.data.efc_pos[row : row + 3]
        assert_close(np.linalg.norm(a[:3, 3] - b[:3, 3]), np.linalg.norm(residual), 1e-9, what=loop.name)
        if loop.dim == 6:
            turn = a[:3, :3].T @ b[:3, :3]  # MuJoCo's residual has length sin(angle / 2)
            sine = np.sqrt(max(0.0, (3.0 - np.trace(turn)) / 4.0))
            found = np.linalg.norm(peer.data.efc_pos[row + 3 : row + 6])
            assert_close(found, sine, 1e-9, what=loop.name)
        row += loop.dim


def test_actuators() -> None:
    model = sl.load_mjcf(MODELS / "actuators.xml")
    assert model.actuators == (
        sl.Actuator("m1", "j1", 10.0, -4.0, 5.0),
        sl.Actuator("m2", "j2", -20.0, -0.5, 1.0),
        sl.Actuator("g2", "j2", 1.0, -3.0, 6.0),
        sl.Actuator("p3", "j3", 1.0, -7.0, 7.0, "position"),
    )
    assert model.effort_limit.tolist() == [30.0, 20.0 + 6.0, 7.0, np.inf]
    assert_close(model.armature, [0.0, 0.001 * 400, 0.0, 0.0], 1e-15)
    assert_close(model.damping, [0.0, 0.002 * 400, 0.0, 0.0], 1e-15)


def test_keyframes() -> None:
    references = sl.load_mjcf(MODELS / "ref.xml").reference_configurations
    assert references["home"].tolist() == [0.5, 0.2, -1.0] and references["key_1"].tolist() == [0, 0, 0]
    assert_close(references["qpos0"], [np.radians(40), 0.3, np.radians(-100)], 1e-15)
    bent = sl.load_mjcf(MODELS / "ball_chain.xml").reference_configurations["bent"]
    assert bent.reshape(4, 4).tolist() == [[0, 0, 0, 1], [1, 0, 0, 0], [0.5] * 4, [0, 0.8, 0, 0.6]]
    free = sl.load_mjcf(MODELS / "every_joint.xml").reference_configurations["qpos0"]
    quaternion = np.array([0.1, -0.3, 0.2, 0.9])
    assert_close(free[:7], [0.1, 0.2, 0.9, *quaternion / np.linalg.norm(quaternion)], 1e-15)


def test_what_has_no_counterpart_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        sl.load_mjcf(SAMPLE)
        sl.load_mjcf(MODELS / "four_bar.xml")
    for what in ("tendons: spatial, fixed", "fluid forces: density", "gravity compensation: head",
                 "no hinge or slide: actuator_0, actuator_1, actuator_7", "connect and weld: off, soft"):  # fmt: skip
        assert caplog.text.count(what) == 1, what


def test_needs_mujoco(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(sl.ModelError, match=r"pendulum.xml: MJCF files need the package mujoco: pip install"):
        sl.load_mjcf(MODELS / "pendulum.xml")
