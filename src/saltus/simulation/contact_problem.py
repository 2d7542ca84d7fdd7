"""The contact problem, at the level of velocities: impulses that keep bodies apart and make them stick or slide.

    u = G x + g,      x_i in its interval or cone,      u_i in what that allows:

    a row of a joint    lower <= x <= upper     u = 0 inside, u >= 0 at the lower end, u <= 0 at the upper one
    a contact           |x_t| <= mu x_n         u_n >= 0, x_n u_n = 0;  u_t = 0, or x_t = -mu x_n u_t / |u_t|

G is the Delassus matrix J M^-1 J^T (with compliance on its diagonal), g the rates of the rows without impulses, less what is
asked of them. Rows of joints come first: loops have infinite intervals, limits begin at 0, dry friction has both ends. Then
contacts, three rows each, the normal first.

| method | how |
|---|---|
| `admm` | proximal points by Newton's method (contact_newton.py); then turns, where that finds no way |
| `pgs` | projected Gauss-Seidel (contact_pgs.py) |

Mostly the first few of Newton's steps solve the problem. A turn begins from the best impulses so far, and looks for others
by a path (contact_path.py), each third one by ADMM (contact_admm.py); Newton's method goes on from there. In packets all
lanes go together, and those that are done stay as they are.

`report`: steps of Newton's method, or sweeps; turns; residuals, each the worst of all contacts and rows; where the natural
map is worst; status. `settle` returns where the two others are.

| residual | of a contact | of a joint's row |
|---|---|---|
| natural map [m/s] | \\|D (x - P(x - u / D))\\| | the same |
| dual [m/s] | how much u_n is too little: -u_n (convex law: mu \\|u_t\\| - u_n) | u where no end is that allows it |
| complementarity [J] | \\|x . u + mu x_n \\|u_t\\|\\| (convex law: \\|x . u\\|) | \\|u\\| times the way to the end |

Impulses always lie in their cones and intervals, so there is no primal one.
"""

from __future__ import annotations

from saltus.constraints.report import Status
from saltus.kernel import Layout, fabs, kernel, ld, less, lift, maximum, rolled, select, some, sqrt, st, zero
from saltus.simulation.contact_admm import admm, begin_splitting
from saltus.simulation.contact_law import COULOMB, project, within
from saltus.simulation.contact_newton import begin, find_rates, newton
from saltus.simulation.contact_path import follow
from saltus.simulation.contact_pgs import gauss_seidel
from saltus.simulation.contact_system import stride, three
from saltus.spatial.algebra import Vec3

METHODS = {"admm": 0, "pgs": 1}

STEPS, CONTACTS_A_STEP = 20, 2
"""Newton's steps, at first and in each turn: so many, and one for so many contacts."""

ITERATIONS = 100
"""Of ADMM in a turn; and sweeps of projected Gauss-Seidel for a turn."""

PATH_STEPS = 400
"""Systems solved along one path."""

PATH_END = 10.0
"""Where a path ends, beside where Newton's method begins."""

LITTLE, MUCH = 2e-3, 0.1
"""Disorder of paths in turn."""

WORK, FINER = 10.0, 1e-3
"""Complementarity, beside the tolerance, that makes Newton's method go on, and what it then aims at."""

ENDLESS = 1e30
"""Ends of intervals beyond this are none."""

DOUBLE, UNIT, SINGLE_UNIT = 1e-9, 2e-16, 1e-7
"""Single precision is what does not tell 1 from 1 + 1e-9; and the shares by which numbers are rounded."""

REPORT = 7

ROWS = Layout(
    nr={
        "impulse": None, "rate": None, "free": None, "lower": None, "upper": None, "friction": None, "scale": None,
        "inverse": None, "step": None, "change": None, "home": None, "home_rate": None, "slope": Vec3, "moves": None,
        "listed": int, "fixed": int, "best": None, "along": None, "passed": None, "ahead": None, "split": None,
        "dual": None, "before": None, "pivot": None,
    },
    nrr={"delassus": None},
    nrs={"system": None},
)  # fmt: skip


def row_sizes(rows: int) -> dict[str, int]:
    """The sizes of `ROWS` for so many rows."""
    return {"nr": rows, "nrr": rows**2, "nrs": rows * stride(rows)}


@rolled
@kernel
def settle(w, first, n, law, method, tolerance, least, rounds, report):
    """Impulses from those at hand on: `first` rows of joints, contacts in the others of n; at most so many turns.

    `least`: the least share of its diagonal that is added to G while steps are looked for; 1e-12, in single precision
    1e-5."""
    begin(w, first, n)
    if method == 0:
        count, turns = take_turns(w, first, n, law, tolerance, least, rounds)
    else:
        count, turns = gauss_seidel(w, first, n, law, tolerance, rounds * ITERATIONS), zero(w.delassus)
    return conclude(w, first, n, law, count, turns, tolerance, report)


@kernel
def take_turns(w, first, n, law, tolerance, least, rounds):
    """Newton's method, from new starts as long as it finds no way; its steps, and how many of these there were. Where
    impulses are so large that they do work all the same, it goes on for a while at last."""
    o, one = zero(w.delassus), lift(1.0, zero(w.delassus))
    count, turns, best, going, aim = o, o, lift(ENDLESS, o), one, tolerance + o
    turn, last = 0, False
    while True:
        if turn > 0 and not last:
            start_anew(w, first, n, law, turn - 1, least, going)
        steps, left = newton(w, first, n, law, aim, least, STEPS + n // (3 * CONTACTS_A_STEP), going)
        better = less(left, select(less(0.5, going), best, -one)) if turn > 0 or last else less(-one, o)
        for i in range(n):
            w.best[i] = select(better, w.impulse[i], w.best[i])
        best, count = select(better, left, best), count + steps
        if last:
            break
        going = select(less(best, ENDLESS), select(less(tolerance, best), one, o), o)
        if some(less(0.5, going)):
            back_to_best(w, n)
            going = select(less(rounding(w, n), best), going, o)
        if turn < rounds and some(less(0.5, going)):
            turn, turns = turn + 1, turns + going
        else:
            last = True
            if turn > 0:
                back_to_best(w, n)
            going = select(less(WORK * tolerance, work(w, first, n, law)), select(less(tolerance, best), o, one), o)
            aim = aim * FINER
            if not some(less(0.5, going)):
                break
    if some(less(0.5, turns + going)):
        back_to_best(w, n)
    return count, turns


@kernel
def work(w, first, n, law):
    """The complementarity residual."""
    most = zero(w.delassus)
    for i in range(first):
        most = maximum(most, work_of_joint(w, i))
    for i in range(first, n, 3):
        most = maximum(most, work_of_contact(w, law, i))
    return most


@kernel
def work_of_joint(w, i):
    x, u, o = w.impulse[i], w.rate[i], zero(w.delassus)
    up = select(less(-ENDLESS, w.lower[i]), maximum(u, o) * (x - w.lower[i]), o)
    return maximum(up, select(less(w.upper[i], ENDLESS), maximum(-u, o) * (w.upper[i] - x), o))


@kernel
def work_of_contact(w, law, i):
    x, u = three(w.impulse, i), three(w.rate, i)
    leaves = u.x + w.friction[i] * sqrt(u.y * u.y + u.z * u.z) if law == COULOMB else u.x
    return fabs(x.x * leaves + x.y * u.y + x.z * u.z)


@kernel
def back_to_best(w, n):
    for i in range(n):
        w.impulse[i] = w.best[i]
    find_rates(w, n)


@kernel
def start_anew(w, first, n, law, turn, least, going):
    """Other impulses, where a lane is `going` (1 or 0)."""
    if turn == 0:
        begin_splitting(w, n)
    if turn % 3 == 2:
        admm(w, first, n, law, turn // 3, ITERATIONS, going)
        find_rates(w, n)
    else:
        disorder = lift(LITTLE if turn % 2 == 0 else MUCH, zero(w.delassus))
        follow(w, first, n, law, disorder, turn, PATH_END * least, PATH_STEPS, going)


@kernel
def rounding(w, n):
    """How far rounding puts rates off that impulses hold: those of what is far are large, and need no digits."""
    most = zero(w.delassus)
    unit = select(less(most, lift(1.0 + DOUBLE, most) - 1.0), UNIT + most, SINGLE_UNIT + most)
    for i in range(n):
        total = fabs(w.free[i])
        for j in range(n):
            total = total + fabs(ld(w.delassus, i * n + j) * w.impulse[j])
        most = maximum(most, total - fabs(w.rate[i]))
    return most * unit


@kernel
def conclude(w, first, n, law, count, turns, tolerance, report):
    """What is left of the problem; the places of the second and third residual."""
    o = zero(w.delassus)
    natural, dual, product = o, o, o
    place = dual_place = product_place = -lift(1.0, o)
    for i in range(first):
        x, u, lower, upper = w.impulse[i], w.rate[i], w.lower[i], w.upper[i]
        left = fabs(x - within(x - u * w.inverse[i], lower, upper)) * w.scale[i]
        up, down = maximum(u, o), maximum(-u, o)
        away = maximum(select(less(-ENDLESS, lower), o, up), select(less(upper, ENDLESS), o, down))
        done = work_of_joint(w, i)
        place, natural = select(less(natural, left), 1.0 * i + o, place), maximum(natural, left)
        dual_place, dual = select(less(dual, away), 1.0 * i + o, dual_place), maximum(dual, away)
        product_place, product = select(less(product, done), 1.0 * i + o, product_place), maximum(product, done)
    for i in range(first, n, 3):
        x, u, mu = three(w.impulse, i), three(w.rate, i), w.friction[i]
        miss = x - project(law, mu, x - u * w.inverse[i])
        left = sqrt(miss.x * miss.x + miss.y * miss.y + miss.z * miss.z) * w.scale[i]
        slip = mu * sqrt(u.y * u.y + u.z * u.z)
        leaves = u.x + slip if law == COULOMB else u.x
        away = slip - leaves
        done = work_of_contact(w, law, i)
        place, natural = select(less(natural, left), 1.0 * i + o, place), maximum(natural, left)
        dual_place, dual = select(less(dual, away), 1.0 * i + o, dual_place), maximum(dual, away)
        product_place, product = select(less(product, done), 1.0 * i + o, product_place), maximum(product, done)
    status = lift(1.0 * Status.CONVERGED, o)
    if some(less(tolerance, natural)):
        short = select(less(natural, 4.0 * rounding(w, n)), 1.0 * Status.INACCURATE + o, 1.0 * Status.STOPPED + o)
        status = select(less(tolerance, natural), short, status)
    status = select(less(natural, lift(ENDLESS, o)), status, 1.0 * Status.INVALID + o)
    st(report, 0, count)
    st(report, 1, turns)
    st(report, 2, natural)
    st(report, 3, dual)
    st(report, 4, product)
    st(report, 5, place)
    st(report, 6, status)
    return dual_place, product_place
