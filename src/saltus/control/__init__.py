"""Whole-body control: quadratic programs with friction cones, tasks, controllers, inverse kinematics."""
