"""Colliders of files and of the shipped robots, the pairs that are kept apart, hulls of meshes, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import trimesh

import saltus as sl
from saltus.collision.hulls import MOST_CORNERS, hull_of, polytope_of
from saltus.collision.scene import candidate_pairs
from saltus.model.robots.table import SHIPPED
from tests.collision.bodies import floating, placed

BOX = '<geometry><box size="1 2 3"/></geometry>'
URDF = f"""<robot name="r">
  <link name="base"><visual>{BOX}</visual><collision><geometry><sphere radius="0.3"/></geometry></collision></link>
  <link name="foot"><collision name="sole"><origin xyz="0 0 -1"/>{BOX}</collision></link>
  <link name="bar">
    <collision><origin xyz="0.2 0 0"/><geometry><cylinder radius="0.1" length="0.4"/></geometry></collision>
    <collision><origin xyz="0.2 0 0.2"/><geometry><sphere radius="0.1"/></geometry></collision>
    <collision><origin xyz="0.2 0 -0.2"/><geometry><sphere radius="0.1"/></geometry></collision>
  </link>
  <joint name="fixed" type="fixed"><parent link="base"/><child link="foot"/><origin xyz="0 0 -1"/></joint>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="bar"/><axis xyz="0 1 0"/></joint>
</robot>"""


def test_urdf(tmp_path: Path) -> None:
    file = tmp_path / "r.urdf"
    file.write_text(URDF)
    model = sl.load_urdf(file)
    described = {(each.name, each.frame, each.kind, each.joint) for each in model.colliders}
    assert described == {("base", "base", "sphere", 0), ("bar", "bar", "capsule", 1), ("sole", "foot", "box", 0)}
    (sole,) = (each for each in model.colliders if each.kind == "box")
    np.testing.assert_allclose(sole.placement[:3, 3], [0, 0, -2])
    (bar,) = (each for each in model.colliders if each.kind == "capsule")
    np.testing.assert_allclose(bar.size, [0.1, 0.4])
    assert [shape.kind for shape in model.shapes] == ["box"]
    saved = tmp_path / "saved.urdf"
    sl.save_urdf(model, saved)
    again = sl.load_urdf(saved)
    for ours, theirs in zip(
        sorted(model.colliders, key=lambda x: x.kind), sorted(again.colliders, key=lambda x: x.kind), strict=True
    ):
        assert ours.kind == theirs.kind
        np.testing.assert_allclose(ours.placement, theirs.placement, atol=1e-12)
        np.testing.assert_allclose(ours.size, theirs.size)


def test_sdf(tmp_path: Path) -> None:
    file = tmp_path / "r.sdf"
    file.write_text("""<sdf version="1.9"><model name="r"><link name="a">
      <collision name="c"><pose>0 0 1 0 0 0</pose><geometry><ellipsoid><radii>1 2 3</radii></ellipsoid></geometry>
        <surface><friction><ode><mu>0.3</mu></ode></friction></surface></collision>
      <collision name="d"><geometry><capsule><radius>1</radius><length>2</length></capsule></geometry></collision>
    </link></model></sdf>""")
    model = sl.load_sdf(file)
    assert [(each.name, each.kind, each.friction, each.frame) for each in model.colliders] == [
        ("c", "ellipsoid", 0.3, "a"),
        ("d", "capsule", None, "a"),
    ]


MJCF = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <body name="a"><freejoint/><geom name="a1" size="0.1" friction="0.4"/>
    <geom name="a2" size="0.1" contype="0" conaffinity="0"/></body>
  <body name="b"><freejoint/><geom name="b1" size="0.1" contype="2" conaffinity="2"/>
    <geom name="b2" size="0.1" contype="1" conaffinity="2"/></body>
  <body name="c"><freejoint/><geom name="c1" type="box" size="0.1 0.2 0.3"/></body>
</worldbody><contact><exclude body1="a" body2="c"/></contact></mujoco>"""


def test_mjcf(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    file = tmp_path / "r.xml"
    file.write_text(MJCF)
    model = sl.load_mjcf(file)
    assert [each.name for each in model.colliders] == ["a1", "b1", "b2", "c1"]
    assert model.colliders[0].friction == 0.4 and model.colliders[3].size.tolist() == [0.2, 0.4, 0.6]
    # MuJoCo's own word: everything at one place, which pairs touch?
    theirs = mujoco.MjModel.from_xml_path(str(file))
    data = mujoco.MjData(theirs)
    mujoco.mj_forward(theirs, data)
    touching = {tuple(sorted(theirs.geom(g).name for g in pair)) for pair in data.contact.geom}
    assert pairs(model) == {pair for pair in touching if "floor" not in pair}


def chain(*carrying: bool) -> sl.Model:
    """A chain of hinges on a free base; some of its bodies have a collider."""
    builder = sl.ModelBuilder("chain")
    last: str | int = "universe"
    for k, carries in enumerate(carrying):
        last = builder.add_joint(f"joint_{k}", "revolute" if k else "free_flyer", last, placed(position=(0.3, 0, 0)))
        builder.add_body(last, mass=1.0, inertia=np.eye(3), name=f"link_{k}")
        if carries:
            builder.add_collider(last, "sphere", (0.1,), name=f"ball_{k}", frame=f"link_{k}")
    return builder.build()


def pairs(model: sl.Model) -> set[tuple[str, str]]:
    return {tuple(sorted(model.colliders[k].name for k in pair)) for pair in candidate_pairs(model)}


def test_neighbours_never_touch() -> None:
    assert pairs(chain(True, True, True, True)) == {("ball_0", "ball_2"), ("ball_0", "ball_3"), ("ball_1", "ball_3")}
    assert pairs(chain(True, False, True, True)) == {("ball_0", "ball_3")}


@pytest.mark.parametrize("names", [("ball_0", "ball_2"), ("link_2", "link_0"), ("joint_0", "joint_2")])
def test_pairs_that_are_kept_apart(names: tuple[str, str]) -> None:
    model = chain(True, True, True, True).replace(apart=[names])
    assert pairs(model) == {("ball_0", "ball_3"), ("ball_1", "ball_3")}
    assert pickle.loads(pickle.dumps(model)).apart == (names,)


def test_free_bodies_touch_each_other_and_what_is_fixed() -> None:
    builder = sl.ModelBuilder("pile")
    builder.add_collider(0, "box", (1, 1, 1), name="table")
    for name in ("a", "b"):
        builder.add_body(builder.add_joint(name, "free_flyer"), mass=1.0, inertia=np.eye(3))
        builder.add_collider(name, "sphere", (0.1,), name=name)
    assert pairs(builder.build()) == {("a", "b"), ("a", "table"), ("b", "table")}
    found = sl.find_contacts(builder.build(), sl.Ground(height=-10.0), builder.build().neutral())
    assert ("a", "table") in found.pairs


def test_friction_of_pairs() -> None:
    """The geometric mean; that of the other where one has none; that of a terrain where both have none."""
    frictions = {("a", "b"): (0.9, 0.4), ("a", "c"): (0.9, None), ("c", "d"): (None, None)}
    for (one, other), given in frictions.items():
        builder = sl.ModelBuilder("pair")
        for name, friction in zip((one, other), given, strict=True):
            builder.add_body(builder.add_joint(name, "free_flyer"), mass=1.0, inertia=np.eye(3))
            builder.add_collider(name, "sphere", (0.1,), friction=friction)
        model = builder.build()
        found = sl.find_contacts(model, None, model.neutral())
        expected = {(0.9, 0.4): 0.6, (0.9, None): 0.9, (None, None): 0.8}[given]
        assert found.friction[0] == pytest.approx(expected) and found.restitution[0] == 0.0


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_robots_stand_apart(name: str) -> None:
    """Nothing of them touches itself, and the feet touch the ground with as many points as they should."""
    model = sl.load_robot(name)
    q = model.reference_configurations["standing"]
    known = {shape.frame for shape in model.colliders} | {frame.name for frame in model.frames}
    assert {each for pair in model.apart for each in pair} <= known
    assert not sl.in_collision(model, q)
    feet = {"quadruped": 4, "humanoid": 8, "humanoid_hands": 8, "biped": 8, "planar_human": 8}
    found = sl.find_contacts(model, sl.Ground(), q, margin=1e-4)
    assert found.mask.sum() == feet.get(name, 0)
    np.testing.assert_allclose(found.gap[found.mask], 0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["quadruped", "humanoid", "biped"])
def test_what_srdf_files_keep_apart_does_not_touch(name: str) -> None:
    model = sl.load_robot(name)
    q = np.tile(model.neutral(), (2000, 1))
    rng, low, high = np.random.default_rng(0), model.lower_position_limit[7:], model.upper_position_limit[7:]
    q[:, 7:] = rng.uniform(low, high, size=(2000, model.nq - 7))
    everything = sl.Scene(model.replace(apart=()), None, margin=0.0)
    kept = sl.Scene(model, None, margin=0.0)
    found = sl.find_contacts(everything, None, q)
    left_out = {everything.slots[k] for k in range(len(everything.slots))} - set(kept.slots)
    touching = {pair for k, pair in enumerate(found.pairs) if found.mask[:, k].any()}
    assert left_out and not (touching & left_out)


def test_specialised_models_keep_their_colliders() -> None:
    model = floating("box")
    own = sl.specialise(model)
    assert own.colliders == model.colliders
    q = np.array([0.0, 0.0, 0.05, 0.0, 0.0, 0.0, 1.0])
    ours, theirs = (sl.find_contacts(each, sl.Ground(), q) for each in (own, model))
    np.testing.assert_allclose(ours.gap, theirs.gap, atol=1e-12)


# ---------------------------------------------------------------------------------------------------- hulls


def test_hull_of_a_mesh_is_within_it_and_nearly_it(tmp_path: Path) -> None:
    path = tmp_path / "ball.stl"
    trimesh.creation.icosphere(subdivisions=4, radius=1.0).export(path)
    builder = sl.ModelBuilder("mesh")
    builder.add_collider(0, "mesh", (0.1, 0.2, 0.3), path=str(path))
    hull = polytope_of(builder.build().colliders[0])
    assert len(hull.corners) == MOST_CORNERS
    np.testing.assert_allclose(np.linalg.norm(hull.corners / [0.1, 0.2, 0.3], axis=1), 1.0, atol=1e-6)
    assert (hull.corners @ hull.normals.T < hull.offsets + 1e-9).all()
    assert len(hull.corners) - len(hull.edges) + len(hull.normals) == 2  # Euler
    heights = hull.offsets / np.linalg.norm(hull.normals * [0.1, 0.2, 0.3], axis=1)
    assert heights.min() > 0.75  # of the ellipsoid's


def test_faces_of_a_cube_are_six() -> None:
    corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
    hull = hull_of(np.concatenate([corners, [[0.5, 0.5, 0.5], [0.5, 0.0, 0.0]]]))
    assert (len(hull.corners), len(hull.normals), len(hull.edges), len(hull.directions)) == (8, 6, 12, 3)


def test_flat_meshes_get_some_body() -> None:
    hull = hull_of(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]], float))
    assert np.ptp(hull.corners[:, 2]) == pytest.approx(2e-4)


# ---------------------------------------------------------------------------------------------------- errors


def test_refused(tmp_path: Path) -> None:
    builder = sl.ModelBuilder("wrong")
    with pytest.raises(sl.ModelError, match="its friction is -1.0, expected no negative number"):
        builder.add_collider(0, "sphere", (1,), friction=-1.0)
    with pytest.raises(sl.ModelError, match="its size is .*, expected positive numbers"):
        builder.add_collider(0, "box", (1, 1, 0))
    builder.add_collider(0, "mesh", (1, 1, 1), path=str(tmp_path / "none.stl"), name="hook")
    with pytest.raises(sl.ModelError, match="collider 'hook': its mesh .*none.stl is not there"):
        sl.find_contacts(builder.build(), sl.Ground(), np.zeros(0))
    with pytest.raises(TypeError, match=r"apart\[0\] is \('a',\), expected two names"):
        floating("box").replace(apart=[("a",)])
    with pytest.raises(ValueError, match="method is 'bullet', expected 'kernels' or 'coal'"):
        sl.self_distance(floating("box"), floating("box").neutral(), method="bullet")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"q has shape \(3,\), expected"):
        sl.find_contacts(floating("box"), sl.Ground(), np.zeros(3))


def test_mimic_joints_are_refused() -> None:
    builder = sl.ModelBuilder("gripper")
    builder.add_body(builder.add_joint("a", "revolute"), mass=1.0, inertia=np.eye(3))
    builder.add_body(builder.add_joint("b", "revolute", mimic=sl.Mimic("a", 1.0)), mass=1.0, inertia=np.eye(3))
    with pytest.raises(sl.ModelError, match="model 'gripper' has mimic joints"):
        sl.Scene(builder.build())


def test_srdf(tmp_path: Path) -> None:
    file = tmp_path / "r.srdf"
    file.write_text('<robot name="r"><disable_collisions link1="link_0" link2="link_2" reason="Never"/></robot>')
    model = sl.load_srdf(chain(True, True, True, True), file)
    assert model.apart == (("link_0", "link_2"),) and pairs(model) == {("ball_0", "ball_3"), ("ball_1", "ball_3")}
    file.write_text('<robot name="r"><disable_collisions link1="link_0"/></robot>')
    with pytest.raises(sl.ModelError, match="r.srdf: line 1: <disable_collisions> lacks link1 or link2"):
        sl.load_srdf(model, file)
