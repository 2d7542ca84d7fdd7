"""Kinematics and dynamics of trees of rigid bodies."""
