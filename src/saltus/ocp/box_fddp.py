"""Feasibility-driven differential dynamic programming with bounds of controls: box_ddp.py's nodes in fddp.py's steps.

Reference: C. Mastalli et al., A feasibility-driven approach to control-limited DDP (2022), algorithm 1. Departure: bounds
hold from the first iteration on, in Crocoddyl only once there are no gaps. Steps are then longer: a linear problem whose
bounds are active takes 4 iterations instead of 22 (measured).
"""

from __future__ import annotations

from saltus.ocp.fddp import FDDP


class BoxFDDP(FDDP):
    """Feasibility-driven differential dynamic programming within bounds of controls.

    >>> from saltus.ocp.unicycle import Unicycle
    >>> result = BoxFDDP(Unicycle([-1.0, -1.0, 1.0], T=20, u_lower=-2.0, u_upper=2.0)).solve()
    >>> str(result.status), float(abs(result.us).max())
    ('solved', 2.0)
    """

    boxed = True
