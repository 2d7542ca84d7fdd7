"""Derivatives of the algorithms, in four modes: analytical, algorithmic (`ad`), and finite differences (`fd`, `fdc`)."""
