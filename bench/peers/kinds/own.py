"""groupjobs itself: rows, order in each group, PostgreSQL and Redis."""

from bench.peers.handling import entering

if __name__ == "__main__":
    import django

    django.setup()
    from bench.work import jobs as work

    def enqueue(phase, jobs):
        calls = [{"group": group, "phase": phase, "milliseconds": ms} for group, ms in jobs]
        work.gated.enqueue_many(calls)

    entering(enqueue, lambda sent: work.pick.enqueue(sent))
