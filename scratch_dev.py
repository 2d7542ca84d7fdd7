import sys, os
sys.path.insert(0, "src"); sys.path.insert(0, ".")
import numpy as np
for n, f in (("row_stack", np.vstack), ("in1d", np.isin), ("trapz", np.trapezoid)):
    if not hasattr(np, n): setattr(np, n, f)
import time
import saltus as sl
from benchmarks.robots import saltus_model, pinocchio_model, import_pinocchio
pin = import_pinocchio()
def best(f, n=200, r=25):
    f(); b = 1e9
    for _ in range(r):
        t = time.perf_counter()
        for _ in range(n): f()
        b = min(b, (time.perf_counter() - t) / n)
    return b * 1e6
feet = ["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"]
tal = ["left_sole_link", "right_sole_link", "gripper_left_base_link", "gripper_right_base_link"]
cases = [("solo12", feet, 3), ("talos38", tal[:2], 6), ("talos38", tal, 6), ("talos50", tal, 6)]
sl.set_threads(1)
for name, fr, dim in cases:
    m = saltus_model(name); pm = pinocchio_model(name); pd = pm.createData()
    cs = [sl.Contact(m, f, dim) for f in fr]
    rng = np.random.default_rng(0)
    q = sl.random_configuration(m, 0); v = rng.normal(size=m.nv); tau = rng.normal(size=m.nv)
    cms = []
    for f in fr:
        F = pm.frames[pm.getFrameId(f)]
        cms.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D if dim == 3 else pin.ContactType.CONTACT_6D, pm, F.parentJoint, F.placement, pin.ReferenceFrame.LOCAL))
    cm = pin.StdVec_RigidConstraintModel(cms); cd = pin.StdVec_RigidConstraintData([c.createData() for c in cms])
    pin.initConstraintDynamics(pm, pd, cm, cd)
    ps = pin.ProximalSettings(0.0, 1e-5, 3)
    tp = best(lambda: pin.constraintDynamics(pm, pd, q, v, tau, cm, cd, ps))
    print(name, len(fr), dim, f"pin {tp:.2f}", flush=True)
    for meth in ["constrained_aba"]:
        d = sl.ConstrainedDynamics(m, cs, meth, tolerance=0.0, most_iterations=3)
        t1 = best(lambda: d.solve(q, v, tau))
        print(f"   {meth} one {t1:.2f} ({tp/t1:.2f}x)", end=" ")
        for B in (64, 256, 1024):
            Q = sl.random_configuration(m, 0, B); V = rng.normal(size=(B, m.nv)); T = rng.normal(size=(B, m.nv))
            tb = best(lambda: d.solve(Q, V, T), 5, 25) / B
            print(f"{B}: {tb:.3f} ({tp/tb:.1f}x)", end=" ", flush=True)
        print(flush=True)
try:
    import cupy as cp
    for name, fr, dim in (cases[0], cases[3]):
        m = saltus_model(name); cs = [sl.Contact(m, f, dim) for f in fr]
        d = sl.ConstrainedDynamics(m, cs, "constrained_aba", tolerance=0.0, most_iterations=3)
        B = 65536
        rng = np.random.default_rng(0)
        Q = sl.random_configuration(m, 0, B); V = rng.normal(size=(B, m.nv)); T = rng.normal(size=(B, m.nv))
        for order in ("C", "F"):
            g = [cp.asarray(np.asarray(x, order=order), order=order) if order == "C" else cp.asfortranarray(cp.asarray(x)) for x in (Q, V, T)]
            s = d.solve(*g); cp.cuda.Device().synchronize()
            ref = d.solve(Q[:64], V[:64], T[:64])
            err = np.abs(cp.asnumpy(s.a[:64]) - ref.a).max() / np.abs(ref.a).max()
            bt = 1e9
            for _ in range(20):
                cp.cuda.Device().synchronize(); t = time.perf_counter()
                for _ in range(5): d.solve(*g)
                cp.cuda.Device().synchronize(); bt = min(bt, (time.perf_counter() - t) / 5)
            print("cuda", name, order, f"{B/bt/1e6:.1f} M/s err {err:.1e}", flush=True)
except Exception as e:
    import traceback; traceback.print_exc()
