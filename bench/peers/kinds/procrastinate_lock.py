"""procrastinate on PostgreSQL, with a lock for each group; coroutines, several at a time in each worker."""

import os

import procrastinate

from bench.peers.handling import adid, picked_up

DSN = os.environ["DATABASE_URL"]
app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=DSN))
sync = procrastinate.SyncPsycopgConnector(conninfo=DSN)


@app.task(name="noop")
async def noop(phase, milliseconds):
    await adid(phase, milliseconds)


@app.task(name="pick")
async def pick(sent):
    picked_up(sent)
