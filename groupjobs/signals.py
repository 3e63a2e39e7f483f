"""Signals of groupjobs, for logs, metrics and a project's own receivers.

Sender is always `groupjobs.models.JobRun`, except for `publication_failed`. They are sent with
`send_robust` after the row is written, in the process that wrote it: a receiver that raises changes
nothing (but for `run_abandoned`), and one that is slow slows the queue. Receivers take `**kwargs`;
arguments may be added. Those about one run also say its `group`, and where an attempt is meant its `fence`.
"""

from django.dispatch import Signal

# The row says RUNNING and the handler is about to start. Arguments: run (lifecycle.Seen), queue, worker, attempt.
run_begun = Signal()

# The row says SUCCEEDED. Arguments: run (int), queue, job, seconds (of the handler), attempt.
run_succeeded = Signal()

# An attempt failed; its outcome is not written yet. Arguments: run (int), queue, job, attempt, exception.
attempt_failed = Signal()

# The row says FAILED. Arguments: run (int), queue, job, seconds, error (the class's dotted name, or ''), reason.
run_failed = Signal()

# An attempt failed and the run waits for another. Arguments: run (int), queue, job, delay (seconds), error.
run_retried = Signal()

# An attempt ended as a ghost. Arguments: run (int), queue, job, worker (the dead one), counted (bool).
run_lost = Signal()

# The row says CANCELLED. Arguments: run (int), queue, job, reason.
run_cancelled = Signal()

# The row says ABANDONED. Arguments: run (int), queue, job, reason. Sent when it happens; see `run_abandoned`.
run_condemned = Signal()

# The queue gave a run up. Arguments: run (models.JobRun), reason. Sent at least once for each
# abandonment, until every receiver and the job's `on_abandoned` have returned without an error.
run_abandoned = Signal()

# A group was held or opened, or with '' the whole queue. Arguments: queue, group, reason, by ('': the queue itself).
group_held = Signal()
group_resumed = Signal()

# A recovery has moved something. Arguments: queue, counts (dict of the report's counts).
queue_recovered = Signal()

# Committed runs could not be told to Redis; they are flagged and a sweep publishes them.
# Sender: None. Arguments: queue, runs (list of int), error (exception, or None while the breaker is open).
publication_failed = Signal()
