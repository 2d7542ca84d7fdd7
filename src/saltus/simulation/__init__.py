"""Robots moving by themselves or under a controller, step by step."""

from saltus.simulation.conservation import Drift, conservation_drift
from saltus.simulation.rollout import Interrupted, RolloutError, Trajectory, rollout

__all__ = ["Drift", "Interrupted", "RolloutError", "Trajectory", "conservation_drift", "rollout"]
