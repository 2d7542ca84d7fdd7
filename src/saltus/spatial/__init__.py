"""Spatial algebra on named tuples of any number type."""
