"""Constrained dynamics: contacts, loops, and the methods that solve for what they do."""
