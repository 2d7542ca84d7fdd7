"""Which degrees of freedom of a robot have a motor."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from saltus.model.checks import ModelError
from saltus.model.joints import JointKind
from saltus.model.model import Model


def motors_of(model: Model) -> list[int]:
    """The degrees of freedom that have a motor, in their order:

    - those that an actuator drives, and those whose effort limit is finite (URDF files often have transmissions for a part
      of the robot only, as that of an arm which a quadruped carries);
    - where there are none of either, all joints with an axis and without a spring;
    - never those with an effort limit of zero, an actuator of gear zero, or of a free base.

    >>> import saltus as sl
    >>> four_bar = sl.load_robot("four_bar")
    >>> four_bar.effort_limit, sl.motors_of(four_bar)
    (array([10.,  0.,  0.]), [0])
    """
    base, limit = {JointKind.FREE_FLYER, JointKind.PLANAR}, model.effort_limit
    driven = {actuator.joint for actuator in model.actuators if actuator.gear}
    own = [joint for joint in model.joints[1:] if not (joint.parent == 0 and joint.kind in base)]
    named = [
        k
        for joint in own
        for k in range(joint.iv, joint.iv + joint.nv)
        if limit[k] > 0 and (joint.name in driven or np.isfinite(limit[k]))
    ]
    if named or model.actuators:
        return named
    single = [joint.iv for joint in own if joint.nv and joint.kind.has_axis]
    return [k for k in single if limit[k] > 0 and model.stiffness[k] == 0]


def checked_motors(model: Model, motors: Sequence[int], what: str) -> list[int]:
    """Degrees of freedom, each once; errors begin with `what`."""
    expected = f"expected degrees of freedom, each once, from 0 to {model.nv - 1}"
    try:
        found = [operator.index(k) for k in motors]
    except TypeError:
        raise ModelError(f"{what}: motors are {motors!r}, {expected}") from None
    for k in found:
        if not 0 <= k < model.nv or found.count(k) > 1:
            raise ModelError(f"{what}: motors are {motors!r}, with {k}, {expected}")
    return found
