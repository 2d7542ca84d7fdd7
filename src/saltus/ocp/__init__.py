"""Optimal control: shooting problems, and the solvers of the DDP family."""
