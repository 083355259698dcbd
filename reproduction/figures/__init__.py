"""Figures drawn from results, not from estimators: those of the demonstration and of `reproduction`."""
