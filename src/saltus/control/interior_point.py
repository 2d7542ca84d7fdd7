"""Quadratic programs with bounds, friction cones and rows, by a primal-dual interior point method.

    minimise 1/2 x'Hx + h'x    subject to    lower <= x <= upper,  |(x_fx, x_fy)| <= mu x_fz,  lower <= F x <= upper

A row is an equality where its ends meet; H need not be definite along rows. Each iteration factors one matrix:

    | H + D_x + C'W^-2 C    F'         | | dx |        D: z / s of the bounds at hand; of a row, D^-1 -> 0 as it meets an end
    | F                     -D_row^-1  | | dl |        W: the cones' scaling (cones.py)

which is quasidefinite: it has factors in any order (cholesky.py). What lies between a variable and its bounds, s, is always
computed from it, so that every iterate lies within bounds and cones. Mehrotra's predictor and corrector; the step is the
same for x and multipliers. In packets all lanes go together, and those that are done stay as they are.

| code | what | shape |
|---|---|---|
| `hessian`, `general` | H and F, rows of padded(n) numbers | n n, nf n |
| `system` | the matrix above, then its factors | N N, N = padded(n) + padded(nf) |
| `place`, `step` | (x, t), where rows have F x = t, and its change | N |
| `slope` | (Hx + h + F'l, F x) | N |
| `pull`, `pull_step` | l, of the rows, and its change | N |
| `below`, `above` | z of both ends | N |
| `inside`, `outside` | 1 / (s z) of both ends, 0 where there is none | N |

Reference: L. Vandenberghe, The CVXOPT linear and quadratic cone program solvers (2010), section 7; R. Vanderbei, Symmetric
quasidefinite matrices (1995).
"""

from __future__ import annotations

from saltus.control.cholesky import dot, factor, padded, solve_lower, solve_upper
from saltus.control.cones import (
    Scaling,
    barrier_block,
    circle,
    circle_solved,
    scaled,
    scaling,
    unscaled,
    way_out,
)
from saltus.kernel import (
    Layout,
    Quad,
    fabs,
    kernel,
    ld,
    less,
    lift,
    maximum,
    minimum,
    rolled,
    select,
    some,
    sqrt,
    st,
    tail,
    ticks,
    zero,
)
from saltus.spatial.algebra import Vec3

ENDLESS = 1e20
"""Bounds beyond this are none."""

HELD = 1e25
"""On the diagonal, of a variable that cannot move."""

NEARLY = 0.995
"""The share of the way to the boundary that a step goes."""

LEAST = 1e-14
"""The share of its diagonal entry below which a pivot is rounding."""

SOFT = 1e-10
"""Of an equality: the share by which it may give way in one iteration."""

START, APART, INNER = 1e-6, 0.1, 0.9
"""Where iterations start: what is added to H's diagonal; how far from ends; how far inside cones."""

PUSH = 3e-4
"""The work of barriers at the start, beside that of the slope."""

WARM = 1e-2
"""How much less of both if it starts from a solution of something similar."""

ROUNDING = 1e-12
"""What is left of a cost where all of it cancels."""

CANCELLED = 1e-4
"""How much of what cancels in a slope counts as what is there."""

PLACE, STEP, SLOPE, LINEAR, PULL, PULL_STEP, REST, VECTORS = 0, 1, 2, 3, 4, 5, 6, 7

PROGRAM = Layout(
    npk={"system": None},
    nph={"hessian": None},
    npg={"general": None},
    npv={"vector": None},
    npp={
        "lower": None, "upper": None, "below": None, "above": None, "inside": None, "outside": None, "held": None, "has_lower": None, "has_upper": None,
        "second_below": None, "second_above": None, "change_below": None, "change_above": None, "bounded": int,
    },
    npc={
        "mu": None, "open": None, "force": Vec3, "scaling": Scaling, "balance": Vec3, "second": Vec3, "change": Vec3,
        "fx": int, "fy": int, "fz": int,
    },
)  # fmt: skip


def program_sizes(n: int, rows: int, cones: int) -> dict[str, int]:
    """The sizes of `PROGRAM`."""
    first, size = -(-n // 4) * 4, -(-n // 4) * 4 + -(-rows // 4) * 4
    return {
        "npk": size**2, "nph": first**2, "npg": rows * first, "npv": VECTORS * size, "npp": size, "npc": cones,
    }  # fmt: skip


@kernel
def vector(p, k, size):
    return tail(p.vector, k * size)


@rolled
@kernel
def minimise(p, n, nf, nc, warm, tolerance, most, begun, allowed):
    """From H, F, `LINEAR`, bounds, cones on, and where it is `warm` from x and multipliers on: their solution. Iterations, what is left of slope, rows and gap, and whether
    time was up: `allowed` ticks after `begun`, unless these are 0."""
    first = padded(n)
    size = first + padded(nf)
    o = zero(p.system)
    one = lift(1.0, o)
    nb = list_bounded(p, n, nf, first, nc)
    if not warm:
        begin(p, n, nf, nc, first, size, nb)
    worth = enter(p, nf, nc, first, size, nb, warm)
    count, going, before = o, one, lift(1e300, o)
    dual, rows, gap, late = o, o, o, o
    for iteration in range(most + 1):
        find_slope(p, n, nf, first, size)
        dual, rows, gap, worth = judge(p, n, nf, nc, first, size, nb, worth)
        as_small = select(less(0.5 * before, dual), o, dual)  # rounding allows no less
        before = dual
        left = maximum(maximum(as_small, rows), gap)
        going = select(less(tolerance, left), going, o)
        if iteration == most or not some(less(0.5, going)):
            break
        if allowed > 0 and ticks() - begun > allowed:
            late = going
            break
        mu = measure(p, nc, nb)
        assemble(p, n, nf, nc, first, size, nb, o, False)
        find_step(p, n, nf, nc, first, size, nb, None)
        longest = reach(p, nc, size, nb, None)
        short = 1.0 - minimum(one, 1.0 / maximum(longest, one))
        target = mu * short * short * short
        find_step(p, n, nf, nc, first, size, nb, target)
        longest = reach(p, nc, size, nb, target)
        length = minimum(one, NEARLY / maximum(longest, lift(1e-30, o))) * going
        length = select(less(o, length), length, o)
        move(p, nf, nc, first, size, nb, length)
        count = count + going
    return count, dual, rows, gap, late


@kernel
def list_bounded(p, n, nf, first, nc):
    """Lists the places that have ends; how many. Variables that cannot move have none, but are held."""
    o = zero(p.system)
    one = lift(1.0, o)
    for c in range(nc):
        p.open[c] = select(less(o, p.upper[p.fz[c]]), one, o)
    nb = 0
    for k in range(n + nf):
        j = k if k < n else first + k - n
        low, high = p.lower[j], p.upper[j]
        held = select(less(low, high), o, one)
        p.held[j] = held
        p.has_lower[j] = select(less(-ENDLESS, low), 1.0 - held, o)
        p.has_upper[j] = select(less(high, ENDLESS), 1.0 - held, o)
        if some(less(0.5, held + p.has_lower[j] + p.has_upper[j])):
            p.bounded[nb] = j
            nb = nb + 1
    return nb


@kernel
def begin(p, n, nf, nc, first, size, nb):
    """The minimum that knows of no ends and cones, for a beginning."""
    o = zero(p.system)
    x, h = vector(p, PLACE, size), vector(p, LINEAR, size)
    total = o
    for i in range(n):
        total = total + ld(p.hessian, i * first + i)
    assemble(p, n, nf, nc, first, size, nb, total * (START / max(n, 1)), True)
    for i in range(first):
        x[i] = -ld(h, i)
    for i in range(first, size):
        x[i] = p.held[i] * p.lower[i] if i < first + nf else o
    for k in range(nb):
        j = p.bounded[k]
        if j < first:
            x[j] = select(less(0.5, p.held[j]), p.lower[j] * HELD, ld(x, j))
    solve(p, size, x)


@kernel
def enter(p, nf, nc, first, size, nb, warm):
    """A place within all ends and cones, near that at hand, and multipliers that do some work everywhere. What there is
    to be gained in all."""
    o = zero(p.system)
    x, g, h = vector(p, PLACE, size), vector(p, SLOPE, size), vector(p, LINEAR, size)
    for i in range(first, size):
        vector(p, PULL, size)[i] = o
        vector(p, PULL_STEP, size)[i] = o
    if warm:
        put_inside(p, nf, nc, first, size, nb, WARM * APART, 1.0 - WARM)
    else:
        put_inside(p, nf, nc, first, size, nb, APART, INNER)
    find_slope(p, first, nf, first, size)
    worth = o
    for i in range(first):
        worth = worth + fabs(ld(x, i) * ld(g, i)) + 0.5 * fabs(ld(x, i) * ld(h, i))
    push(p, nc, size, nb, worth * PUSH * WARM if warm else worth * PUSH, warm)
    return worth


@kernel
def put_inside(p, nf, nc, first, size, nb, apart, inner):
    o = zero(p.system)
    x = vector(p, PLACE, size)
    for r in range(nf):
        x[first + r] = dot(tail(p.general, r * first), x, first)
    force = o
    for c in range(nc):
        force = force + fabs(ld(x, p.fz[c]))
    for c in range(nc):
        x[p.fz[c]] = maximum(ld(x, p.fz[c]), force * (apart / max(nc, 1)) + 1e-30)
    far = lift(1e-30, o)
    for k in range(nb):
        j = p.bounded[k]
        beyond = maximum(p.lower[j] - ld(x, j), ld(x, j) - p.upper[j])
        far = maximum(far, select(less(0.5, p.held[j]), o, beyond))
    for k in range(nb):
        j = p.bounded[k]
        low, high, at = p.lower[j], p.upper[j], ld(x, j)
        margin = minimum((high - low) * apart, apart * maximum(fabs(at), far))
        x[j] = select(less(0.5, p.held[j]), low, minimum(maximum(at, low + margin), high - margin))
    for c in range(nc):
        a, b, z = p.fx[c], p.fy[c], p.fz[c]
        length = sqrt(ld(x, a) * ld(x, a) + ld(x, b) * ld(x, b))
        share = minimum(lift(1.0, o), inner * p.mu[c] * ld(x, z) / (length + 1e-30)) * p.open[c]
        x[a], x[b] = ld(x, a) * share, ld(x, b) * share


@kernel
def push(p, nc, size, nb, work, warm):
    """Multipliers that share this work equally; where it is `warm`, those at hand, if they do more."""
    o = zero(p.system)
    x, ends = vector(p, PLACE, size), lift(1e-30, o)
    for k in range(nb):
        j = p.bounded[k]
        ends = ends + p.has_lower[j] + p.has_upper[j]
    for c in range(nc):
        ends = ends + p.open[c]
    mu = work / ends + 1e-30
    for k in range(nb):
        j = p.bounded[k]
        low, high = (ld(x, j) - p.lower[j]) * p.has_lower[j], (p.upper[j] - ld(x, j)) * p.has_upper[j]
        below, above = mu / (low + 1.0 - p.has_lower[j]), mu / (high + 1.0 - p.has_upper[j])
        if warm:
            below, above = maximum(below, p.below[j]), maximum(above, p.above[j])
        p.below[j], p.above[j] = below * p.has_lower[j], above * p.has_upper[j]
    for c in range(nc):
        s, f = slack(p, c, x), Vec3(o, o, o)
        if warm:
            f = p.force[c]
        share = mu * p.open[c] / maximum(s.x * s.x - s.y * s.y - s.z * s.z, lift(1e-30, o))
        p.force[c] = Vec3(f.x + s.x * share, f.y - s.y * share, f.z - s.z * share)


@kernel
def slack(p, c, x):
    return Vec3(p.mu[c] * ld(x, p.fz[c]), ld(x, p.fx[c]), ld(x, p.fy[c]))


@kernel
def find_slope(p, n, nf, first, size):
    """Hx + h + F'l, and F x of the rows."""
    x, g, h, l = vector(p, PLACE, size), vector(p, SLOPE, size), vector(p, LINEAR, size), vector(p, PULL, size)
    for j in range(0, first, 4):
        st(g, j, ld(h, j, Quad))
    for i in range(0, n, 4):
        a, b, c, d = ld(x, i), ld(x, i + 1), ld(x, i + 2), ld(x, i + 3)
        e, k, m, q = i * first, (i + 1) * first, (i + 2) * first, (i + 3) * first
        for j in range(0, first, 4):
            total = ld(g, j, Quad) + ld(p.hessian, e + j, Quad) * a + ld(p.hessian, k + j, Quad) * b
            st(g, j, total + ld(p.hessian, m + j, Quad) * c + ld(p.hessian, q + j, Quad) * d)
    for r in range(nf):
        row = tail(p.general, r * first)
        g[first + r] = dot(row, x, first)
        for j in range(0, first, 4):
            st(g, j, ld(g, j, Quad) + ld(row, j, Quad) * ld(l, first + r))


@kernel
def judge(p, n, nf, nc, first, size, nb, worth):
    """What is left of the slope, of rows and of the gap, each as a share of what is there; and the largest worth.

    Of the slope, what is there are slopes and multipliers, not what cancels in a slope, but for rounding."""
    o = zero(p.system)
    x, g, h, rest = vector(p, PLACE, size), vector(p, SLOPE, size), vector(p, LINEAR, size), vector(p, REST, size)
    most, gap = lift(1e-30, o), o
    half, linear = o, o
    for j in range(n):
        slope = ld(g, j)
        rest[j] = slope
        most = maximum(most, maximum(fabs(slope), CANCELLED * fabs(ld(h, j))))
        half, linear = half + ld(x, j) * (slope - ld(h, j)), linear + ld(x, j) * ld(h, j)
    for k in range(nb):
        j = p.bounded[k]
        below, above, at = p.below[j], p.above[j], ld(x, j)
        gap = gap + below * ((at - p.lower[j]) * p.has_lower[j]) + above * ((p.upper[j] - at) * p.has_upper[j])
        if j < first:
            rest[j] = select(less(0.5, p.held[j]), o, ld(rest, j) - below + above)
            most = maximum(most, maximum(below, above))
    for c in range(nc):
        f, s = p.force[c], slack(p, c, x)
        gap = gap + (f.x * s.x + f.y * s.y + f.z * s.z)
        a, b, z = p.fx[c], p.fy[c], p.fz[c]
        rest[z] = (ld(rest, z) - p.mu[c] * f.x) * p.open[c]
        rest[a] = (ld(rest, a) - f.y) * p.open[c]
        rest[b] = (ld(rest, b) - f.z) * p.open[c]
    dual = o
    for j in range(n):
        dual = maximum(dual, fabs(ld(rest, j)))
    rows = o
    for j in range(first, first + nf):
        row = fabs(ld(g, j) - ld(x, j))
        size_of_row = maximum(fabs(ld(x, j)), lift(1e-30, o))
        rows = maximum(rows, row / maximum(size_of_row, row))
    here = fabs(0.5 * half) + fabs(linear)
    worth = maximum(worth, here)
    return dual / most, rows, gap / maximum(here, ROUNDING * worth + 1e-30), worth


@kernel
def measure(p, nc, nb):
    """The mean work of multipliers; and for all places 1 / (s z), for all cones their scaling."""
    o = zero(p.system)
    x = tail(p.vector, 0)
    work, ends = o, lift(1e-30, o)
    for k in range(nb):
        j = p.bounded[k]
        below, above, at = p.below[j], p.above[j], ld(x, j)
        here, there = p.has_lower[j], p.has_upper[j]
        low, high = (at - p.lower[j]) * below * here, (p.upper[j] - at) * above * there
        p.inside[j], p.outside[j] = here / (low + 1.0 - here), there / (high + 1.0 - there)
        work, ends = work + low + high, ends + here + there
    for c in range(nc):
        s, is_open = slack(p, c, x), p.open[c]
        apart = 1.0 - is_open
        s = Vec3(s.x + apart, s.y, s.z)  # of a cone that is shut, anything
        f = Vec3(p.force[c].x + apart, p.force[c].y, p.force[c].z)
        W = scaling(s, f)
        p.scaling[c], p.balance[c] = W, scaled(W, f)
        work, ends = work + (s.x * f.x + s.y * f.y + s.z * f.z) * is_open, ends + is_open
    return work / ends


@kernel
def assemble(p, n, nf, nc, first, size, nb, added, alone):
    """The matrix and its factors. `alone`: without inequalities, but with `added` on the diagonal."""
    K, H, o = p.system, p.hessian, zero(p.system)
    for i in range(n):
        for j in range(i // 4 * 4, first, 4):
            st(K, i * size + j, ld(H, i * first + j, Quad))
        for j in range(first, size):
            st(K, i * size + j, ld(p.general, (j - first) * first + i) * (1.0 - p.held[i]) if j < first + nf else o)
        if alone:
            st(K, i * size + i, ld(K, i * size + i) + added)
    for i in range(first, size):
        for j in range(i // 4 * 4, size):
            st(K, i * size + j, o)
    for i in range(n, first):
        for j in range(i // 4 * 4, size):
            st(K, i * size + j, o)
        st(K, i * size + i, 1.0)
    for i in range(first, size):
        st(K, i * size + i, -1.0)
    for r in range(nf):
        j, give = first + r, o
        for i in range(n):
            along = ld(K, i * size + j)
            give = give + along * along / maximum(ld(K, i * size + i), lift(1e-30, o))
        st(K, j * size + j, select(less(o, give), -SOFT * give - 1e-30, -lift(1.0, o)))
    for k in range(nb):
        j = p.bounded[k]
        below, above, held = p.below[j], p.above[j], p.held[j]
        if alone:
            stiff = o
        else:
            stiff = below * below * p.inside[j] + above * above * p.outside[j]
        at = j * size + j
        if j < first:
            st(K, at, ld(K, at) + stiff + held * HELD)
        else:
            st(K, at, select(less(0.5, held), ld(K, at), -1.0 / maximum(stiff, lift(1e-25, o))))
    for c in range(nc):
        a, b, z, shut = p.fx[c], p.fy[c], p.fz[c], (1.0 - p.open[c]) * HELD
        add(K, a * size + a, shut)
        add(K, b * size + b, shut)
        if not alone:
            B, is_open = barrier_block(p.mu[c], p.scaling[c]), p.open[c]
            add(K, a * size + a, B.xx * is_open)
            add(K, b * size + b, B.yy * is_open)
            add(K, z * size + z, B.zz * is_open)
            add(K, min(a, b) * size + max(a, b), B.xy * is_open)
            add(K, min(a, z) * size + max(a, z), B.xz * is_open)
            add(K, min(b, z) * size + max(b, z), B.yz * is_open)
    factor(K, size, first, size, vector(p, REST, size), LEAST)


@kernel
def add(K, k, x):
    st(K, k, ld(K, k) + x)


@kernel
def solve(p, size, d):
    inverse = vector(p, REST, size)
    solve_lower(p.system, size, size, inverse, d)
    solve_upper(p.system, size, size, inverse, d)


@kernel
def pulls(p, j, target):
    """What barriers ask of the multipliers of both ends."""
    if target is None:
        low = high = zero(p.system)
    else:
        low = (target - p.second_below[j]) * p.below[j] * p.inside[j]
        high = (target - p.second_above[j]) * p.above[j] * p.outside[j]
    return low, high


@kernel
def cone_pull(p, c, target):
    """The same of a cone, scaled: W z + W dz + W^-1 ds."""
    o = zero(p.system)
    if target is None:
        found = Vec3(o, o, o)
    else:
        second = p.second[c]
        found = circle_solved(p.balance[c], Vec3(target - second.x, -second.y, -second.z))
    return found


@kernel
def find_step(p, n, nf, nc, first, size, nb, target):
    """Newton's step towards products s z of `target`."""
    o = zero(p.system)
    x, g, d, l = vector(p, PLACE, size), vector(p, SLOPE, size), vector(p, STEP, size), vector(p, PULL, size)
    for i in range(first):
        d[i] = -ld(g, i)
    for i in range(n, first):
        d[i] = o
    for i in range(first, size):
        d[i] = ld(x, i) - ld(g, i) if i < first + nf else o
    for k in range(nb):
        j = p.bounded[k]
        low, high = pulls(p, j, target)
        if j < first:
            d[j] = select(less(0.5, p.held[j]), o, ld(d, j) + low - high)
        else:
            give = -softness(p, j)
            d[j] = ld(d, j) - give * (ld(l, j) + low - high)
    if target is not None:
        for c in range(nc):
            f = unscaled(p.scaling[c], cone_pull(p, c, target))
            add(d, p.fx[c], f.y * p.open[c])
            add(d, p.fy[c], f.z * p.open[c])
            add(d, p.fz[c], f.x * p.mu[c] * p.open[c])
    solve(p, size, d)
    for k in range(nb):
        j = p.bounded[k]
        if j >= first:
            low, high = pulls(p, j, target)
            change = ld(d, j)
            vector(p, PULL_STEP, size)[j] = change
            d[j] = softness(p, j) * (ld(l, j) + change + low - high)


@kernel
def softness(p, j):
    """D^-1 of a row; 0 of an equality."""
    stiff = p.below[j] * p.below[j] * p.inside[j] + p.above[j] * p.above[j] * p.outside[j]
    return select(less(0.5, p.held[j]), lift(0.0, stiff), 1.0 / maximum(stiff, lift(1e-25, stiff)))


@kernel
def reach(p, nc, size, nb, target):
    """1 / the longest step that stays inside; the changes of multipliers. Without a target, also what Newton neglects."""
    o = zero(p.system)
    d = vector(p, STEP, size)
    longest = o
    for k in range(nb):
        j = p.bounded[k]
        below, above, ds = p.below[j], p.above[j], ld(d, j)
        per_low, per_high = below * p.inside[j], above * p.outside[j]  # 1 / s
        low, high = pulls(p, j, target)
        dl, du = low - below - below * per_low * ds, high - above + above * per_high * ds
        p.change_below[j], p.change_above[j] = dl, du
        if target is None:
            p.second_below[j], p.second_above[j] = ds * dl, -ds * du
        # 1 / z = s (1 / s z)
        ends = maximum(-ds * per_low, ds * per_high)
        multipliers = maximum(-dl * per(below, p.inside[j], per_low), -du * per(above, p.outside[j], per_high))
        longest = maximum(longest, maximum(ends, multipliers))
    for c in range(nc):
        W, balance, is_open = p.scaling[c], p.balance[c], p.open[c]
        ds = slack(p, c, d)
        ds = unscaled(W, ds * is_open)
        dz = cone_pull(p, c, target) - balance - ds
        if target is None:
            p.second[c] = circle(ds, dz)
        p.change[c] = unscaled(W, dz) * is_open
        longest = maximum(longest, maximum(way_out(balance, ds), way_out(balance, dz)) * is_open)
    return longest


@kernel
def per(z, product, inverse):
    """1 / z, of 1 / (s z) and 1 / s; 0 where there is none."""
    return select(less(0.0, z), product / maximum(inverse, lift(1e-30, z)), lift(0.0, z))


@kernel
def move(p, nf, nc, first, size, nb, length):
    x, d, l, dl = vector(p, PLACE, size), vector(p, STEP, size), vector(p, PULL, size), vector(p, PULL_STEP, size)
    moves = less(0.0, length)
    for i in range(first + nf):
        x[i] = select(moves, ld(x, i) + length * ld(d, i), ld(x, i))
    for i in range(first, first + nf):
        l[i] = select(moves, ld(l, i) + length * ld(dl, i), ld(l, i))
    for k in range(nb):
        j = p.bounded[k]
        p.below[j] = select(moves, p.below[j] + length * p.change_below[j], p.below[j])
        p.above[j] = select(moves, p.above[j] + length * p.change_above[j], p.above[j])
    for c in range(nc):
        f, df = p.force[c], p.change[c]
        p.force[c] = Vec3(
            select(moves, f.x + length * df.x, f.x),
            select(moves, f.y + length * df.y, f.y),
            select(moves, f.z + length * df.z, f.z),
        )
