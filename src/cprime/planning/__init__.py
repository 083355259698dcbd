"""What a fit will take of memory and time, before it begins."""

from cprime.planning.planned import Plan, plan

__all__ = ["Plan", "plan"]
