import sys; import os; HERE=os.environ.get("REPO","/work/main"); sys.path[:0]=[HERE+"/src"]
import numpy as np, time, pickle, glob, logging
import saltus as sl
PEER=os.environ.get("PEER")
if PEER: sys.path.append(PEER+"/lib/python3.12/site-packages")
import pinocchio as pin
R="/work/main/.venv/lib/python3.11/site-packages/cmeel.prefix/share/example-robot-data/robots"
def find(n):
    if PEER: return f"{PEER}/urdf/{n}.urdf"
    return glob.glob(R+"/**/"+n+".urdf",recursive=True)[0]
def best(f,n=2000,r=9):
    b=9
    for _ in range(r):
        t=time.perf_counter()
        for _ in range(n): f()
        b=min(b,(time.perf_counter()-t)/n)
    return b*1e6
algs=sys.argv[1].split(",") if len(sys.argv)>1 else ["aba","rnea","crba","cmm"]
robots=sys.argv[2].split(",") if len(sys.argv)>2 else ["ur5_robot","solo12","talos_reduced","talos_full_v2"]
sl.set_threads(1)
for name in robots:
    free=name not in("ur5_robot","panda")
    m=pin.buildModelFromUrdf(find(name),pin.JointModelFreeFlyer()) if free else pin.buildModelFromUrdf(find(name))
    s=pickle.load(open(f"{HERE}/.cache/models/{name}.pkl","rb"))
    d=m.createData(); rng=np.random.default_rng(0); B=1024
    Q=sl.random_configuration(s,0,B); V=rng.normal(size=(B,m.nv)); T=rng.normal(size=(B,m.nv)); q,v,t=Q[0].copy(),V[0].copy(),T[0].copy()
    tab={"aba":(sl.aba,(Q,V,T),lambda: pin.aba(m,d,q,v,t)),"rnea":(sl.rnea,(Q,V,T),lambda: pin.rnea(m,d,q,v,t)),"crba":(sl.crba,(Q,),lambda: pin.crba(m,d,q)),"cmm":(sl.centroidal_momentum_matrix,(Q,),lambda: pin.ccrba(m,d,q,v)),
     "minverse":(sl.minverse,(Q,),lambda: pin.computeMinverse(m,d,q)),"fk":(sl.joint_placements,(Q,),lambda: pin.forwardKinematics(m,d,q))}
    for al in algs:
        f,args,pf=tab[al]
        one=tuple(x[0].copy() for x in args)
        f(s,*one); out=f(s,*args); a32=tuple(x.astype(np.float32) for x in args); o32=f(s,*a32)
        tp=best(pf); to=best(lambda: f(s,*one)); tb=best(lambda: f(s,*args,out=out),5)/B; ts=best(lambda: f(s,*a32,out=o32),5)/B
        print(f"{name:16s}{al:6s} pin {tp:6.2f} one {to:6.2f} ({tp/to:.2f}x) f64 {tb:.3f} ({tp/tb:.2f}x) f32 {ts:.3f} ({tp/ts:.1f}x)",flush=True)
