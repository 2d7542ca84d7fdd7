"""Placements (4, 4) of frames, from what robot files give them in, and back."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from saltus.model.checks import Array


def placement(rotation: ArrayLike, translation: ArrayLike = (0.0, 0.0, 0.0)) -> Array:
    """A rotation matrix (3, 3) and a translation (3,) [m] as one matrix (4, 4)."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, translation
    return matrix


def inverse(matrix: Array) -> Array:
    """Of a placement (4, 4)."""
    turned_back = matrix[:3, :3].T
    return placement(turned_back, -turned_back @ matrix[:3, 3])


def rotation_from_rpy(rpy: ArrayLike) -> Array:
    """The rotation (3, 3) by roll about x, then pitch about y, then yaw about z, axes that stay [rad].

    >>> rotation_from_rpy((0, 0, np.pi / 2)).round(6) + 0.0
    array([[ 0., -1.,  0.],
           [ 1.,  0.,  0.],
           [ 0.,  0.,  1.]])
    """
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy), np.sin(rpy)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rpy_from_rotation(rotation: Array) -> Array:
    """Roll, pitch and yaw (3,) [rad] of a rotation (3, 3); at a pitch of a right angle, where only two count, roll is 0.

    >>> rpy_from_rotation(rotation_from_rpy((0.1, -0.2, 3.0))).round(6)
    array([ 0.1, -0.2,  3. ])
    """
    level = np.hypot(rotation[0, 0], rotation[1, 0])
    pitch = np.arctan2(-rotation[2, 0], level)
    if level < 1e-9:
        return np.array([0.0, pitch, np.arctan2(-rotation[0, 1], rotation[1, 1])])
    yaw = np.arctan2(rotation[1, 0], rotation[0, 0])
    return np.array([np.arctan2(rotation[2, 1], rotation[2, 2]), pitch, yaw])


def rotation_from_quaternion(quaternion: ArrayLike) -> Array:
    """The rotation (3, 3) of a quaternion x, y, z, w, of any length but zero."""
    x, y, z, w = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
            [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
            [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
        ]
    )
