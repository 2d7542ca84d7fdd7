"""`load_sdf` on the five Cassie files of example-robot-data, against a model made from the XML by another way."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import saltus as sl
from tests.closeness import assert_close
from tests.model.robots import ROBOTS
from tests.oracles import Ad, ad, inverse, placement_of, shift, skew

FILES = sorted((ROBOTS / "cassie_description" / "robots").glob("*.sdf"))
CASSIE = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@dataclass
class ByHand:
    """The file as it stands: absolute poses of links, absolute screws of joints, world's axes at the model's origin."""

    path: Path
    links: dict[str, ElementTree.Element] = field(default_factory=dict)
    joints: dict[str, ElementTree.Element] = field(default_factory=dict)

    def __post_init__(self) -> None:
        model = ElementTree.parse(self.path).getroot().find("model")
        self.links = {link.get("name"): link for link in model.findall("link")}
        self.joints = {joint.get("name"): joint for joint in model.findall("joint") if joint.get("type") != "gearbox"}

    @staticmethod
    def pose(element: ElementTree.Element) -> np.ndarray:
        words = (element.findtext("pose") or "0 0 0 0 0 0").split()
        x, y, z, roll, pitch, yaw = map(float, words)
        return placement_of(Rotation.from_euler("ZYX", [yaw, pitch, roll]).as_matrix(), [x, y, z])

    def joint_pose(self, name: str) -> np.ndarray:
        joint = self.joints[name]
        return self.pose(self.links[joint.findtext("child")]) @ self.pose(joint)

    def screws(self, name: str) -> np.ndarray:
        """(6, dofs) in the world while no joint moves, linear first; a ball's along the axes of its joint frame."""
        joint, X = self.joints[name], self.joint_pose(name)
        kind, axis = joint.get("type"), np.eye(3)
        if kind != "ball":
            axis = np.array(joint.findtext("axis/xyz").split(), float)[:, None]
            axis = axis / np.linalg.norm(axis)
            if joint.findtext("axis/use_parent_model_frame") == "1":
                axis = X[:3, :3].T @ axis
        axis = X[:3, :3] @ axis
        if kind == "prismatic":
            return np.vstack([axis, 0 * axis])
        return np.vstack([skew(X[:3, 3]) @ axis, axis])

    def inertia(self, name: str) -> np.ndarray:
        """(6, 6) of a link at the world's origin, while no joint moves."""
        inertial = self.links[name].find("inertial")
        X = self.pose(self.links[name]) @ self.pose(inertial)
        mass = float(inertial.findtext("mass"))
        moment = {key: float(inertial.findtext(f"inertia/i{key}")) for key in ("xx", "yy", "zz", "xy", "xz", "yz")}
        J = np.array([[moment["".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
        at_com = np.block([[mass * np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), J]])
        return Ad(inverse(X)).T @ at_com @ Ad(inverse(X))


def dense_dynamics(file: ByHand, model: sl.Model, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """M and b by products of exponentials: link i is moved by G_i, the product of exp(screw q) of the joints above it."""
    floating = model.joints[1].name == "root_joint"
    root = file.links["pelvis"]
    G, J = {"world": np.eye(4)}, {"world": np.zeros((6, model.nv))}
    V, A = {"world": np.zeros(6)}, {"world": np.zeros(6)}
    gravity = np.array([*model.gravity, 0.0, 0.0, 0.0])
    M, b = np.zeros((model.nv, model.nv)), np.zeros(model.nv)
    for joint in model.joints[1:]:
        dofs = slice(joint.iv, joint.iv + joint.nv)
        own = q[joint.iq : joint.iq + joint.nq]
        if joint.name == "root_joint":
            parent, child = "world", "pelvis"
            X = placement_of(Rotation.from_quat(own[3:]).as_matrix(), own[:3])
            G[child] = X @ inverse(file.pose(root))
            S = Ad(X)
        else:
            element = file.joints[joint.name]
            parent, child = element.findtext("parent"), element.findtext("child")
            at, screws = file.joint_pose(joint.name), file.screws(joint.name)
            if element.get("type") == "ball":
                turn = at @ placement_of(Rotation.from_quat(own).as_matrix(), np.zeros(3)) @ inverse(at)
            elif element.get("type") == "prismatic":
                turn = shift(screws[:3, 0] * own[0])
            else:
                p = at[:3, 3]
                turn = shift(p) @ placement_of(Rotation.from_rotvec(screws[3:, 0] * own[0]).as_matrix(), np.zeros(3))
                turn = turn @ shift(-p)
            G[child] = G[parent] @ turn
            S = Ad(G[child]) @ screws
        J[child] = J[parent].copy()
        J[child][:, dofs] = S
        V[child] = V[parent] + S @ v[dofs]
        A[child] = A[parent] + ad(V[child]) @ S @ v[dofs]
        I = Ad(inverse(G[child])).T @ file.inertia(child) @ Ad(inverse(G[child]))
        M += J[child].T @ I @ J[child]
        b += J[child].T @ (I @ (A[child] - gravity) - ad(V[child]).T @ I @ V[child])
    assert floating == ("static" not in file.joints)
    assert set(G) == {"world", *file.links}
    return M, b


def test_all_files_are_there() -> None:
    assert [path.stem for path in FILES] == [
        "cassie", "cassie_reduced", "cassie_simple", "cassie_v2", "cassie_wo_gearbox_spring",
    ]  # fmt: skip


@CASSIE
def test_bodies_joints_and_loops(path: Path) -> None:
    file, model = ByHand(path), sl.load_sdf(path)
    bodies = {frame.name for frame in model.frames if frame.kind == sl.FrameKind.BODY}
    assert bodies == set(file.links)
    tree = {joint.name for joint in model.joints[1:]} - {"root_joint"}
    loops = {loop.name: loop for loop in model.loops}
    assert tree | set(loops) == set(file.joints) and not tree & set(loops)
    # A joint for every link, but for a pelvis that floats: what is left closes loops.
    assert len(tree) == len(file.links) - (0 if "static" in file.joints else 1)
    assert len(loops) == len(file.joints) - len(tree) == (6 if path.stem == "cassie" else 4)
    dims = {"ball": 3, "revolute": 5}
    for name, loop in loops.items():
        assert loop.dim == dims[file.joints[name].get("type")]
    for name in tree:
        joint, element = model.joints[model.joint_index(name)], file.joints[name]
        kinds = {"revolute": sl.JointKind.REVOLUTE, "prismatic": sl.JointKind.PRISMATIC, "ball": sl.JointKind.SPHERICAL}
        assert joint.kind == kinds[element.get("type")]
        if joint.kind.has_axis:
            for limit, ours in (("lower", model.lower_position_limit), ("upper", model.upper_position_limit)):
                none = "-inf" if limit == "lower" else "inf"
                assert ours[joint.iq] == float(element.findtext(f"axis/limit/{limit}") or none)
            assert model.damping[joint.iv] == float(element.findtext("axis/dynamics/damping") or 0.0)
    assert len(model.shapes) == sum(len(link.findall("visual")) for link in file.links.values())
    assert all(Path(shape.path).is_file() for shape in model.shapes if shape.kind == "mesh")


@CASSIE
def test_loops_are_closed_as_the_file_has_them(path: Path) -> None:
    """At the file's own pose the two frames of every loop are at the joint, z along its axis."""
    file, model = ByHand(path), sl.load_sdf(path)
    placements = sl.frame_placements(model, model.reference_configurations["initial"])
    for loop in model.loops:
        a, b = (placements[model.frame_index(frame)] for frame in (loop.frame_a, loop.frame_b))
        assert_close(a, b, 1e-12)
        assert_close(a[:3, 3], file.joint_pose(loop.name)[:3, 3], 1e-12)
        if loop.dim == 5:
            assert_close(a[:3, 2], file.screws(loop.name)[3:, 0], 1e-12)
        bodies = {model.frames[model.frame_index(frame)].joint for frame in (loop.frame_a, loop.frame_b)}
        assert len(bodies) == 2


@CASSIE
def test_tree_dynamics(path: Path) -> None:
    file, model = ByHand(path), sl.load_sdf(path)
    rng = np.random.default_rng(1)
    for _ in range(3):
        q = sl.random_configuration(model, rng)
        v, tau = rng.normal(size=(2, model.nv))
        M, b = dense_dynamics(file, model, q, v)
        assert_close(sl.crba(model, q), M, 1e-10, what="mass matrix")
        assert_close(sl.nonlinear_effects(model, q, v), b, 1e-10, what="bias forces")
        assert_close(sl.aba(model, q, v, tau), np.linalg.solve(M, tau - b), 1e-10, what="accelerations")


def test_shafts_of_gearboxes_are_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        sl.load_sdf(FILES[0])
    assert caplog.text.count("no counterpart for shafts that gearboxes turn: left-roll-joint") == 1
    assert "springs" not in caplog.text


@CASSIE
def test_springs_and_motors(path: Path) -> None:
    """As the elements say; the gearboxes, in the file that has them, are motors of the joints behind."""
    model = sl.load_sdf(path)
    stiff = {joint.name: model.stiffness[joint.iv] for joint in model.joints[1:] if model.stiffness[joint.iv]}
    assert stiff == {f"{side}-{name}": k for side in ("left", "right") for name, k in (
        ("knee-shin-joint", 1500.0), ("tarsus-spring-joint", 1250.0))}  # fmt: skip
    assert not model.spring_reference.any()
    gears = {"roll": -25.0, "yaw": -25.0, "pitch": -16.0, "knee": -16.0, "foot": -50.0}
    found = {actuator.joint: actuator.gear for actuator in model.actuators}
    expected = {f"{side}-{name}-op": gear for side in ("left", "right") for name, gear in gears.items()}
    assert found == (expected if path.stem == "cassie" else {})
    if found:
        assert [next(j.name for j in model.joints if j.iv == k) for k in sl.motors_of(model)] == [*expected]


# ------------------------------------------------------------------------------------------------- small files by hand


def sdf(*inside: str, version: str = "1.9", pose: str = "") -> str:
    return f'<sdf version="{version}"><model name="test">{pose}{"".join(inside)}</model></sdf>'


def link(name: str, pose: str = "", inside: str = "") -> str:
    inertial = (
        "<inertial><pose>0.1 0 0.2 0.3 0 0</pose><mass>2</mass>"
        "<inertia><ixx>0.1</ixx><iyy>0.12</iyy><izz>0.08</izz><ixy>0.01</ixy></inertia></inertial>"
    )
    return f'<link name="{name}">{pose}{inertial}{inside}</link>'


def joint(
    name: str, parent: str, child: str, kind: str = "revolute", inside: str = "<axis><xyz>0 1 0</xyz></axis>"
) -> str:
    return f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>{inside}</joint>'


def load(folder: Path, text: str, **options: bool) -> sl.Model:
    path = folder / "robot.sdf"
    path.write_text(text, encoding="utf-8")
    return sl.load_sdf(path, **options)


def at(model: sl.Model, name: str, q: np.ndarray | None = None) -> np.ndarray:
    return sl.frame_placement(model, model.neutral() if q is None else q, name)


def test_poses_relative_to_anything(tmp_path: Path) -> None:
    """The same robot with absolute poses, as version 1.6 has them, and relative to links, joints and frames."""
    absolute = sdf(
        link("a", "<pose>0 0 1 0 0 0.5</pose>"),
        link("b", "<pose>1 0 1 0.1 0 0.5</pose>"),
        joint("j", "a", "b", inside="<pose>0.1 0.2 0 0 0.3 0</pose><axis><xyz>0 0 2</xyz></axis>"),
        version="1.6",
        pose="<pose>5 6 7 0 0 1</pose>",
    )
    a, b = (
        placement_of(Rotation.from_euler("ZYX", angles).as_matrix(), position)
        for angles, position in (((0.5, 0, 0), (0, 0, 1)), ((0.5, 0, 0.1), (1, 0, 1)))
    )
    a_b = inverse(a) @ b
    quat = " ".join(map(repr, [*a_b[:3, 3].tolist(), *Rotation.from_matrix(a_b[:3, :3]).as_quat().tolist()]))
    j = b @ placement_of(Rotation.from_euler("y", 0.3).as_matrix(), [0.1, 0.2, 0])
    axis = " ".join(map(repr, (a[:3, :3].T @ j[:3, 2]).tolist()))
    relative = sdf(
        '<frame name="f" attached_to="a"><pose>0 0 0.5 0 0 0</pose></frame>',
        link("a", f'<pose degrees="true">0 0 1 0 0 {float(np.degrees(0.5))!r}</pose>'),
        link("b", f'<pose relative_to="a" rotation_format="quat_xyzw">{quat}</pose>'),
        joint("j", "f", "b", inside=f'<pose>0.1 0.2 0 0 0.3 0</pose><axis><xyz expressed_in="a">{axis}</xyz></axis>'),
        pose="<pose>5 6 7 0 0 1</pose>",
    )
    models = [load(tmp_path, text, floating_base=False) for text in (absolute, relative)]
    world = placement_of(Rotation.from_euler("z", 1.0).as_matrix(), [5, 6, 7])
    for model in models:
        assert_close(at(model, "b"), world @ b, 1e-12)
        assert_close(at(model, "j"), world @ j, 1e-12)
    assert_close(at(models[1], "f"), world @ a @ shift([0, 0, 0.5]), 1e-12)
    q, v = np.array([0.7]), np.array([1.3])
    assert_close(sl.crba(models[0], q), sl.crba(models[1], q), 1e-12)
    assert_close(sl.nonlinear_effects(models[0], q, v), sl.nonlinear_effects(models[1], q, v), 1e-12)
    floating = load(tmp_path, absolute)
    assert floating.nv == 7
    assert_close(at(floating, "b", floating.reference_configurations["initial"]), world @ b, 1e-12)


@pytest.mark.parametrize(("version", "model_frame"), [("1.4", True), ("1.5", False), ("1.6", False), ("1.10", False)])
def test_axes_before_version_1_5_are_the_models(tmp_path: Path, version: str, model_frame: bool) -> None:
    text = sdf(link("a", "<pose>0 0 0 0 0 1.5</pose>"), joint("j", "world", "a"), version=version)
    model = load(tmp_path, text)
    turned = at(model, "a", np.array([0.4]))[:3, :3] @ at(model, "a")[:3, :3].T
    axis = [0, 1, 0] if model_frame else at(model, "a")[:3, 1]
    assert_close(Rotation.from_matrix(turned).as_rotvec(), 0.4 * np.array(axis), 1e-12)


def test_every_joint_type(tmp_path: Path) -> None:
    two = "<axis><xyz>1 0 0</xyz></axis><axis2><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis2>"
    kinds = ["revolute", "continuous", "prismatic", "ball", "fixed", "universal", "revolute2"]
    text = sdf(
        link("l0"),
        *(link(f"l{i + 1}", f"<pose>{i} 0 0 0.1 0 0</pose>") for i in range(len(kinds))),
        *(joint(kind, f"l{i}", f"l{i + 1}", kind, two if "u" == kind[0] or "2" in kind else
                "<axis><xyz>0 1 0</xyz><limit><lower>-1e16</lower><upper>2</upper><effort>-1</effort></limit></axis>")
          for i, kind in enumerate(kinds)),
    )  # fmt: skip
    model = load(tmp_path, text)
    assert [(each.name, each.kind.name) for each in model.joints[2:]] == [
        ("revolute", "REVOLUTE"), ("continuous", "REVOLUTE"), ("prismatic", "PRISMATIC"), ("ball", "SPHERICAL"),
        ("universal", "REVOLUTE"), ("universal_2", "REVOLUTE"), ("revolute2", "REVOLUTE"), ("revolute2_2", "REVOLUTE"),
    ]  # fmt: skip
    assert model.upper_position_limit[7:10].tolist() == [2.0, np.inf, 2.0]
    assert model.lower_position_limit[7:9].tolist() == [-np.inf, -np.inf]
    assert np.isinf(model.effort_limit[6:]).all()
    for i in range(len(kinds)):
        assert_close(at(model, f"l{i + 1}")[:3, 3], [i, 0, 0], 1e-12, scale=1.0)
    assert np.isfinite(sl.aba(model, model.neutral(), np.ones(model.nv), np.ones(model.nv))).all()


def test_prismatic_joints_stay_in_the_tree(tmp_path: Path) -> None:
    """A slider crank: the hinge comes first in the file, but only it can close a loop."""
    text = sdf(
        *(link(name) for name in "abc"),
        joint("crank", "a", "b"), joint("rod", "b", "c"), joint("slider", "a", "c", "prismatic"),
    )  # fmt: skip
    model = load(tmp_path, text)
    assert [each.name for each in model.joints[2:]] == ["crank", "slider"]
    assert [(loop.name, loop.dim) for loop in model.loops] == [("rod", 5)]


def test_a_link_that_says_nothing_has_the_default_inertia(tmp_path: Path) -> None:
    model = load(tmp_path, sdf('<link name="a"/>'))
    assert model.joints[1].mass == 1.0 and np.array_equal(model.joints[1].inertia, np.eye(3))


def test_shapes(tmp_path: Path) -> None:
    visual = (
        '<visual name="{0}"><pose>0 0 1 0 0 0</pose><geometry>{1}</geometry>'
        "<material><ambient>0 1 0 1</ambient><diffuse>1 0 0 0.5</diffuse></material></visual>"
    )
    inside = "".join([
        visual.format("box", "<box><size>1 2 3</size></box>"),
        visual.format("sphere", "<sphere><radius>1</radius></sphere>"),
        visual.format("ellipsoid", "<ellipsoid><radii>1 2 3</radii></ellipsoid>"),
        visual.format("capsule", "<capsule><radius>1</radius><length>2</length></capsule>"),
        visual.format("mesh", "<mesh><uri>meshes/a.stl</uri><scale>1 1 2</scale></mesh>"),
        visual.format("plane", "<plane><normal>0 0 1</normal></plane>"),
    ])  # fmt: skip
    collision = "<collision name='c'><geometry><sphere><radius>1</radius></sphere></geometry></collision>"
    model = load(tmp_path, sdf(link("a", inside=inside + collision)))
    assert [(shape.name, shape.kind, shape.size.tolist()) for shape in model.shapes] == [
        ("box", "box", [1, 2, 3]), ("sphere", "sphere", [1]), ("ellipsoid", "ellipsoid", [1, 2, 3]),
        ("capsule", "capsule", [1, 2]), ("mesh", "mesh", [1, 1, 2]),
    ]  # fmt: skip
    assert model.shapes[4].path == str(tmp_path / "meshes/a.stl")
    assert model.shapes[0].color.tolist() == [1, 0, 0, 0.5] and model.shapes[0].placement[2, 3] == 1
    assert [shape.kind for shape in load(tmp_path, sdf(link("a", inside=collision))).shapes] == ["sphere"]


BROKEN = {
    "empty": ("", "is empty"),
    "urdf": ("<robot/>", "root element is <robot>, expected <sdf>"),
    "version": (sdf(link("a"), version="x"), "has version='x'"),
    "no model": ('<sdf version="1.6"/>', "it has 0 models, expected one"),
    "no link": (sdf(), "there is no link"),
    "unnamed link": (sdf("<link/>"), "<link> has no attribute 'name'"),
    "two links": (sdf(link("a"), link("a")), "another link 'a'"),
    "two roots": (sdf(link("a"), link("b")), "there are 2 roots, a, b"),
    "cycle": (sdf(link("a"), link("b"), joint("j", "a", "b"), joint("k", "b", "a")), "no root: the links form a cycle"),
    "cycle beside": (
        sdf(*map(link, "abc"), joint("j", "b", "c"), joint("k", "c", "b")),
        "form a cycle, or hang below one: b, c",
    ),
    "no such link": (sdf(link("a"), joint("j", "a", "b")), "joint 'j', line 1: <joint>, <child>: there is no link 'b'"),
    "no parent": (sdf(link("a"), '<joint name="j" type="fixed"><child>a</child></joint>'), "has no <parent>"),
    "world child": (sdf(link("a"), joint("j", "a", "world")), "its child is the world"),
    "unknown type": (sdf(link("a"), joint("j", "world", "a", "screw")), "has the type 'screw', expected one of"),
    "no axis": (sdf(link("a"), joint("j", "world", "a", inside="")), "is revolute but has 0 axes, expected 1"),
    "zero axis": (sdf(link("a"), joint("j", "world", "a", inside="<axis><xyz>0 0 0</xyz></axis>")), "expected a direction"),
    "NaN pose": (sdf(link("a", "<pose>0 0 nan 0 0 0</pose>")), "link 'a', line 1: <pose> is '0 0 nan 0 0 0', expected 6"),
    "relative to nothing": (sdf(link("a", '<pose relative_to="x"/>')), "there is no frame 'x'"),
    "visual relative to another": (
        sdf(link("a", inside='<visual><pose relative_to="b"/><geometry><box><size>1 1 1</size></box></geometry></visual>')),
        "a pose relative to 'b' is not supported here",
    ),
    "relative to each other": (
        sdf(link("a", '<pose relative_to="b"/>'), link("b", '<pose relative_to="a"/>')),
        "are relative to each other",
    ),
    "negative mass": (sdf("<link name='a'><inertial><mass>-1</mass></inertial></link>"), "its mass is -1.0"),
    "limits": (
        sdf(link("a"), joint("j", "world", "a", inside="<axis><limit><lower>1</lower><upper>0</upper></limit></axis>")),
        "lower limit",
    ),
    "nested model": (sdf(link("a"), "<model name='b'/>"), "models in models are not supported"),
    "climbing mesh": (
        sdf(link("a", inside="<visual><geometry><mesh><uri>../../x.stl</uri></mesh></geometry></visual>")),
        "climbs out of",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_broken_file(tmp_path: Path, case: str) -> None:
    text, message = BROKEN[case]
    with pytest.raises(sl.ModelError, match=message) as caught:
        load(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "robot.sdf"))


def test_a_long_chain(tmp_path: Path) -> None:
    count = 3000
    text = sdf(
        link("l0"),
        *(link(f"l{i}", f'<pose relative_to="l{i - 1}">0 0 0.1 0 0 0</pose>') for i in range(1, count)),
        *(joint(f"j{i}", f"l{i - 1}", f"l{i}") for i in range(1, count)),
    )
    assert load(tmp_path, text).nb == count
