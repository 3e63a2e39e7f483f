"""What a job's options mean, and what its arguments may be: pure rules, no Django, no servers."""

from groupjobs.policy.keys import checked_ids, checked_key, checked_text
from groupjobs.policy.options import (
    OPTIONS,
    WORKER_OPTIONS,
    Policy,
    retry_delay,
    suggestion,
    validate,
)
from groupjobs.policy.payload import json_checked
from groupjobs.policy.templates import bound, check_key, dedup_of, group_of

__all__ = [
    "OPTIONS",
    "WORKER_OPTIONS",
    "Policy",
    "bound",
    "check_key",
    "checked_ids",
    "checked_key",
    "checked_text",
    "dedup_of",
    "group_of",
    "json_checked",
    "retry_delay",
    "suggestion",
    "validate",
]
