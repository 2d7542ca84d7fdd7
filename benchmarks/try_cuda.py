import sys; sys.path.insert(0,"src")
import numpy as np
np.row_stack=np.vstack; np.in1d=np.isin; np.trapz=np.trapezoid
import time, pickle, cupy, platform
import saltus as sl
from saltus.kernel import cuda as C
from numba import cuda
print(open('/proc/cpuinfo').read().split('model name')[1].split('\n')[0], 'avx512f' in open('/proc/cpuinfo').read())
def timed(f, reps=20):
    f(); f(); cupy.cuda.Device().synchronize()
    best=1e9
    for _ in range(reps):
        a=cupy.cuda.Event(); b=cupy.cuda.Event(); a.record(); [f() for _ in range(10)]; b.record(); b.synchronize(); best=min(best,cupy.cuda.get_elapsed_time(a,b)*1e-4)
    return best
B=131072
for name in ("solo12","talos_full_v2"):
    m=pickle.load(open(f".cache/models/{name}.pkl","rb"))
    rng=np.random.default_rng(0)
    Q=sl.random_configuration(m,0,B); V=rng.normal(size=(B,m.nv)); T=rng.normal(size=(B,m.nv))
    for dt in (np.float64,):
        t=time.time(); 
        for layout in ("nB","Bn"):
            q,v,tau=[cupy.asarray(x.astype(dt)) if layout=="Bn" else cupy.asarray(np.ascontiguousarray(x.T).astype(dt)).T for x in (Q,V,T)]
            out=cupy.empty((B,m.nv),dt) if layout=="Bn" else cupy.empty((m.nv,B),dt).T
            for regs,block,per in ((None,64,4),(None,256,1),(None,128,2),(168,128,3),(128,128,4),(168,64,6),(128,64,8),(144,64,7),(None,128,8),(168,128,12)):
                C.REGS=regs; C.gpu_function.cache_clear(); C.BLOCK=block; C.BLOCKS_PER_PROCESSOR=per; m.tables.devices.clear()
                s=timed(lambda: sl.aba(m,q,v,tau,out=out),8)
                print(name,dt.__name__,layout,block,per,regs,"%.1f M/s"%(B/s/1e6),flush=True)
        print("compile+run",time.time()-t)
        if dt is np.float64:
            k=list(C.gpu_function.__wrapped__.__code__.co_names) if 0 else None
        ref=sl.aba(m,Q[:256],V[:256],T[:256])
        print("err",float(abs(cupy.asnumpy(out[:256])-ref).max()/abs(ref).max()))

    t=time.perf_counter(); [sl.aba(m,q,v,tau,out=out) for _ in range(20)]; print("python per launch us", (time.perf_counter()-t)/20*1e6); cupy.cuda.Device().synchronize()
