"""Exercises of part V: exact optima, protected groups, rivals, one's own data."""
