"""Benchmarks: ours and the peer's side by side, one module a table, results as JSON.

| command | what | result |
|---|---|---|
| `python -m benchmarks.cpu` | every algorithm beside Pinocchio's, one call and packets | `results/cpu-<machine>.json` |
| `python -m benchmarks.startup` | the first call of a process whose cache is filled | `results/startup-<machine>.json` |
| `python -m benchmarks.cuda` | throughput on a GPU against the size of the batch | `results/cuda-<device>.json` |
| `python -m benchmarks.constrained` | every method of constrained dynamics | `results/constrained-<machine>.json` |
| `python -m benchmarks.precision` | constrained dynamics in float32 against float64 | `results/precision-<machine>.json` |
| `python -m benchmarks.osim` | Delassus and operational-space inertia matrices | `results/osim-<machine>.json` |
| `python -m benchmarks.scaling` | constrained chains and trees of up to 200 links | `results/scaling-<machine>.json` |
| `python -m benchmarks.convergence` | what is left of constraints after each iteration | `results/convergence.json` |
| `python -m benchmarks.operations` | operation counts of constrained dynamics | `results/operations.json` |
| `python -m benchmarks.ocp` | optimal control on Crocoddyl's gaits, beside Crocoddyl | `results/ocp-<machine>.json` |
| `python -m benchmarks.plot` | figures, and a page of the documentation | `docs/benchmarks.md` |
| `python -m benchmarks.plot_constraints` | likewise, on constraints | `docs/benchmarks-constraints.md` |

`python -m benchmarks` runs all that the machine can.
"""
