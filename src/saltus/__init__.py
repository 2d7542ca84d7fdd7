"""saltus: dynamics, control and motion planning of robots that touch the world, in Python.

Every function takes NumPy arrays with any leading batch axes, or CUDA arrays. Conventions are Pinocchio's.
"""

from saltus import view
from saltus.collision import (
    Box,
    Contacts,
    Ground,
    HeightField,
    Ramp,
    Scene,
    Stairs,
    Terrain,
    find_contacts,
    in_collision,
    self_distance,
)
from saltus.constraints.constraint import (
    Constraint,
    Contact,
    JointLock,
    LineContact,
    LoopClosure,
    SurfaceContact,
    UserRows,
    model_loops,
)
from saltus.constraints.dynamics import ConstrainedDynamics, Solution
from saltus.constraints.impact import Impact
from saltus.constraints.inverse_dynamics import InverseDynamics
from saltus.constraints.report import Status
from saltus.constraints.specialise import specialise
from saltus.control.fccqp import fccqp
from saltus.control.inverse_kinematics import Reach, Reached, inverse_kinematics
from saltus.control.kinematic_trajectory import KinematicTrajectory, kinematic_trajectory
from saltus.control.operational_space_control import Command, OperationalSpaceControl, ramped
from saltus.control.quadratic_program import QPResiduals, QPSolution, QPStatus
from saltus.control.task_rows import TaskRows, task_rows
from saltus.control.task_tables import Target, TaskSet
from saltus.control.tasks import CenterOfMassTask, FrameTask, MomentumTask, PostureTask
from saltus.derivatives.aba import ABADerivatives, aba_derivatives
from saltus.derivatives.centroidal import (
    CenterOfMassDerivatives,
    CentroidalMomentumDerivatives,
    center_of_mass_derivatives,
    centroidal_momentum_derivatives,
)
from saltus.derivatives.constrained import ConstrainedDerivatives, ConstraintAccelerationDerivatives
from saltus.derivatives.crba import crba_derivatives
from saltus.derivatives.frame import (
    FrameAccelerationDerivatives,
    FrameVelocityDerivatives,
    frame_acceleration_derivatives,
    frame_velocity_derivatives,
)
from saltus.derivatives.impact import ImpactDerivatives
from saltus.derivatives.jax_function import jax_function
from saltus.derivatives.modes import jacobian, jvp
from saltus.derivatives.parameters import ParameterDerivatives, aba_parameter_derivatives
from saltus.derivatives.products import vjp
from saltus.derivatives.rnea import RNEADerivatives, nonlinear_effects_derivatives, rnea_derivatives
from saltus.derivatives.second import second_directional
from saltus.derivatives.torch_function import torch_function
from saltus.dynamics.aba import aba
from saltus.dynamics.centroidal import (
    center_of_mass,
    center_of_mass_jacobian,
    centroidal_momentum,
    centroidal_momentum_drift,
    centroidal_momentum_matrix,
    centroidal_momentum_rate,
)
from saltus.dynamics.coriolis import coriolis_matrix
from saltus.dynamics.crba import crba
from saltus.dynamics.energy import kinetic_energy, potential_energy
from saltus.dynamics.frame import (
    frame_acceleration,
    frame_jacobian,
    frame_jacobian_dot,
    frame_placement,
    frame_velocity,
    joint_jacobian,
    joint_jacobian_dot,
)
from saltus.dynamics.kinematics import (
    forward_kinematics,
    frame_placements,
    joint_accelerations,
    joint_placements,
    joint_velocities,
)
from saltus.dynamics.ltl import LTL, ltl, minverse
from saltus.dynamics.passive import elastic_energy, passive_torques
from saltus.dynamics.regressor import (
    centroidal_momentum_regressor,
    kinetic_energy_regressor,
    potential_energy_regressor,
    torque_regressor,
)
from saltus.dynamics.rnea import gravity, nonlinear_effects, rnea
from saltus.kernel.lending import get_threads, set_threads
from saltus.model import (
    Actuator,
    Frame,
    FrameKind,
    Joint,
    JointKind,
    Loop,
    Mimic,
    Model,
    ModelBuilder,
    ModelError,
    RobotFrames,
    Shape,
    join_models,
    load_mjcf,
    load_robot,
    load_sdf,
    load_srdf,
    load_urdf,
    random_model,
    reduce_model,
    robot_frames,
    robot_names,
    save_urdf,
)
from saltus.model.manifold import difference, distance, integrate, interpolate, random_configuration
from saltus.model.manifold_jacobians import difference_jacobians, integrate_jacobians
from saltus.model.motors import motors_of
from saltus.model.parameters import inertial_parameters, vary_inertia
from saltus.ocp import activations, gaits, motions, terms
from saltus.ocp.box_ddp import BoxDDP
from saltus.ocp.box_fddp import BoxFDDP
from saltus.ocp.ddp import DDP
from saltus.ocp.exercise import Exercise
from saltus.ocp.fddp import FDDP
from saltus.ocp.kkt import KKT, BoxKKT
from saltus.ocp.lqr import LQR
from saltus.ocp.phases import ImpactPhase, Phase
from saltus.ocp.problem import OCPResult
from saltus.ocp.shooting_problem import ShootingProblem
from saltus.ocp.states import MultibodyState, VectorState
from saltus.ocp.status import OCPStatus
from saltus.ocp.unicycle import Unicycle
from saltus.simulation import (
    ContactImpulses,
    ContactResiduals,
    Drift,
    Interrupted,
    Motion,
    OverTime,
    PDTargets,
    Push,
    RolloutError,
    Simulator,
    Step,
    StepDerivatives,
    Trajectory,
    conservation_drift,
    constraint_drift,
    rollout,
    solve_contacts,
    step_derivatives,
)
from saltus.spatial.exponentials import Jexp3, Jexp6, Jlog3, Jlog6, exp3, exp6, log3, log6

__version__ = "0.1.0"

__all__ = [
    "DDP",
    "FDDP",
    "KKT",
    "LQR",
    "LTL",
    "ABADerivatives",
    "Actuator",
    "Box",
    "BoxDDP",
    "BoxFDDP",
    "BoxKKT",
    "CenterOfMassDerivatives",
    "CenterOfMassTask",
    "CentroidalMomentumDerivatives",
    "Command",
    "ConstrainedDerivatives",
    "ConstrainedDynamics",
    "Constraint",
    "ConstraintAccelerationDerivatives",
    "Contact",
    "ContactImpulses",
    "ContactResiduals",
    "Contacts",
    "Drift",
    "Exercise",
    "Frame",
    "FrameAccelerationDerivatives",
    "FrameKind",
    "FrameTask",
    "FrameVelocityDerivatives",
    "Ground",
    "HeightField",
    "Impact",
    "ImpactDerivatives",
    "ImpactPhase",
    "Interrupted",
    "InverseDynamics",
    "Jexp3",
    "Jexp6",
    "Jlog3",
    "Jlog6",
    "Joint",
    "JointKind",
    "JointLock",
    "KinematicTrajectory",
    "LineContact",
    "Loop",
    "LoopClosure",
    "Mimic",
    "Model",
    "ModelBuilder",
    "ModelError",
    "MomentumTask",
    "Motion",
    "MultibodyState",
    "OCPResult",
    "OCPStatus",
    "OperationalSpaceControl",
    "OverTime",
    "PDTargets",
    "ParameterDerivatives",
    "Phase",
    "PostureTask",
    "Push",
    "QPResiduals",
    "QPSolution",
    "QPStatus",
    "RNEADerivatives",
    "Ramp",
    "Reach",
    "Reached",
    "RobotFrames",
    "RolloutError",
    "Scene",
    "Shape",
    "ShootingProblem",
    "Simulator",
    "Solution",
    "Stairs",
    "Status",
    "Step",
    "StepDerivatives",
    "SurfaceContact",
    "Target",
    "TaskRows",
    "TaskSet",
    "Terrain",
    "Trajectory",
    "Unicycle",
    "UserRows",
    "VectorState",
    "aba",
    "aba_derivatives",
    "aba_parameter_derivatives",
    "activations",
    "center_of_mass",
    "center_of_mass_derivatives",
    "center_of_mass_jacobian",
    "centroidal_momentum",
    "centroidal_momentum_derivatives",
    "centroidal_momentum_drift",
    "centroidal_momentum_matrix",
    "centroidal_momentum_rate",
    "centroidal_momentum_regressor",
    "conservation_drift",
    "constraint_drift",
    "coriolis_matrix",
    "crba",
    "crba_derivatives",
    "difference",
    "difference_jacobians",
    "distance",
    "elastic_energy",
    "exp3",
    "exp6",
    "fccqp",
    "find_contacts",
    "forward_kinematics",
    "frame_acceleration",
    "frame_acceleration_derivatives",
    "frame_jacobian",
    "frame_jacobian_dot",
    "frame_placement",
    "frame_placements",
    "frame_velocity",
    "frame_velocity_derivatives",
    "gaits",
    "get_threads",
    "gravity",
    "in_collision",
    "inertial_parameters",
    "integrate",
    "integrate_jacobians",
    "interpolate",
    "inverse_kinematics",
    "jacobian",
    "jax_function",
    "join_models",
    "joint_accelerations",
    "joint_jacobian",
    "joint_jacobian_dot",
    "joint_placements",
    "joint_velocities",
    "jvp",
    "kinematic_trajectory",
    "kinetic_energy",
    "kinetic_energy_regressor",
    "load_mjcf",
    "load_robot",
    "load_sdf",
    "load_srdf",
    "load_urdf",
    "log3",
    "log6",
    "ltl",
    "minverse",
    "model_loops",
    "motions",
    "motors_of",
    "nonlinear_effects",
    "nonlinear_effects_derivatives",
    "passive_torques",
    "potential_energy",
    "potential_energy_regressor",
    "ramped",
    "random_configuration",
    "random_model",
    "reduce_model",
    "rnea",
    "rnea_derivatives",
    "robot_frames",
    "robot_names",
    "rollout",
    "save_urdf",
    "second_directional",
    "self_distance",
    "set_threads",
    "solve_contacts",
    "specialise",
    "step_derivatives",
    "task_rows",
    "terms",
    "torch_function",
    "torque_regressor",
    "vary_inertia",
    "view",
    "vjp",
]
