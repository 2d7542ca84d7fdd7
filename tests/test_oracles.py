"""The oracle itself against Pinocchio, to a relative error of 1e-11, in the largest entry of each quantity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from saltus.model.builder import ModelBuilder
from saltus.model.joints import JointKind, Mimic
from saltus.model.model import Model
from saltus.model.urdf import load_urdf
from tests import oracles

pin = pytest.importorskip("pinocchio")

ROBOTS = Path(pin.__file__).parents[4] / "share/example-robot-data/robots"
REFERENCES = {
    "local": pin.ReferenceFrame.LOCAL,
    "world": pin.ReferenceFrame.WORLD,
    "local_world_aligned": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED,
}


def by_hand(mimic: bool) -> tuple[Model, pin.Model]:
    """A tree of every joint kind in both libraries; its follower mimics the hinge, or is free."""
    rng = np.random.default_rng(7)
    tilted = rng.normal(size=3)
    tilted /= np.linalg.norm(tilted)
    peer = pin.Model()
    builder = ModelBuilder("by_hand")

    def follower() -> object:
        hinge = peer.joints[peer.getJointId("hinge")]
        return pin.JointModelMimic(hinge, -1.5, 0.3) if mimic else pin.JointModelRevoluteUnaligned(tilted)

    # depth first: Pinocchio's crba and computeMinverse are wrong for other orders
    tree: list[tuple[str, str, str, Callable[[], object], np.ndarray]] = [
        ("base", "planar", "universe", pin.JointModelPlanar, np.array([0.0, 0.0, 1.0])),
        ("ball", "spherical", "base", pin.JointModelSpherical, np.array([0.0, 0.0, 1.0])),
        ("gantry", "translation", "ball", pin.JointModelTranslation, np.array([0.0, 0.0, 1.0])),
        ("satellite", "free_flyer", "gantry", pin.JointModelFreeFlyer, np.array([0.0, 0.0, 1.0])),
        ("hinge", "revolute", "ball", lambda: pin.JointModelRevoluteUnaligned(tilted), tilted),
        ("slide", "prismatic", "hinge", lambda: pin.JointModelPrismaticUnaligned(tilted), tilted),
        ("follower", "revolute", "slide", follower, tilted),
        ("wheel", "continuous", "base", pin.JointModelRUBY, np.array([0.0, 1.0, 0.0])),
    ]
    for name, kind, parent, peer_joint, axis in tree:
        X = pin.SE3(Rotation.random(rng=rng).as_matrix(), rng.normal(size=3))
        mass, com = rng.uniform(0.5, 2.0), rng.normal(size=3)
        points = rng.normal(size=(4, 3))  # the inertia of a few point masses is physically possible
        inertia = sum(np.dot(p, p) * np.eye(3) - np.outer(p, p) for p in points - points.mean(axis=0))
        follows = Mimic("hinge", -1.5, 0.3) if mimic and name == "follower" else None
        builder.add_joint(name, kind, parent, X.homogeneous, axis, mimic=follows)
        builder.add_body(name, mass, com, inertia)
        i = peer.addJoint(peer.getJointId(parent), peer_joint(), X, name)
        peer.appendBodyToJoint(i, pin.Inertia(mass, com, inertia), pin.SE3.Identity())
        offset = pin.SE3(Rotation.random(rng=rng).as_matrix(), rng.normal(size=3))
        builder.add_frame(name + "_tool", name, offset.homogeneous)
        peer.addFrame(pin.Frame(name + "_tool", i, 0, offset, pin.FrameType.OP_FRAME))
    return builder.build(), peer


def from_urdf(path: str, floating: bool = False, mimic: bool = False) -> tuple[Model, pin.Model]:
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    peer = pin.buildModelFromUrdf(str(ROBOTS / path), *root, mimic=mimic)
    return load_urdf(ROBOTS / path, floating_base=floating, mimic=mimic), peer


CASES: dict[str, Callable[[], tuple[Model, pin.Model]]] = {
    "ur5": lambda: from_urdf("ur_description/urdf/ur5_robot.urdf"),
    "panda": lambda: from_urdf("panda_description/urdf/panda.urdf"),
    "panda_mimic": lambda: from_urdf("panda_description/urdf/panda.urdf", mimic=True),
    "solo12": lambda: from_urdf("solo_description/robots/solo12.urdf", floating=True),
    "talos": lambda: from_urdf("talos_data/robots/talos_reduced.urdf", floating=True),
    "pendulum": lambda: from_urdf("double_pendulum_description/urdf/double_pendulum_continuous.urdf"),
    "by_hand": lambda: by_hand(mimic=False),
    "by_hand_mimic": lambda: by_hand(mimic=True),
}


@dataclass
class Sample:
    model: Model
    peer: pin.Model
    data: pin.Data
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray
    fext: np.ndarray


@pytest.fixture(scope="module", params=list(CASES))
def sample(request: pytest.FixtureRequest) -> Sample:
    model, peer = CASES[request.param]()
    rng = np.random.default_rng(3)
    armature = rng.uniform(0.01, 0.2, size=model.nv)
    gravity = np.array([0.3, -0.5, -9.7])
    model = model.replace(armature=armature, gravity=gravity)
    peer.armature = armature
    peer.gravity.linear = gravity
    q = pin.integrate(peer, pin.neutral(peer), rng.normal(size=peer.nv))
    v, a, tau = rng.normal(size=(3, peer.nv))
    data = peer.createData()
    pin.forwardKinematics(peer, data, q, v, a)
    pin.updateFramePlacements(peer, data)
    return Sample(model, peer, data, q, v, a, tau, rng.normal(size=(model.njoints, 6)))


def agree(ours: object, theirs: object, tolerance: float = 1e-11, scale: float | None = None) -> None:
    """Relative to the scale, which is theirs where none is given; what is zero may be so to rounding."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    assert ours.shape == theirs.shape
    assert np.isfinite(ours).all()
    scale = np.abs(theirs).max(initial=0.0) if scale is None else scale
    assert np.abs(ours - theirs).max(initial=0.0) <= tolerance * scale + 1e-14


def forces(sample: Sample) -> pin.StdVec_Force:
    result = pin.StdVec_Force()
    result.extend([pin.Force(f) for f in sample.fext])
    return result


def shared_frames(sample: Sample, every: int = 1) -> list[tuple[int, int]]:
    """Indices of the frames that both libraries have: ours, theirs."""
    ours = {(frame.name, frame.joint): f for f, frame in enumerate(sample.model.frames)}
    theirs = {(frame.name, frame.parentJoint): g for g, frame in enumerate(sample.peer.frames)}
    pairs = [(ours[key], theirs[key]) for key in ours if key in theirs]
    assert len(pairs) > 1
    return pairs[::every]


def has_mimic(sample: Sample) -> bool:
    return any(joint.mimic is not None for joint in sample.model.joints)


def test_sizes_and_placements(sample: Sample) -> None:
    s = sample
    assert (s.model.nq, s.model.nv, s.model.njoints) == (s.peer.nq, s.peer.nv, s.peer.njoints)
    agree(oracles.placements(s.model, s.q), [X.homogeneous for X in s.data.oMi])
    agree(oracles.joint_transforms(s.model, s.q)[1:], [X.homogeneous for X in s.data.liMi[1:]])
    for f, g in shared_frames(s):
        agree(oracles.frame_placement(s.model, s.q, f), s.data.oMf[g].homogeneous)


def test_velocities_and_accelerations(sample: Sample) -> None:
    s = sample
    agree(oracles.velocities(s.model, s.q, s.v), [np.zeros(6)] + [m.vector for m in s.data.v[1:]])
    agree(oracles.accelerations(s.model, s.q, s.v, s.a), [np.zeros(6)] + [m.vector for m in s.data.a[1:]])


@pytest.mark.parametrize("reference", REFERENCES)
def test_jacobians(sample: Sample, reference: str) -> None:
    s, peer_reference = sample, REFERENCES[reference]
    data = s.peer.createData()
    pin.computeJointJacobians(s.peer, data, s.q)
    pin.updateFramePlacements(s.peer, data)
    for i in range(1, s.model.njoints):
        agree(oracles.joint_jacobian(s.model, s.q, i, reference), pin.getJointJacobian(s.peer, data, i, peer_reference))
    for f, g in shared_frames(s, every=3):
        theirs = pin.getFrameJacobian(s.peer, data, g, peer_reference)
        agree(oracles.frame_jacobian(s.model, s.q, f, reference), theirs)


@pytest.mark.parametrize("reference", REFERENCES)
def test_jacobian_time_derivatives(sample: Sample, reference: str) -> None:
    s, peer_reference = sample, REFERENCES[reference]
    data = s.peer.createData()
    pin.computeJointJacobiansTimeVariation(s.peer, data, s.q, s.v)
    pin.updateFramePlacements(s.peer, data)
    for i in range(1, s.model.njoints):
        theirs = pin.getJointJacobianTimeVariation(s.peer, data, i, peer_reference)
        agree(oracles.jacobian_dot(s.model, s.q, s.v, i, reference), theirs)
    for f, g in shared_frames(s, every=3):
        theirs = pin.getFrameJacobianTimeVariation(s.peer, data, g, peer_reference)
        agree(oracles.frame_jacobian_dot(s.model, s.q, s.v, f, reference), theirs)


@pytest.mark.parametrize("reference", REFERENCES)
def test_frame_velocity_and_acceleration(sample: Sample, reference: str) -> None:
    s = sample
    for f, g in shared_frames(s, every=3):
        theirs = pin.getFrameVelocity(s.peer, s.data, g, REFERENCES[reference]).vector
        agree(oracles.frame_velocity(s.model, s.q, s.v, f, reference), theirs)
        theirs = pin.getFrameAcceleration(s.peer, s.data, g, REFERENCES[reference]).vector
        agree(oracles.frame_acceleration(s.model, s.q, s.v, s.a, f, reference), theirs)


def test_jacobian_time_derivative_is_one(sample: Sample) -> None:
    s, h = sample, 1e-5
    for reference in REFERENCES:
        ahead, behind = (
            oracles.joint_jacobian(s.model, oracles.integrate(s.model, s.q, step * s.v), s.model.njoints - 1, reference)
            for step in (h, -h)
        )
        exact = oracles.jacobian_dot(s.model, s.q, s.v, s.model.njoints - 1, reference)
        agree((ahead - behind) / (2 * h), exact, 1e-7)


def test_mass_matrix_and_inverse_dynamics(sample: Sample) -> None:
    s = sample
    M = pin.crba(s.peer, s.peer.createData(), s.q)
    agree(oracles.mass_matrix(s.model, s.q), np.triu(M) + np.triu(M, 1).T)
    rnea = pin.rnea(s.peer, s.peer.createData(), s.q, s.v, s.a)
    agree(oracles.inverse_dynamics(s.model, s.q, s.v, s.a), rnea)
    rnea = pin.rnea(s.peer, s.peer.createData(), s.q, s.v, s.a, forces(s))
    agree(oracles.inverse_dynamics(s.model, s.q, s.v, s.a, s.fext), rnea)
    still = np.zeros(s.model.nv)
    agree(oracles.bias(s.model, s.q, s.v), pin.rnea(s.peer, s.peer.createData(), s.q, s.v, still))
    agree(oracles.gravity_torque(s.model, s.q), pin.rnea(s.peer, s.peer.createData(), s.q, still, still))


def test_forward_dynamics(sample: Sample) -> None:
    s = sample
    a = oracles.forward_dynamics(s.model, s.q, s.v, s.tau, s.fext)
    agree(oracles.inverse_dynamics(s.model, s.q, s.v, a, s.fext), s.tau, 1e-9)
    if not has_mimic(s):  # Pinocchio's aba does not know mimic joints
        agree(a, pin.aba(s.peer, s.peer.createData(), s.q, s.v, s.tau, forces(s)))
        inverse = pin.computeMinverse(s.peer, s.peer.createData(), s.q)
        agree(oracles.mass_matrix_inverse(s.model, s.q), np.triu(inverse) + np.triu(inverse, 1).T)


def test_center_of_mass(sample: Sample) -> None:
    s, data = sample, sample.peer.createData()
    pin.centerOfMass(s.peer, data, s.q, s.v, s.a)
    for ours, theirs in zip(
        oracles.center_of_mass(s.model, s.q, s.v, s.a), (data.com[0], data.vcom[0], data.acom[0]), strict=True
    ):
        agree(ours, theirs)
    agree(oracles.com_jacobian(s.model, s.q) @ s.v, data.vcom[0])
    if not has_mimic(s):
        agree(oracles.com_jacobian(s.model, s.q), pin.jacobianCenterOfMass(s.peer, s.peer.createData(), s.q))


def test_centroidal(sample: Sample) -> None:
    s, data = sample, sample.peer.createData()
    h = pin.computeCentroidalMomentum(s.peer, data, s.q, s.v).vector
    agree(oracles.centroidal_momentum(s.model, s.q, s.v), h)
    data = s.peer.createData()
    dh = pin.computeCentroidalMomentumTimeVariation(s.peer, data, s.q, s.v, s.a).vector
    agree(oracles.centroidal_momentum_time_variation(s.model, s.q, s.v, s.a), dh)
    if not has_mimic(s):
        data = s.peer.createData()
        pin.ccrba(s.peer, data, s.q, s.v)
        agree(oracles.centroidal_momentum_matrix(s.model, s.q), data.Ag)
        pin.dccrba(s.peer, data, s.q, s.v)
        agree(oracles.centroidal_momentum_drift(s.model, s.q, s.v), data.dAg @ s.v)


def test_energies(sample: Sample) -> None:
    s, data = sample, sample.peer.createData()
    mass = pin.computeTotalMass(s.peer)
    agree(oracles.total_mass(s.model), mass)
    height = pin.centerOfMass(s.peer, data, s.q) @ s.model.gravity
    agree(oracles.potential_energy(s.model, s.q), -mass * height)
    if not has_mimic(s):  # Pinocchio's energies do not know mimic joints
        agree(oracles.potential_energy(s.model, s.q), pin.computePotentialEnergy(s.peer, data, s.q))
        bare = s.peer.copy()  # its energy forgets the armature of unaligned revolute joints, so compare without any
        bare.armature = np.zeros(s.model.nv)
        theirs = pin.computeKineticEnergy(bare, bare.createData(), s.q, s.v)
        agree(oracles.kinetic_energy(s.model, s.q, s.v), theirs + 0.5 * s.v @ (s.model.armature * s.v))


@pytest.mark.parametrize("size", [1e-9, 1e-4, 0.3, 1.0, 2.0])
def test_manifold(sample: Sample, size: float) -> None:
    s = sample
    v = size * s.v
    q = pin.integrate(s.peer, s.q, v)
    agree(oracles.integrate(s.model, s.q, v), q)
    agree(
        oracles.difference(s.model, s.q, q), pin.difference(s.peer, s.q, q), scale=1.0
    )  # a difference of numbers about 1


def test_a_continuous_joint_is_a_revolute_one() -> None:
    axis = np.array([0.6, -0.48, 0.64])
    for angle in np.linspace(-3.0, 3.0, 7):
        as_pair = oracles.joint_motion(JointKind.CONTINUOUS, axis, np.array([np.cos(angle), np.sin(angle)]))
        agree(as_pair, oracles.joint_motion(JointKind.REVOLUTE, axis, np.array([angle])))
