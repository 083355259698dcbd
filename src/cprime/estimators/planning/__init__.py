"""Prediction of the memory and the time that a fit will take."""

from cprime.estimators.planning.planned import Plan, plan

__all__ = ["Plan", "plan"]
