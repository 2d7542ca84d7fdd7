"""Sliders on the viewer's page that move the joints of a robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from saltus.model.checks import Array
from saltus.model.joints import Joint, JointKind
from saltus.model.model import Model

WIDEST_TURN, WIDEST_SHIFT = np.pi, 1.0  # rad and m, either way, where a joint has no limits
STEP = 1e-3  # rad, m
MOST = 60  # of joints; more would fill the page, and fingers are not moved one by one


class Sliders:
    """One for each joint with one degree of freedom, in a folder that is closed at first; `moved` is told of q (nq,)."""

    def __init__(self, gui: Any, model: Model, q: Array, moved: Callable[[Array], None]) -> None:
        self.q, self._moved, self._told = q, moved, True
        joints = [joint for joint in model.joints[1:] if joint.nv == 1 and not joint.mimic][:MOST]
        self._folder = gui.add_folder("joints", expand_by_default=False, visible=bool(joints))
        self._handles = []
        with self._folder:
            for joint in joints:
                low, high = _range(model, joint)
                value = float(np.clip(_position(joint, q), low, high))
                handle = gui.add_slider(joint.name, low, high, STEP, value)
                handle.on_update(lambda _, joint=joint, handle=handle: self._slide(joint, handle.value))
                self._handles.append((joint, low, high, handle))

    def show(self, q: Array) -> None:
        """Moves them to another pose, without telling."""
        self.q, self._told = q, False
        try:
            for joint, low, high, handle in self._handles:
                handle.value = float(np.clip(_position(joint, q), low, high))
        finally:
            self._told = True

    def remove(self) -> None:
        self._folder.remove()

    def _slide(self, joint: Joint, value: float) -> None:
        if self._told:
            self.q = self.q.copy()
            place = slice(joint.iq, joint.iq + joint.nq)
            self.q[place] = (np.cos(value), np.sin(value)) if joint.kind is JointKind.CONTINUOUS else value
            self._moved(self.q)


def _position(joint: Joint, q: Array) -> float:
    if joint.kind is JointKind.CONTINUOUS:
        return float(np.arctan2(q[joint.iq + 1], q[joint.iq]))
    return float(q[joint.iq])


def _range(model: Model, joint: Joint) -> tuple[float, float]:
    widest = WIDEST_SHIFT if joint.kind is JointKind.PRISMATIC else WIDEST_TURN
    if joint.kind is JointKind.CONTINUOUS:
        return -widest, widest
    low, high = model.lower_position_limit[joint.iq], model.upper_position_limit[joint.iq]
    low, high = (float(limit) if np.isfinite(limit) else side * widest for limit, side in ((low, -1), (high, 1)))
    return (low, high) if high - low > STEP else (low - STEP, low + STEP)
