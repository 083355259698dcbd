"""Modules without numerics that all packages use: threads, random numbers, files, values, messages."""
