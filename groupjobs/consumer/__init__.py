"""The consumer: one execution that serves groups of a queue until none is ready."""

from groupjobs.consumer.executions import Executions
from groupjobs.consumer.serving import serve

__all__ = ["Executions", "serve"]
