"""Random configurations stay within limits on either side, both or none, and use all the room there is."""

from __future__ import annotations

import numpy as np
import pytest

import saltus as sl

INF = float("inf")
ROOMS = {  # (lower, upper) and where q may be, by the reach of a joint without limits: pi of angles, 1 m of lengths
    "none": ((None, None), lambda reach: (-reach, reach)),
    "both": ((-0.2, 0.5), lambda reach: (-0.2, 0.5)),
    "both, wide": ((-20.0, 50.0), lambda reach: (-20.0, 50.0)),
    "lower only": ((-0.2, None), lambda reach: (-0.2, 2 * reach - 0.2)),
    "lower only, above all": ((7.0, None), lambda reach: (7.0, 7.0 + 2 * reach)),
    "lower only, far below": ((-70.0, None), lambda reach: (-reach, reach)),
    "upper only": ((None, 0.5), lambda reach: (0.5 - 2 * reach, 0.5)),
    "upper only, below all": ((None, -7.0), lambda reach: (-7.0 - 2 * reach, -7.0)),
    "upper only, far above": ((None, 70.0), lambda reach: (-reach, reach)),
    "huge instead of none": ((-1e7, 0.5), lambda reach: (0.5 - 2 * reach, 0.5)),
    "a point": ((0.3, 0.3), lambda reach: (0.3, 0.3)),
}  # fmt: skip


@pytest.mark.parametrize("name", ROOMS)
@pytest.mark.parametrize(("kind", "reach"), [("revolute", np.pi), ("prismatic", 1.0)])
def test_room(name: str, kind: str, reach: float) -> None:
    (lower, upper), room = ROOMS[name]
    builder = sl.ModelBuilder()
    joint = builder.add_joint("j", kind, lower=lower, upper=upper)
    builder.add_body(joint, 1.0, inertia=np.eye(3))
    q = sl.random_configuration(builder.build(), 0, 2000)
    low, high = room(reach)
    assert (q >= low).all() and (q <= high).all()
    assert q.min() <= low + 0.01 * (high - low) and q.max() >= high - 0.01 * (high - low)


def test_lengths_of_bases() -> None:
    """Each coordinate has its own limits; rotations have none."""
    builder = sl.ModelBuilder()
    lower = [2.0, -INF, -INF, *[-1.01] * 4]
    base = builder.add_joint("base", "free_flyer", lower=lower, upper=[INF, -2.0, INF, *[1.01] * 4])
    builder.add_body(base, 1.0, inertia=np.eye(3))
    q = sl.random_configuration(builder.build(), 0, 500)
    assert (q[:, :3] >= [2.0, -4.0, -1.0]).all() and (q[:, :3] <= [4.0, -2.0, 1.0]).all()
    assert np.allclose(np.linalg.norm(q[:, 3:], axis=1), 1.0)
