// groupmq and BullMQ: `node node.mjs groupmq|bullmq worker CONCURRENCY` or `... enter`.
import fs from 'node:fs'
import readline from 'node:readline'
import { createRequire } from 'node:module'

const require = createRequire(process.env.BENCH_NODE + '/package.json')
const Redis = require('ioredis')
const [kind, side, concurrency] = process.argv.slice(2)
const folder = process.env.BENCH_FOLDER
const connect = () => new (Redis.default ?? Redis)(JSON.parse(process.env.BENCH_REDIS))
const monotonic = () => Number(process.hrtime.bigint()) / 1e9

let phase = 0, done = -1, gate = Promise.resolve()
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function enter(next) {
  phase = next
  done = fs.openSync(`${folder}/done-${next}`, 'a')
  fs.appendFileSync(`${folder}/arrived-${next}`, '.')
  while (!fs.existsSync(`${folder}/gate-${next}`)) await sleep(2)
}

async function handle(data) {
  if (data.sent) {
    fs.appendFileSync(`${folder}/latencies`, `${(monotonic() - data.sent).toFixed(6)}\n`)
    return
  }
  if (data.phase !== phase) gate = enter(data.phase)
  await gate
  if (data.ms) await sleep(data.ms)
  fs.writeSync(done, '.')
}

function groupmq() {
  const { Queue, Worker } = require('groupmq')
  const queue = new Queue({ redis: connect(), namespace: 'bench', jobTimeoutMs: 120000 })
  const add = (group, data) => queue.add({ groupId: `g${group}`, data })
  const work = (n) => new Worker({ queue, concurrency: n, handler: async (job) => handle(job.data) }).run()
  const many = (jobs, at) => Promise.all(jobs.map(([group, ms]) => add(group, { phase: at, ms })))
  return { add, work, many }
}

function bullmq() {
  const { Queue, Worker } = require('bullmq')
  const connection = JSON.parse(process.env.BENCH_REDIS)
  const options = { removeOnComplete: true }
  const queue = new Queue('bench', { connection })
  const add = (_, data) => queue.add('noop', data, options)
  const work = (n) => new Worker('bench', async (job) => handle(job.data), {
    connection: { ...connection, maxRetriesPerRequest: null }, concurrency: n, lockDuration: 120000,
  })
  const many = (jobs, at) => queue.addBulk(jobs.map(([, ms]) => ({ name: 'noop', data: { phase: at, ms }, opts: options })))
  return { add, work, many }
}

const system = kind === 'groupmq' ? groupmq() : bullmq()
if (side === 'worker') {
  system.work(Number(concurrency))
} else {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line)
    const begun = monotonic()
    if (order.jobs) {
      for (let at = 0; at < order.jobs.length; at += 1000) await system.many(order.jobs.slice(at, at + 1000), order.phase)
    } else {
      await system.add('pick', { sent: begun })
    }
    console.log(JSON.stringify({ seconds: monotonic() - begun }))
  }
  process.exit(0)
}
