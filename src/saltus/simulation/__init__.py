"""Robots moving by themselves, under constraints and under a controller, step by step."""

from saltus.simulation.commands import OverTime, PDTargets
from saltus.simulation.conservation import Drift, conservation_drift
from saltus.simulation.constraint_drift import constraint_drift
from saltus.simulation.motion import Motion, Push, Step
from saltus.simulation.rollout import Interrupted, RolloutError, Trajectory, rollout
from saltus.simulation.simulator import Simulator
from saltus.simulation.solve_contacts import ContactImpulses, ContactResiduals, solve_contacts
from saltus.simulation.step_derivatives import StepDerivatives, step_derivatives

__all__ = [
    "ContactImpulses",
    "ContactResiduals",
    "Drift",
    "Interrupted",
    "Motion",
    "OverTime",
    "PDTargets",
    "Push",
    "RolloutError",
    "Simulator",
    "Step",
    "StepDerivatives",
    "Trajectory",
    "conservation_drift",
    "constraint_drift",
    "rollout",
    "solve_contacts",
    "step_derivatives",
]
