"""Differential dynamic programming with bounds of controls.

    u_lower <= u_t <= u_upper

Each node's k is the solution of a quadratic program within the bounds (box_qp.py), K is 0 of controls that are held, and
rollouts clip what feedback asks for.

Reference: Y. Tassa, N. Mansard, E. Todorov, Control-limited differential dynamic programming (2014).
"""

from __future__ import annotations

from saltus.ocp.ddp import DDP


class BoxDDP(DDP):
    """Differential dynamic programming within bounds of controls.

    >>> from saltus.ocp.unicycle import Unicycle
    >>> result = BoxDDP(Unicycle([-1.0, -1.0, 1.0], T=20, u_lower=-2.0, u_upper=2.0)).solve()
    >>> str(result.status), float(abs(result.us).max())
    ('solved', 2.0)
    """

    boxed = True
