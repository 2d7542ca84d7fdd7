"""The shipped robots: what they are, how they stand, and what Pinocchio and MuJoCo say to their files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import saltus as sl
from saltus.model import robots
from saltus.model.checks import inertia_flaw
from saltus.model.robots.srdf import read_poses
from saltus.model.robots.table import EXAMPLES, SHIPPED
from tests.closeness import assert_close
from tests.model.flicker import flickering
from tests.model.mujoco_peer import Peer, peer_at
from tests.model.robots import ROBOTS
from tests.model.shipped import mjcf_file
from tests.model.standing import holding_torques, loop_jacobian, low_points, lowest_points, motor_limits, touching
from tools.make_robots import FOLDER, files

# Degrees of freedom without the free flyer; mass of what moves [kg]; how many of them are driven; its height [m].
FACTS = {
    "quadruped": (12, 30.0, 12, 0.66),
    "humanoid": (33, 90.0, 33, 1.69),
    "humanoid_hands": (81, 90.4, 81, 1.69),
    "biped": (22, 31.7, 10, 1.19),
    "arm": (7, 16.5, 7, 0.75),
    "double_pendulum": (2, 1.8, 2, 2.18),
    "cartpole": (2, 1.8, 1, 1.335),
    "planar_human": (8, 75.0, 5, 1.75),
    "four_bar": (3, 1.2, 1, 0.56),
}
STANDING_ON_FEET = [name for name, robot in SHIPPED.items() if robot.feet]
URDF = [name for name, robot in SHIPPED.items() if robot.file.endswith(".urdf")]


@pytest.fixture(params=SHIPPED)
def robot(request: pytest.FixtureRequest) -> sl.Model:
    return sl.load_robot(request.param)


def standing(model: sl.Model) -> np.ndarray:
    return np.array(model.reference_configurations["standing"])


def close(ours: Any, theirs: Any, tolerance: float) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


# ------------------------------------------------------------------------------------------------------------ the robots


def test_generator_makes_the_files_that_are_there() -> None:
    made = files()
    committed = {path.name for path in FOLDER.iterdir() if path.suffix not in (".py", "")}
    assert set(made) == committed
    for name, text in made.items():
        assert (FOLDER / name).read_text(encoding="utf-8") == text, f"{name}: run python -m tools.make_robots"


def test_every_robot_has_its_facts() -> None:
    assert list(FACTS) == list(SHIPPED)


def test_facts(robot: sl.Model) -> None:
    joints, mass, driven, height = FACTS[robot.name]
    floating = robot.joints[1].kind == sl.JointKind.FREE_FLYER
    assert robot.nv == joints + 6 * floating
    assert abs(robot.total_mass - mass) < 0.05
    assert np.count_nonzero(motor_limits(robot)) == driven
    upside_down = np.diag([1.0, -1.0, -1.0, 1.0])
    placements = upside_down @ sl.joint_placements(robot, standing(robot))
    tops = [-point[2] for s in robot.shapes for point in lowest_points(s, placements[s.joint] @ s.placement)]
    assert abs(max(tops) - height) < 0.01


def test_inertias_are_those_of_bodies(robot: sl.Model) -> None:
    for joint in robot.joints[1:]:
        assert inertia_flaw(joint.mass, joint.inertia) is None
        if joint.mass:
            assert np.linalg.eigvalsh(joint.inertia)[0] > 0.0
    assert np.linalg.eigvalsh(sl.crba(robot, standing(robot)))[0] > 1e-7


def test_limits_are_sane(robot: sl.Model) -> None:
    own = [joint for joint in robot.joints[1:] if joint.kind != sl.JointKind.FREE_FLYER]
    iq, iv = [joint.iq for joint in own], [joint.iv for joint in own]
    lower, upper, q = robot.lower_position_limit[iq], robot.upper_position_limit[iq], standing(robot)[iq]
    assert (lower <= q).all() and (q <= upper).all()
    assert (lower <= 0.0).all() and (upper >= 0.0).all()
    assert (robot.velocity_limit[iv] > 1.0).all()
    assert (motor_limits(robot)[iv] < 1000.0).all()


def test_frames_of_feet_and_hands_exist(robot: sl.Model) -> None:
    feet, hands = sl.robot_frames(robot.name)
    for frame in (*feet, *hands):
        robot.frame_index(frame)


def test_feet_and_hands_come_in_the_order_of_their_joints(robot: sl.Model) -> None:
    """The k-th foot is that of the k-th leg in q."""
    for frames in sl.robot_frames(robot.name):
        joints = [robot.frames[robot.frame_index(frame)].joint for frame in frames]
        assert joints == sorted(joints)


@pytest.mark.parametrize("name", ["humanoid", "humanoid_hands", "quadruped", "biped"])
def test_left_comes_before_right(name: str) -> None:
    names = [joint.name for joint in sl.load_robot(name).joints]
    rights = [each for each in names if each.startswith(("right_", "RF_", "RH_"))]
    assert len(rights) > 5
    for right in rights:
        left = "left" + right.removeprefix("right") if right.startswith("right") else "L" + right.removeprefix("R")
        assert names.index(left) < names.index(right)


def test_core_dependencies_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    for name in SHIPPED:
        assert sl.load_robot(name).name == name


def test_looks_are_there(robot: sl.Model) -> None:
    """Every body with mass is seen, and every shape is on a body."""
    seen = {shape.joint for shape in robot.shapes}
    assert {index for index, joint in enumerate(robot.joints) if joint.mass} <= seen


def test_nothing_flickers(robot: sl.Model) -> None:
    assert flickering(robot, standing(robot)) == []


@pytest.mark.parametrize("name", ["humanoid", "humanoid_hands", "quadruped", "biped"])
def test_standing_is_symmetric(name: str) -> None:
    robot = sl.load_robot(name)
    com = sl.center_of_mass(robot, standing(robot))
    assert abs(com[1]) < 1e-9


# ------------------------------------------------------------------------------------------------------------- standing


@pytest.mark.parametrize("name", STANDING_ON_FEET)
def test_feet_are_on_the_ground_and_level(name: str) -> None:
    robot = sl.load_robot(name)
    placements = [sl.frame_placement(robot, standing(robot), foot) for foot in sl.robot_frames(name).feet]
    for placement in placements:
        assert abs(placement[2, 3]) < 1e-9
        close(placement[:3, 2], [0.0, 0.0, 1.0], 1e-9)
    joints = {robot.frames[robot.frame_index(foot)].joint for foot in sl.robot_frames(name).feet}
    assert joints == {joint for joint, _ in touching(robot, standing(robot))}


@pytest.mark.parametrize("name", STANDING_ON_FEET)
def test_center_of_mass_is_over_the_feet(name: str) -> None:
    robot = sl.load_robot(name)
    hull = ConvexHull([point[:2] for _, point in touching(robot, standing(robot))])
    normals, offsets = hull.equations[:, :2], hull.equations[:, 2]
    margins = -(normals @ sl.center_of_mass(robot, standing(robot))[:2] + offsets)
    assert margins.min() > 0.05


def test_nothing_is_below_the_ground(robot: sl.Model) -> None:
    assert min(point[2] for _, point in low_points(robot, standing(robot))) > -1e-6


def test_loops_are_closed(robot: sl.Model) -> None:
    for loop in robot.loops:
        ends = [sl.frame_placement(robot, standing(robot), frame)[:3, 3] for frame in (loop.frame_a, loop.frame_b)]
        close(ends[0], ends[1], 1e-10)
    assert len(robot.loops) == {"biped": 4, "four_bar": 1}.get(robot.name, 0)


def test_loops_of_the_biped_are_independent() -> None:
    robot = sl.load_robot("biped")
    J = np.concatenate([loop_jacobian(robot, standing(robot), loop) for loop in robot.loops])
    assert np.linalg.svd(J)[1].min() > 1e-2


def test_motors_can_hold_it(robot: sl.Model) -> None:
    torques, share = holding_torques(robot, standing(robot))
    assert share < 0.5
    assert np.abs(torques[motor_limits(robot) == 0]).max(initial=0.0) < 1e-6


# --------------------------------------------------------------------------------------------------------------- oracles


@pytest.mark.parametrize("name", URDF)
def test_pinocchio_agrees(name: str) -> None:
    robot, root = sl.load_robot(name), pin.JointModelFreeFlyer()
    path = str(FOLDER / f"{name}.urdf")
    peer = pin.buildModelFromUrdf(path, root) if SHIPPED[name].floating_base else pin.buildModelFromUrdf(path)
    pin.loadReferenceConfigurations(peer, str(FOLDER / f"{name}.srdf"), False)
    close(standing(robot), peer.referenceConfigurations["standing"], 1e-15)
    data = peer.createData()
    for q in (standing(robot), sl.random_configuration(robot, seed=3)):
        M = pin.crba(peer, data, q)
        close(sl.crba(robot, q), np.triu(M) + np.triu(M, 1).T, 1e-11)


def mujoco_at(robot: sl.Model, path: Path, q: np.ndarray, v: np.ndarray) -> tuple[Peer, np.ndarray]:
    """MuJoCo at our q and v, and where each of its degrees of freedom is among ours (nv,)."""
    in_its_order = sl.load_mjcf(path)
    assert {joint.name for joint in in_its_order.joints} == {joint.name for joint in robot.joints}
    ours = [robot.joints[robot.joint_index(joint.name)] for joint in in_its_order.joints[1:]]
    iq = np.concatenate([np.arange(joint.iq, joint.iq + joint.nq) for joint in ours])
    iv = np.concatenate([np.arange(joint.iv, joint.iv + joint.nv) for joint in ours])
    return peer_at(path, in_its_order, q[iq], v[iv], np.zeros(robot.nv)), iv


def test_mujoco_agrees(robot: sl.Model, tmp_path: Path) -> None:
    """Mass matrix, bias forces and gaps of loops: of the URDF or SDF file by us, of MJCF from the same numbers by MuJoCo."""
    path, rng = mjcf_file(robot.name, tmp_path), np.random.default_rng(5)
    for q in (standing(robot), sl.random_configuration(robot, rng)):
        v = rng.normal(size=robot.nv)
        peer, iv = mujoco_at(robot, path, q, v)
        M, T = peer.mass_matrix, peer.T
        assert_close(sl.crba(robot, q)[np.ix_(iv, iv)], T.T @ M @ T, 1e-9, what="mass matrix")
        bias = T.T @ (peer.data.qfrc_bias + M @ peer.drift)
        assert_close(sl.nonlinear_effects(robot, q, v)[iv], bias, 1e-9, what="bias forces")
        assert peer.data.ne == 3 * len(robot.loops)
        for index, loop in enumerate(robot.loops):
            assert loop.name == peer.m.eq(index).name
            a, b = (sl.frame_placement(robot, q, frame)[:3, 3] for frame in (loop.frame_a, loop.frame_b))
            assert_close(b - a, peer.data.efc_pos[3 * index : 3 * index + 3], 1e-9, scale=1.0, what=loop.name)


def test_mujoco_stands_still_under_holding_torques(robot: sl.Model, tmp_path: Path) -> None:
    """On a floor, with the torques that statics asks for: half of gravity's fall in 0.1 s is 25 mm, it moves by 2."""
    spec = mujoco.MjSpec.from_file(str(mjcf_file(robot.name, tmp_path)))
    # A floor as stiff as the loops; MuJoCo's usual one gives way by millimetres.
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1, 1, 1], priority=1, solref=[0.005, 1.0])
    compiled = spec.compile()
    data = mujoco.MjData(compiled)
    mujoco.mj_resetDataKeyframe(compiled, data, 0)
    torques, _ = holding_torques(robot, standing(robot))
    for index in range(compiled.nu):
        joint = compiled.joint(compiled.actuator_trnid[index, 0]).name
        data.ctrl[index] = torques[robot.joints[robot.joint_index(joint)].iv]
    mujoco.mj_forward(compiled, data)
    before = data.xpos.copy()
    while data.time < 0.1:
        mujoco.mj_step(compiled, data)
    assert np.abs(data.efc_pos[: data.ne]).max(initial=0.0) < 1e-3
    assert np.abs(data.xpos - before).max() < 2e-3


def inertia_of(compiled: Any, body: int) -> np.ndarray:
    """About the centre of mass, along the axes of the body: (3, 3)."""
    axes = Rotation.from_quat(np.roll(compiled.body_iquat[body], -1)).as_matrix()
    return np.asarray(axes @ np.diag(compiled.body_inertia[body]) @ axes.T)


def test_inertias_are_those_of_the_shapes(robot: sl.Model, tmp_path: Path) -> None:
    """MuJoCo makes the inertias of all four kinds of solids from the geoms; ours are these, scaled to the mass."""
    spec = mujoco.MjSpec.from_file(str(mjcf_file(robot.name, tmp_path)))
    given = spec.compile()
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_TRUE
    from_shapes = spec.compile()
    for body in range(1, given.nbody):
        scale = given.body_mass[body] / from_shapes.body_mass[body]
        close(inertia_of(given, body), scale * inertia_of(from_shapes, body), 1e-8)
        close(given.body_ipos[body], from_shapes.body_ipos[body], 1e-9)


def test_four_bar_can_turn_all_the_way_round() -> None:
    """Newton's method follows the loop through a full turn of the crank: coupler and rocker come back."""
    robot = sl.load_robot("four_bar")
    (loop,) = robot.loops
    q = standing(robot)
    crank, others = robot.joints[robot.joint_index("crank_hinge")].iq, [1, 2]
    for angle in np.linspace(0.0, 2.0 * np.pi, 73):
        q[crank] = angle
        for _ in range(20):
            ends = [sl.frame_placement(robot, q, frame)[:3, 3] for frame in (loop.frame_a, loop.frame_b)]
            J = loop_jacobian(robot, q, loop)[:, others]
            q[others] -= np.linalg.lstsq(J, ends[0] - ends[1], rcond=None)[0]
        close(ends[0], ends[1], 1e-12)
    close(q[2], standing(robot)[2], 1e-9)


# ---------------------------------------------------------------------------------------------------- example-robot-data


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_robot(name: str) -> None:
    """It loads, its frames are there, and its poses are Pinocchio's."""
    robot, entry = sl.load_robot(name), EXAMPLES[name]
    assert name in sl.robot_names()
    for frame in (*entry.feet, *entry.hands):
        assert any(each.name == frame for each in robot.frames), frame
    sl.crba(robot, standing(robot))  # which checks q
    if entry.srdf and entry.file.endswith(".urdf"):
        path = str(ROBOTS / entry.file)
        peer = pin.buildModelFromUrdf(path, pin.JointModelFreeFlyer()) if entry.floating_base else None
        peer = peer or pin.buildModelFromUrdf(path)
        pin.loadReferenceConfigurations(peer, str(ROBOTS / entry.srdf), False)
        for pose, q in ((each.key(), each.data()) for each in peer.referenceConfigurations):
            close(robot.reference_configurations[pose], pin.normalize(peer, q), 1e-15)
        start = len(entry.base)
        close(standing(robot)[start:], robot.reference_configurations[entry.standing][start:], 0.0)


@pytest.mark.parametrize("name", [name for name, entry in EXAMPLES.items() if entry.feet])
def test_example_robot_has_its_feet_near_the_ground(name: str) -> None:
    """Frames of feet are at soles or ankles; all at one height, half of them to the left, the weight above."""
    robot, feet = sl.load_robot(name), sl.robot_frames(name).feet
    places = np.array([sl.frame_placement(robot, standing(robot), foot)[:3, 3] for foot in feet])
    assert -0.01 < places[:, 2].min() and places[:, 2].max() < 0.11 and np.ptp(places[:, 2]) < 2e-3
    assert (abs(places[:, 1]) > 0.02).all() and (places[:, 1] > 0).sum() == len(feet) // 2 and places[0, 1] > 0
    assert sl.center_of_mass(robot, standing(robot))[2] > places[:, 2].max() + 0.1


def test_without_example_robot_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(robots, "_examples_folder", lambda: None)
    assert sl.robot_names() == tuple(SHIPPED)
    assert sl.load_robot("arm").nv == 7
    with pytest.raises(sl.ModelError, match="'talos' is one of example-robot-data's: pip install example-robot-data"):
        sl.load_robot("talos")


# ----------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    "name, message",
    [
        ("quadrupet", "there is no robot 'quadrupet'; did you mean 'quadruped'"),
        ("anymall", "did you mean 'anymal'"),
        ("", "there is no robot ''; known are quadruped, humanoid"),
        ("../quadruped", "did you mean 'quadruped'"),
    ],
)
def test_unknown_name(name: Any, message: str) -> None:
    for ask in (sl.load_robot, sl.robot_frames):
        with pytest.raises(sl.ModelError, match=message):
            ask(name)


@pytest.mark.parametrize(
    "inside, message",
    [
        (
            '<joint name="LF_HAA" value="zero"/>',
            "pose 'p': joint 'LF_HAA' has the value 'zero', expected a finite number",
        ),
        ('<joint name="LF_HAA" value="inf"/>', "expected a finite number"),
        ('<joint name="LF_HAA" value="1 2"/>', "expected a finite number"),
        ('<joint name="LF_HAA"/>', "has the value '', expected a finite number"),
        ('<joint name="root_joint" value="0 0 1"/>', "joint 'root_joint' has the value '0 0 1', expected 7 finite"),
        ('<joint name="root_joint" value="0 0 1 0 0 0 0"/>', "expected 7 finite numbers, rotations of length 1"),
    ],
)
def test_bad_pose(tmp_path: Path, inside: str, message: str) -> None:
    path = tmp_path / "robot.srdf"
    path.write_text(f'<robot name="r"><group_state name="p" group="g">{inside}</group_state></robot>')
    with pytest.raises(sl.ModelError, match=message):
        read_poses(path, sl.load_robot("quadruped"))


def test_pose_of_continuous_joint_is_its_angle(tmp_path: Path) -> None:
    builder = sl.ModelBuilder("wheel")
    builder.add_joint("hub", "continuous")
    builder.add_body("hub", 1.0, inertia=np.eye(3))
    path = tmp_path / "robot.srdf"
    path.write_text('<robot name="r"><group_state name="p"><joint name="hub" value="0.5"/></group_state></robot>')
    close(read_poses(path, builder.build())["p"], [np.cos(0.5), np.sin(0.5)], 1e-15)
