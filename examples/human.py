"""A human in the sagittal plane, of eight degrees of freedom: three of the pelvis, and hip, knee, ankle, shoulder and elbow.

Both arms and both legs move together. x is forward, z up; flexion of each joint is positive, and so is bending forward.

Reference: D. A. Winter, Biomechanics and motor control of human movement (2009), chapter 4: shares of mass and height,
centers of mass and radii of gyration.
"""

from __future__ import annotations

import numpy as np

import saltus as sl
from saltus.arrays import Array

MASS, HEIGHT = 75.0, 1.75  # kg, m
BODY_WEIGHT = 9.81 * MASS  # N
SHANK, THIGH, TRUNK, UPPER_ARM, FOREARM, FOOT = HEIGHT * np.array([0.246, 0.245, 0.288, 0.186, 0.146, 0.152])
GRIP = FOREARM + 0.054 * HEIGHT  # from the elbow to the middle of the hand
ANKLE, HEEL, TOE = 0.039 * HEIGHT, -0.06, 0.16  # height of the ankle; ends of the sole, before it [m]
BAUMGARTE = {"kp": 100.0, "kd": 20.0}  # 1/s^2, 1/s


def human(load: float = 0.0) -> sl.Model:
    """Both arms and both legs together, with a point mass [kg] in the hands."""
    builder = sl.ModelBuilder("human")

    def joint(name: str, kind: str, parent: str, height: float, axis: tuple[int, int, int], **limits: float) -> None:
        builder.add_joint(name, kind, parent, _raised(height), axis, **limits)

    def segment(name: str, share: float, center: tuple[float, float, float], radius: float) -> None:
        """Share of the body's mass; radius of gyration about the center of mass [m]."""
        builder.add_body(name, share * MASS, center, share * MASS * radius**2 * np.eye(3))

    joint("x", "prismatic", "universe", 0.0, (1, 0, 0))
    joint("z", "prismatic", "x", 0.0, (0, 0, 1))
    joint("pitch", "revolute", "z", 0.0, (0, 1, 0))
    joint("hip", "revolute", "pitch", 0.0, (0, -1, 0), lower=-0.3, upper=2.2, effort_limit=400.0)
    joint("knee", "revolute", "hip", -THIGH, (0, 1, 0), lower=0.0, upper=2.4, effort_limit=350.0)
    joint("ankle", "revolute", "knee", -SHANK, (0, -1, 0), lower=-0.6, upper=0.6, effort_limit=250.0)
    joint("shoulder", "revolute", "pitch", TRUNK, (0, -1, 0), lower=-0.2, upper=3.0, effort_limit=140.0)
    joint("elbow", "revolute", "shoulder", -UPPER_ARM, (0, -1, 0), lower=0.0, upper=2.5, effort_limit=120.0)
    segment("pitch", 0.578, (0.0, 0.0, 0.66 * TRUNK), 0.503 * TRUNK)  # with head and neck
    segment("hip", 0.200, (0.0, 0.0, -0.433 * THIGH), 0.323 * THIGH)
    segment("knee", 0.093, (0.0, 0.0, -0.433 * SHANK), 0.302 * SHANK)
    segment("ankle", 0.029, (HEEL + 0.5 * FOOT, 0.0, -0.5 * ANKLE), 0.475 * FOOT)
    segment("shoulder", 0.056, (0.0, 0.0, -0.436 * UPPER_ARM), 0.322 * UPPER_ARM)
    segment("elbow", 0.044, (0.0, 0.0, -0.682 * FOREARM), 0.468 * FOREARM)  # with the hand
    builder.add_body("elbow", load, (0.0, 0.0, -GRIP), name="weight")
    builder.add_frame("sole", "ankle", _raised(-ANKLE))
    builder.add_frame("hand", "elbow", _raised(-GRIP))
    return builder.build()


def _raised(height: float) -> Array:
    X = np.eye(4)
    X[2, 3] = height
    return X


def on_the_ground(model: sl.Model, angles: Array) -> Array:
    """The configuration (8,) with these angles (5,) of the joints and the soles where they belong."""
    hip, knee, ankle = angles[:3]
    q = np.concatenate([[0.0, 0.0, hip - knee + ankle], angles])
    q[:2] = -sl.frame_placement(model, q, "sole")[[0, 2], 3]
    return q


def standing(model: sl.Model) -> sl.ConstrainedDynamics:
    """With the soles held on the ground as surfaces. Three of the six rows are void in the plane; no method minds."""
    return sl.ConstrainedDynamics(model, [sl.Contact(model, "sole", dim=6, anchor=np.eye(4), **BAUMGARTE)])


SUPPORT = np.array([[TOE, 1.0], [-HEEL, -1.0]]) / (TOE - HEEL)
"""Normal forces at heel and toe, by the force along z and the moment about y that hold the sole, entries 2 and 4 of six."""
