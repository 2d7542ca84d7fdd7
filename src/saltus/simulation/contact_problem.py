"""The contact problem, at the level of velocities: impulses that keep bodies apart and make them stick or slide.

    u = G x + g,      x_i in its interval or cone,      u_i in what that allows:

    a row of a joint    lower <= x <= upper     u = 0 inside, u >= 0 at the lower end, u <= 0 at the upper one
    a contact           |x_t| <= mu x_n         u_n >= 0, x_n u_n = 0;  u_t = 0, or x_t = -mu x_n u_t / |u_t|

G is the Delassus matrix J M^-1 J^T (with compliance on its diagonal), g the rates of the rows without impulses, less what is
asked of them. Rows of joints come first: loops have infinite intervals, limits begin at 0, dry friction has both ends.

| method | how |
|---|---|
| `admm` | a proximal point method by Newton steps (contact_newton.py); where these find no way, ADMM goes ahead (contact_admm.py) |
| `pgs` | projected Gauss-Seidel (contact_pgs.py) |

`report`: Newton's steps or sweeps; rounds of ADMM; residuals, each the worst of all contacts and rows: as velocities the
natural map, dual (rates outside what is allowed); complementarity, impulse times rate [J]; the row where the first is worst;
status. Impulses always lie in their cones and intervals.
"""

from __future__ import annotations

from typing import Any

from saltus.constraints.report import Status
from saltus.kernel import (
    Layout,
    Part,
    Tables,
    declare,
    fabs,
    kernel,
    ld,
    less,
    lift,
    maximum,
    rolled,
    select,
    some,
    sqrt,
    st,
    zero,
)
from saltus.kernel.tables import Filled, FilledPart
from saltus.model.tree import CONFIGURATIONS
from saltus.simulation.contact_admm import admm, begin_splitting
from saltus.simulation.contact_law import COULOMB, project, within
from saltus.simulation.contact_newton import begin, find_rates, newton, put_inside, stride, three
from saltus.simulation.contact_path import follow
from saltus.simulation.contact_pgs import gauss_seidel
from saltus.spatial.algebra import Vec3

METHODS = {"admm": 0, "pgs": 1}

NEWTON_STEPS, MORE_STEPS = 30, 12
"""At first, and after each round of ADMM."""

STEPS = 400

ROUND = 100
"""Iterations of ADMM in one round."""

DAMPINGS = (1.0, 0.1, 0.01, 0.3, 0.03)
"""rho of rounds in turn."""

REPORT = 7

ROWS = Layout(
    nr={
        "impulse": None, "rate": None, "free": None, "lower": None, "upper": None, "friction": None, "scale": None,
        "inverse": None, "step": None, "change": None, "home": None, "home_rate": None, "split": None, "dual": None,
        "before": None, "pivot": None, "best": None, "slope": Vec3, "along": None, "passed": None, "ahead": None,
        "listed": int,
    },
    nrr={"delassus": None},
    nrs={"system": None},
)  # fmt: skip


@rolled
@kernel
def settle(w, first, n, law, method, tolerance, least, rounds, report):
    """Impulses from those at hand on: `first` rows of joints, contacts in the others of n. `least`: of alpha (newton)."""
    o, one = zero(w.delassus), lift(1.0, zero(w.delassus))
    begin(w, first, n)
    going, turns = one, o
    if method == 0:
        count, left = newton(w, first, n, law, tolerance, least, NEWTON_STEPS, going)
        if some(less(tolerance, left)):
            keep(w, n, less(-1.0, o))
            best = left
            begin_splitting(w, n)
            for turn in range(rounds):
                going = select(less(tolerance, best), one, o)
                if not some(less(0.5, going)):
                    break
                if turn < 2:
                    admm(w, first, n, law, lift(damping(turn), o), ROUND, going)
                    find_rates(w, n)
                else:
                    for i in range(n):
                        w.impulse[i] = w.best[i] if turn % 3 < 2 else o
                    find_rates(w, n)
                    disorder = 0.02 if turn % 2 == 0 else 0.2
                    if turn % 6 == 5:
                        disorder = 1.0
                    follow(w, first, n, law, lift(disorder, o), turn, 1e3 * least, STEPS, going)
                steps, left = newton(w, first, n, law, tolerance, least, MORE_STEPS, going)
                better = less(left, select(less(0.5, going), best, -one))
                keep(w, n, better)
                best, count, turns = select(better, left, best), count + steps, turns + going
            for i in range(n):
                w.impulse[i] = w.best[i]
            put_inside(w, first, n, law, one)
    else:
        count, left = gauss_seidel(w, first, n, law, tolerance, rounds * ROUND, going)
    conclude(w, first, n, law, count, turns, tolerance, report)


@kernel
def damping(turn):
    rho = DAMPINGS[0]
    for k in (1, 2, 3, 4):
        rho = DAMPINGS[k] if turn % 5 == k else rho
    return rho


@kernel
def keep(w, n, better):
    for i in range(n):
        w.best[i] = select(better, w.impulse[i], w.best[i])


@kernel
def conclude(w, first, n, law, count, turns, tolerance, report):
    """What is left of the problem."""
    o = zero(w.delassus)
    natural, dual, product, place = o, o, o, -lift(1.0, o)
    for i in range(first):
        x, u = w.impulse[i], w.rate[i]
        left = fabs(x - within(x - u * w.inverse[i], w.lower[i], w.upper[i])) * w.scale[i]
        away = select(less(x, w.upper[i]), maximum(-u, o), o)
        away = maximum(away, select(less(w.lower[i], x), maximum(u, o), o))
        place, natural = select(less(natural, left), 1.0 * i + o, place), maximum(natural, left)
        dual = maximum(dual, select(less(w.lower[i], x), o, away))
    for i in range(first, n, 3):
        x, u, mu = three(w.impulse, i), three(w.rate, i), w.friction[i]
        miss = x - project(law, mu, x - u * w.inverse[i])
        left = sqrt(miss.x * miss.x + miss.y * miss.y + miss.z * miss.z) * w.scale[i]
        lift_off = u.x
        slip = sqrt(u.y * u.y + u.z * u.z)
        if law == COULOMB:
            lift_off = u.x + mu * slip
        place, natural = select(less(natural, left), 1.0 * i + o, place), maximum(natural, left)
        dual = maximum(dual, mu * slip - lift_off)
        product = maximum(product, fabs(x.x * lift_off + x.y * u.y + x.z * u.z))
    solved = select(less(natural, tolerance), lift(1.0 * Status.CONVERGED, o), lift(1.0 * Status.STOPPED, o))
    st(report, 0, count)
    st(report, 1, turns)
    st(report, 2, natural)
    st(report, 3, maximum(dual, o))
    st(report, 4, product)
    st(report, 5, place)
    st(report, 6, select(less(natural, lift(1e300, o)), solved, lift(1.0 * Status.INVALID, o)))


class ContactProblem:
    """What stands in the place of a model for problems of one size."""

    specialised = varied = weightless = False
    coupling = None

    def __init__(self, rows: int, contacts: int) -> None:
        self.name, self.rows, self.contacts = f"{rows} rows and {contacts} contacts", rows, contacts
        self.filled: dict[Tables, Filled] = {}
        self.quick: dict[Any, Any] = {}
        self.parts: dict[Part, FilledPart] = {}


def measure(problem: ContactProblem) -> dict[str, int]:
    nr = problem.rows + 3 * problem.contacts
    return {"nb": problem.rows, "nk": problem.contacts, "nr": nr, "nrr": nr**2, "nrs": nr * stride(nr)}


PLAIN = Part(("nb", "nk", "nr", "nrr", "nrs"), Layout(), Layout(), measure, lambda problem, ints, reals: None)


@declare(
    Tables([PLAIN], CONFIGURATIONS),
    inputs={
        "options": "3 int", "G": "nr nr", "g": "nr", "friction": "nk", "lower": "nb", "upper": "nb", "start": "nr",
        "tolerance": "2",
    },
    outputs={"x": "nr", "u": "nr", "report": "7"},
    work=ROWS,
)  # fmt: skip
def _contact_problem(tree, options, G, g, friction, lower, upper, start, tolerance, w, x, u, report):
    """`options`: law, method, rounds; `tolerance`: of the natural map, and the least alpha."""
    first, n = tree.nb, tree.nr
    for i in range(n * n):
        st(w.delassus, i, ld(G, i))
    for i in range(n):
        w.free[i], w.impulse[i], w.friction[i] = ld(g, i), ld(start, i), zero(g)
    for i in range(first):
        w.lower[i], w.upper[i] = ld(lower, i), ld(upper, i)
    for c in range(tree.nk):
        w.friction[first + 3 * c] = ld(friction, c)
    settle(w, first, n, options[0], options[1], ld(tolerance, 0), ld(tolerance, 1), options[2], report)
    for i in range(n):
        st(x, i, w.impulse[i])
        st(u, i, w.rate[i])
