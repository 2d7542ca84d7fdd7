"""Feasibility-driven differential dynamic programming with bounds of controls: box_ddp.py's nodes in fddp.py's steps.

Bounds hold for those problems that have no gaps any more, as in Crocoddyl. To keep to them from the first iteration on would
take a linear problem whose bounds are active 4 iterations instead of 22, but robots three times as many: a jump of the
shipped quadruped 36 instead of 14, and others would end where they cost more (measured).

Reference: C. Mastalli et al., A feasibility-driven approach to control-limited DDP (2022), algorithm 1.
"""

from __future__ import annotations

from typing import Any

from saltus.ocp.fddp import FDDP


class BoxFDDP(FDDP):
    """Feasibility-driven differential dynamic programming within bounds of controls.

    >>> from saltus.ocp.unicycle import Unicycle
    >>> result = BoxFDDP(Unicycle([-1.0, -1.0, 1.0], T=20, u_lower=-2.0, u_upper=2.0)).solve()
    >>> str(result.status), float(abs(result.us).max())
    ('solved', 2.0)
    """

    boxed = True

    def bounded(self) -> Any:
        """Those without gaps."""
        return self.iterate.feasible
