"""Between our conventions and MuJoCo's: quaternions, and the velocity of free joints.

    v_mujoco = T(q) v,     a_mujoco = T a + dT/dt v,     tau = T' tau_mujoco

T is the identity but for free joints, whose linear velocity MuJoCo has in the world's axes and we in the body's. There
dT/dt v = R (w x v).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

import saltus as sl


@dataclass
class Peer:
    """MuJoCo's view of one state of a model."""

    m: Any
    data: Any
    T: np.ndarray
    drift: np.ndarray
    """dT/dt v"""

    @property
    def mass_matrix(self) -> np.ndarray:
        dense = np.zeros((self.m.nv, self.m.nv))
        mujoco.mj_fullM(self.m, self.data, dense)
        return dense


def peer_at(path: Path | str, model: sl.Model, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> Peer:
    """MuJoCo's own reading of the file, evaluated at our q, v and tau."""
    m = mujoco.MjModel.from_xml_path(str(path))
    assert (m.nq, m.nv) == (model.nq, model.nv)
    data = mujoco.MjData(m)
    T, drift = np.eye(m.nv), np.zeros(m.nv)
    data.qpos = q
    for joint in model.joints:
        if joint.kind in (sl.JointKind.FREE_FLYER, sl.JointKind.SPHERICAL):
            start = joint.iq + (3 if joint.kind == sl.JointKind.FREE_FLYER else 0)
            quaternion = q[start : start + 4]
            data.qpos[start : start + 4] = np.roll(quaternion, 1)
            if joint.kind == sl.JointKind.FREE_FLYER:
                R, lin = Rotation.from_quat(quaternion).as_matrix(), slice(joint.iv, joint.iv + 3)
                T[lin, lin] = R
                drift[lin] = R @ np.cross(v[joint.iv + 3 : joint.iv + 6], v[lin])
    data.qvel = T @ v
    data.qfrc_applied = np.linalg.solve(T.T, tau)
    mujoco.mj_forward(m, data)
    return Peer(m, data, T, drift)
