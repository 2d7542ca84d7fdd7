"""A step of a robot that touches the world: semi-implicit Euler with impulses.

    (M + h D) (v+ - v) = h (drive - b) + J^T x,      J v+ + bias and x as contacts, limits, friction and loops allow,
    q+ = q (+) h v+                         (free flyers: coasting.py; where something rebounds: contact_rows.py)

Springs, dampers and PD control are implicit, D their slope: what they do grows with v+ itself, so that stiff gains are as
stable as soft ones. A motor that would need more than its limit gives just that, and is explicit.

    drive = tau + kp (target (-) q - h v) - kd v + stiffness (rest - q - h v) - damping v,
    D = damping + kd + h (kp + stiffness)

1. velocities, inertia matrix and bias forces of all bodies (system.py); U D U^T of M + h D along the tree (ltl.py);
2. v_free, the velocities without impulses;
3. gaps (collision), rows that are near, their Delassus matrix (contact_rows.py);
4. impulses x (contact_problem.py), from those of the last step on;
5. v+ = v_free + U^-T D^-1 sum_r y_r x_r.

O(n d^2 + m d^2 + m^2 d) for m rows of depth d, and O(m^3) for each of the few steps that Newton's method takes.
"""

from __future__ import annotations

from saltus.collision.contacts import find_contacts
from saltus.constraints.report import Status
from saltus.constraints.system import AXES, BODIES, collect_bodies, move_bodies
from saltus.dynamics.ltl import factor, solve_lower, solve_upper
from saltus.dynamics.passive import spring_torque
from saltus.kernel import declare, fabs, kernel, ld, less, lift, maximum, rolled, select, some, st, tail, zero
from saltus.model.manifold import difference_joint, step_joint
from saltus.model.tree import HEAVY
from saltus.simulation.coasting import coast, find_way, turn_along
from saltus.simulation.contact_law import within
from saltus.simulation.contact_problem import REPORT, settle
from saltus.simulation.contact_rows import ROW_WORK, find_rows, let_be, onward, tangent
from saltus.simulation.contact_system import set_three, three
from saltus.simulation.simulated import TABLES
from saltus.spatial.algebra import Force, Vec3, cross, dot, power

EARLY = 5
"""Turns of the solver until it gives up to part what overlaps."""

WORK = ROW_WORK.extended(
    nj=BODIES,
    nv={**AXES, "rest": None, "mean": None, "joint_slope": None, "motor_slope": None},
    nvv={"M": None},
    nvp={"pull": None},
    nheld={"kept": None},
    nmost={"known_slot": None, "known_impulse": Vec3},
    one={"known": int},
    nsaid={"said": None},
)


@kernel
def drive(tree, q, v, h, tau, target, kp, kd, w):
    """What motors are told to give, `pull`, and how much less as v+ grows, `motor_slope`."""
    if target is not None:
        for i in range(1, tree.nj):
            difference_joint(tree, i, q, target, w.pull)
    for k in range(tree.nv):
        wanted, own = ld(tau, k), zero(q)
        if target is not None:
            own = ld(kd, k) + h * ld(kp, k)
            wanted = wanted + ld(kp, k) * w.pull[k] - own * ld(v, k)
        w.pull[k], w.motor_slope[k] = wanted, own


@kernel
def hold_back(tree, v, effort, w):
    """Motors that would give more than they can while the robot moves to `speed` give what they can; 1 if there are any."""
    found = zero(v)
    for k in range(tree.nv):
        most = ld(effort, k)
        given = w.pull[k] - w.motor_slope[k] * (w.speed[k] - ld(v, k))
        weak = less(most, fabs(given))
        w.pull[k] = select(weak, within(given, -most, most), w.pull[k])
        w.motor_slope[k] = select(weak, zero(v), w.motor_slope[k])
        found = select(weak, lift(1.0, found), found)
    return found


@kernel
def load_joints(tree, q, v, h, acting, w):
    """Forces of motors, springs and dampers in `rest`, h times their slope in `joint_slope`."""
    for k in range(tree.nv):
        spring, damper = ld(acting, 0), ld(acting, 1) * tree.damping[k]
        slope = spring * (h * tree.spring[k]) + damper
        w.rest[k] = w.pull[k] + spring * spring_torque(tree, k, q) - slope * ld(v, k)
        w.joint_slope[k] = h * (w.motor_slope[k] + slope)


@kernel
def push_bodies(tree, count, pushed, at, push, w):
    """Forces along the world's axes, at points of bodies."""
    for n in range(count):
        body = pushed[n]
        X, f = w.place[body], ld(push, 3 * n, Vec3)
        p = X.R @ ld(at, 3 * n, Vec3) + X.p
        force = Force(f, cross(p, f))
        k = tree.end[body] - 1
        while k >= 0:
            w.rest[k] = w.rest[k] + power(w.axis[k], force)
            k = tree.above[k]


@kernel
def move_freely(tree, v, h, w):
    """v_free, on the factors of M + h D."""
    nv = tree.nv
    for k in range(nv):
        st(w.M, k * nv + k, ld(w.M, k * nv + k) + w.joint_slope[k])
    factor(tree.above, nv, w.M, w.pivot_inverse)
    solve_upper(tree.above, nv, w.M, w.rest)
    for k in range(nv):
        w.pivot_inverse[k] = 1.0 / w.pivot_inverse[k]
        w.rest[k] = w.rest[k] * (h * w.pivot_inverse[k])
    solve_lower(tree.above, nv, w.M, w.rest)
    for k in range(nv):
        w.speed[k] = ld(v, k) + w.rest[k]
    coast(tree, v, h, w.speed)


@rolled
@kernel
def add_impulses(tree, first, n, w):
    """From v_free to v+, in `speed`; and how fast the step goes, in `mean`."""
    nv = tree.nv
    for k in range(nv):
        w.rest[k] = zero(w.row)
    for r in range(first):
        x, last = w.impulse[r], w.last[r]
        k = min(last, nv - 1)
        while k >= 0:
            w.rest[k] = w.rest[k] + ld(w.row, r * nv + k) * x
            k = onward(tree, last, k)
    for r in range(first, n, 3):
        x, last = three(w.impulse, r), w.last[r]
        k = min(last, nv - 1)
        while k >= 0:
            at = r * nv + k
            push = ld(w.row, at) * x.x + ld(w.row, at + nv) * x.y + ld(w.row, at + nv + nv) * x.z
            w.rest[k] = w.rest[k] + push
            k = onward(tree, last, k)
    for k in range(nv):
        w.rest[k] = w.rest[k] * w.pivot_inverse[k]
    solve_lower(tree.above, nv, w.M, w.rest)
    for k in range(nv):
        w.speed[k] = w.speed[k] + w.rest[k]
        w.mean[k] = w.speed[k] - w.late[0] * w.rest[k]


@rolled
@kernel
def begin_from(tree, held, touch, w):
    """Impulses to begin with: of joints' rows, and of a list of contacts, whose empty entries are -1."""
    for x in range(tree.nheld):
        w.kept[x] = ld(held, x)
    w.known[0] = 0
    for e in range(tree.nmost):
        if some(less(-0.5, ld(touch, 4 * e))):
            known = w.known[0]
            w.known_slot[known], w.known_impulse[known] = ld(touch, 4 * e), ld(touch, 4 * e + 1, Vec3)
            w.known[0] = known + 1


@kernel
def known_impulse(w, slot):
    """Of a contact, along the world's axes."""
    o = zero(w.row)
    x = Vec3(o, o, o)
    for e in range(w.known[0]):
        apart = w.known_slot[e] - slot
        x = x + w.known_impulse[e] * select(less(apart * apart, 0.25), lift(1.0, o), o)
    return x


@rolled
@kernel
def recall(first, n, w):
    """The impulses that are known, of contacts along their normals and tangents."""
    for r in range(first):
        w.impulse[r] = w.kept[w.place_of[r]]
    for r in range(first, n, 3):
        normal, x = w.facing[r], known_impulse(w, w.slot[r])
        t = tangent(normal)
        set_three(w.impulse, r, Vec3(dot(normal, x), dot(t, x), dot(cross(normal, t), x)))


@rolled
@kernel
def keep(tree, first, n, w, report):
    """Impulses that were found, of contacts along the world's axes; and where the worst row is, among all there are."""
    worst, place = ld(report, 5), -lift(1.0, zero(report))
    for x in range(tree.nheld):
        w.kept[x] = zero(report)
    for r in range(first):
        w.kept[w.place_of[r]] = w.impulse[r]
        place = select(less(r - 0.5, worst), lift(1.0 * w.place_of[r], worst), place)
    for r in range(first, n, 3):
        e, normal, x = (r - first) // 3, w.facing[r], three(w.impulse, r)
        t = tangent(normal)
        w.known_slot[e], w.known_impulse[e] = w.slot[r], normal * x.x + t * x.y + cross(normal, t) * x.z
        place = select(less(r - 0.5, worst), tree.nheld + 3.0 * w.slot[r], place)
    w.known[0] = (n - first) // 3
    st(report, 5, place)


@rolled
@kernel
def write_impulses(tree, w, held, touch):
    """Of joints' rows, and a list of contacts: which, -1 for none, and their impulses along the world's axes."""
    o = zero(held)
    for x in range(tree.nheld):
        st(held, x, w.kept[x])
    for e in range(tree.nmost):
        which, x = -lift(1.0, o), Vec3(o, o, o)
        if e < w.known[0]:
            which, x = w.known_slot[e], w.known_impulse[e]
        st(touch, 4 * e, which)
        st(touch, 4 * e + 1, x)


@kernel
def find_impulses(tree, law, method, rounds, first, n, settings, w, report):
    """Friction may wedge bodies so that no impulses part what overlaps: then Coulomb's law has no solution. It has one
    if that need not part."""
    o, count, turns = zero(report), zero(report), zero(report)
    turns_now, last = rounds + 0, method != 0  # sweeps of projected Gauss-Seidel end whether or not there is a solution
    if not last:
        turns_now = min(rounds, EARLY)
    while True:
        settle(w, first, n, law, method, ld(settings, 1), ld(settings, 2), turns_now, report)
        count, turns = count + ld(report, 0), turns + ld(report, 1)
        stopped = less(fabs(ld(report, 6) - Status.STOPPED), 0.5)
        if last or not some(stopped):
            break
        let_be(tree, first, n, select(stopped, lift(1.0, o), o), w)
        for r in range(n):
            w.impulse[r] = select(stopped, o, w.impulse[r])
        turns_now, last = rounds + 0, True
    st(report, 0, count)
    st(report, 1, turns)


@kernel
def step_on(tree, law, method, rounds, q, v, settings, w, new_q, new_v, new_tau, report):
    """One step under the forces in `rest` and their slopes. Impulses that are known are replaced by those it finds."""
    o, h = zero(q), ld(settings, 0)
    w.origin[0] = w.place[0].p * -1.0
    find_contacts(tree, w)
    first, n, crowded = find_rows(tree, q, v, h, tail(settings, 3), w)
    recall(first, n, w)
    find_impulses(tree, law, method, rounds, first, n, settings, w, report)
    keep(tree, first, n, w, report)
    add_impulses(tree, first, n, w)
    total = o
    for k in range(tree.nv):
        st(new_tau, k, w.pull[k] - w.motor_slope[k] * (w.speed[k] - ld(v, k)))
        total = total + w.speed[k]
    for i in range(1, tree.nj):
        find_way(tree, i, w.mean, h, new_v)
        step_joint(tree, i, q, new_v, 1.0, new_q)
        turn_along(tree, i, w.speed, w.mean, h, new_v)
    status = maximum(ld(report, 6), crowded * Status.STOPPED)
    st(report, 6, select(less(-1.0, total - total), status, lift(1.0 * Status.INVALID, o)))


@kernel
def begin_step(tree, q, v, settings, tau, target, kp, kd, effort, count, pushed, at, push, w):
    """Up to v_free."""
    drive(tree, q, v, ld(settings, 0), tau, target, kp, kd, w)
    leave(tree, q, v, settings, count, pushed, at, push, w)
    if target is not None:
        if some(less(0.5, hold_back(tree, v, effort, w))):
            leave(tree, q, v, settings, count, pushed, at, push, w)


@kernel
def leave(tree, q, v, settings, count, pushed, at, push, w):
    """v_free, by what motors give."""
    h = ld(settings, 0)
    move_bodies(tree, q, v, w)
    load_joints(tree, q, v, h, tail(settings, 5), w)
    push_bodies(tree, count, pushed, at, push, w)
    collect_bodies(tree, q, w.rest, w, w.M, w.rest, None)
    move_freely(tree, v, h, w)


@rolled
@kernel
def gather(said, worst):
    """What a step says, with what steps before it said: counts add up, residuals and the status are the worst."""
    place = select(less(ld(worst, 2), ld(said, 2)), ld(said, 5), ld(worst, 5))
    for k in range(2):
        st(worst, k, ld(worst, k) + ld(said, k))
    for k in range(2, REPORT):
        st(worst, k, maximum(ld(worst, k), ld(said, k)))
    st(worst, 5, place)


PER_STEP = {"q": "nq", "v": "nv", "held": "nheld", "touch": "nmost 4", "settings": "7", "effort": "nv"}
"""Inputs: the state; impulses to begin with, of joints' rows and in a list of contacts (`write_impulses`); what steps need;
limits of motors. Settings: dt, tolerance, least share of the diagonal (settle), factor of friction, compliance, whether
springs act, and dampers (1 or 0)."""


@declare(
    TABLES,
    inputs={"plan": "3 int"} | PER_STEP | {"tau": "nv"},
    outputs={"qs": "nq", "vs": "nv", "taus": "nv", "helds": "nheld", "touches": "nmost 4", "report": "7"},
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
    sloped=False,
)  # fmt: skip
def _contact_step(tree, plan, q, v, held, touch, settings, effort, tau, w, qs, vs, taus, helds, touches, report):
    """One step under torques. `plan`: law, method, turns of the solver."""
    begin_from(tree, held, touch, w)
    begin_step(tree, q, v, settings, tau, None, None, None, effort, 0, plan, held, held, w)
    step_on(tree, plan[0], plan[1], plan[2], q, v, settings, w, qs, vs, taus, report)
    write_impulses(tree, w, helds, touches)


@declare(
    TABLES,
    inputs={"plan": "6 int", "clock": "ticks int", "record": "rows int", "pushed": "npush int"} | PER_STEP | {
        "at": "npush 3", "push": "ticks npush 3",
        "tau": "ticks nv", "kp": "ticks nv", "kd": "ticks nv", "target": "ticks nq optional",
    },
    outputs={
        "qs": "rows nq", "vs": "rows nv", "taus": "rows nv", "helds": "rows nheld", "touches": "rows nmost 4",
        "reports": "rows 7",
    },
    work=WORK,
    inverts_inertia=True,
    own_code=HEAVY,
    sloped=False,
)  # fmt: skip
def _contact_steps(
    tree, plan, clock, record, pushed, q, v, held, touch, settings, effort, at, push, tau, kp, kd, target, w,
    qs, vs, taus, helds, touches, reports,
):  # fmt: skip
    """Many steps. `plan`: law, method, turns of the solver, steps for each tick of the clock, steps for each row that is
    recorded, pushes."""
    nq, nv = tree.nq, tree.nv
    hold, every, goal, p, d = plan[3], plan[4], target, kp, kd
    begin_from(tree, held, touch, w)
    for row in range(record[0]):
        new_q, new_v, new_tau = tail(qs, row * nq), tail(vs, row * nv), tail(taus, row * nv)
        worst = tail(reports, row * REPORT)
        for k in range(REPORT):
            st(worst, k, zero(q))
        for step in range(row * every, (row + 1) * every):
            tick = step // hold
            if target is not None:
                goal, p, d = tail(target, tick * nq), tail(kp, tick * nv), tail(kd, tick * nv)
            now, pull = tail(tau, tick * nv), tail(push, 3 * tick * plan[5])
            begin_step(tree, q, v, settings, now, goal, p, d, effort, plan[5], pushed, at, pull, w)
            step_on(tree, plan[0], plan[1], plan[2], q, v, settings, w, new_q, new_v, new_tau, w.said)
            q, v = new_q, new_v
            gather(w.said, worst)
        write_impulses(tree, w, tail(helds, row * tree.nheld), tail(touches, 4 * row * tree.nmost))
