"""Benchmarks: ours and the peer's side by side, one module a table, results as JSON.

| command | what | result |
|---|---|---|
| `python -m benchmarks.cpu` | every algorithm beside Pinocchio's, one call and packets | `results/cpu-<machine>.json` |
| `python -m benchmarks.startup` | the first call of a process whose cache is filled | `results/startup-<machine>.json` |
| `python -m benchmarks.cuda` | throughput on a GPU against the size of the batch | `results/cuda-<device>.json` |
| `python -m benchmarks.plot` | figures, and the page of the documentation, from all results | `docs/benchmarks.md` |

`python -m benchmarks` runs all that the machine can.
"""
