"""The consumer: one execution that serves groups of a queue until none is ready."""

from groupjobs.consumer.service import Executions, serve

__all__ = ["Executions", "serve"]
