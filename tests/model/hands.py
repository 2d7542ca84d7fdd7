"""Robots with mimic joints: those of example-robot-data that have hands, beside Pinocchio, and random ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

import saltus as sl
from tests.model.robots import ROBOTS

HANDS = {
    "tiago_pro_description/robots/tiago_pro.urdf": False,
    "baxter_description/urdf/baxter.urdf": False,
    "talos_data/robots/talos_full_v2.urdf": True,  # here and in Romeo joints follow later ones, which Pinocchio refuses
    "romeo_description/urdf/romeo.urdf": True,
}
"""Those that are not fixed to the world have a free flyer."""


def load_hands(path: str) -> sl.Model:
    """With rotors, for some of their fingers weigh next to nothing."""
    return sl.load_urdf(ROBOTS / path, floating_base=HANDS[path], mimic=True).with_armature(0.01)


def system_in_pinocchio(path: str, model: sl.Model, q: Any, v: Any, frames: list[str] | None = None) -> tuple[Any, ...]:
    """By Pinocchio, of its own mimic joints where it can have them, else of its tree: inertia matrix, torques of nonlinear
    effects, linear Jacobians of frames in their own axes, and how these points accelerate while no joint does."""
    base = (pin.JointModelFreeFlyer(),) if HANDS[path] else ()
    try:
        peer = pin.buildModelFromUrdf(str(ROBOTS / path), *base, mimic=True)
        G, rotors = np.eye(model.nv), model.armature
    except ValueError:
        assert model.coupling
        peer = pin.buildModelFromUrdf(str(ROBOTS / path), *base)
        G, rotors = model.coupling.G, model.coupling.tree.armature
        q, v = model.coupling.expand_configuration(model, q), G @ v
    data, peer.armature = peer.createData(), rotors
    M, b = pin.crba(peer, data, q), pin.rnea(peer, data, q, v, np.zeros(peer.nv))
    pin.forwardKinematics(peer, data, q, v, np.zeros(peer.nv))
    J, drift = [np.empty((0, model.nv))], [np.empty(0)]
    for frame in frames or []:
        f = peer.getFrameId(frame)
        drift.append(pin.getFrameClassicalAcceleration(peer, data, f, pin.LOCAL).linear.copy())
        J.append(pin.computeFrameJacobian(peer, peer.createData(), q, f, pin.LOCAL)[:3] @ G)
    return G.T @ (np.triu(M) + np.triu(M, 1).T) @ G, G.T @ b, np.concatenate(J), np.concatenate(drift)


def random_coupled(seed: int) -> sl.Model:
    """A tree with joints of many kinds, most of those with an axis followers of others, wherever in the tree."""
    rng = np.random.default_rng(seed)
    builder, primaries = sl.ModelBuilder(f"coupled_{seed}"), dict[str, list[str]](turning=[], other=[])
    for k in range(int(rng.integers(4, 14))):
        kinds = ["revolute", "prismatic", "continuous", "spherical", "free_flyer"]
        kind = str(rng.choice(kinds, p=[0.5, 0.2, 0.1, 0.1, 0.1]))
        able, mimic = primaries["turning" if kind == "continuous" else "other"], None
        if kind in kinds[:3] and able and rng.random() < 0.6:
            mimic = sl.Mimic(str(rng.choice(able)), float(rng.normal()), float(rng.normal()))
        elif kind in kinds[:3]:
            able.append(f"j{k}")
        parent = int(rng.integers(0, k + 1))
        rotor = {} if mimic else {"armature": 0.1}
        place = sl.exp6(rng.normal(size=6))
        joint = builder.add_joint(f"j{k}", kind, parent, place, rng.normal(size=3), mimic=mimic, **rotor)
        builder.add_body(joint, 1.0, rng.normal(size=3) * 0.1, np.diag([0.3, 0.4, 0.5]))
    return builder.build()
