"""The store in plain Python: the same verbs without Redis, and the model that the scripts are tested against."""

from groupjobs.store.reference.verbs import Reference

__all__ = ["Reference"]
