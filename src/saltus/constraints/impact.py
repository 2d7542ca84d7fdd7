"""The jump of velocities when constraints are met at once, as when a foot strikes the ground.

    M (v+ - v-) = J^T impulses,      J v+ = -restitution J v-

Forces are large and short, so that their integrals, the impulses, count and all other forces do not. It is the problem of
forward dynamics with the jump v+ - v- in the place of accelerations, nothing else pushing, and -(1 + restitution) J v- as
what is asked of the constraints; solved by the same proximal method on the same factors (prox_ltl.py), with the same
complexity. Redundant constraints share impulses in the least-squares sense.

| paper | code | what | shape |
|---|---|---|---|
| v-, v+ | `v`, `after` | velocities before and after | nv |
| Lambda | `impulses` | on body a of each constraint, along its rows | nm |
| e | `restitution` | share of the velocity that comes back, a constraint | nc |

With one restitution e for all constraints, from 0 to 1, kinetic energy never grows: what is lost is (1 - e^2) times the
energy of the motion that the constraints end. With different ones, E = diag(e), the loss 1/2 u^T (1 + E) G^-1 (1 - E) u, for
u = J v- and the Delassus matrix G, has no sign: Newton's law of impact, as it stands here, does not promise one.

Reference: J. Carpentier, R. Budhiraja, N. Mansard, Proximal and sparse resolution of constrained dynamic equations (2021),
sections III and IV; R. Featherstone, Rigid Body Dynamics Algorithms (2008), section 11.7.
"""

from __future__ import annotations

from dataclasses import dataclass

from saltus.arrays import Array
from saltus.constraints.convergence import Sizes, sized
from saltus.constraints.prox_ltl import WORK, settle
from saltus.constraints.report import Reported
from saltus.constraints.system import aim_rows, collect_bodies, move_bodies, take_rows
from saltus.constraints.tables import MOVERS, constrained
from saltus.kernel import ld, st, zero
from saltus.model.tree import HEAVY


@dataclass(frozen=True, eq=False)
class Impact(Reported):
    """Velocities after an impact and the impulses of the constraints, each with the leading shape of the inputs."""

    v: Array  # (..., nv) after the impact [rad/s, m/s]
    impulses: Array  # (..., nm) on body a of each constraint, along its rows [N s, N m s]
    report: Array  # (..., 5) iterations, residual [m/s, rad/s], its last change, imbalance, status


@constrained(
    MOVERS,
    inputs={"q": "nq", "v": "nv", "active": "nc", "restitution": "nc", "rows": "nu nv"},
    outputs={"after": "nv", "impulses": "nm", "report": "5"},
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
    double_only=True,
)
def _impact(tree, q, v, active, restitution, rows, w, after, impulses, report):
    nv, o = tree.nv, zero(q)
    for r in range(tree.nm):
        st(w.push, r, o)
    move_bodies(tree, q, v, w)
    collect_bodies(tree, q, v, w, w.M, w.rest, w.far)
    aim_rows(tree, active, w.push, w, w.J, w.goal)
    take_rows(tree, active, w.push, rows, w.J, w.goal)

    sizes = Sizes(o, o, o, o)
    for k in range(nv):  # in no time, only impulses count
        st(w.rest, k, o)
        sizes = sized(tree, k, o, ld(v, k), sizes)
    for c in range(tree.nc):
        for r in range(tree.first_row[c], tree.end_row[c]):
            speed = o
            for n in range(tree.first_mover[c], tree.end_mover[c]):
                k = tree.mover[n]
                speed = speed + ld(w.J, r * nv + k) * ld(v, k)
            st(w.goal, r, -(1.0 + ld(restitution, c)) * speed)
    settle(tree, sizes, w, after, impulses, report)
    for k in range(nv):
        st(after, k, ld(after, k) + ld(v, k))
