// BullMQ as fast as it goes here: 64 jobs at once, undici's own client instead of the global fetch.
import { Queue, Worker } from 'bullmq';
import { Agent, request } from 'undici';
import { endpoint, payload, pieces, port, what } from './arguments.mjs';

const NAME = 'webhooks';
const CONCURRENCY = 64;
const connection = { host: '127.0.0.1', port: Number(port), maxRetriesPerRequest: null };

async function fill() {
  const queue = new Queue(NAME, { connection });
  const opts = { attempts: 5, backoff: { type: 'exponential', delay: 2000, jitter: 0.5 }, removeOnComplete: true };
  for (const numbers of pieces()) {
    await queue.addBulk(numbers.map((n) => ({ name: 'deliver', data: { id: `evt_${n}`, url: endpoint(n), payload }, opts })));
  }
  await queue.close();
}

function send() {
  const dispatcher = new Agent({ connections: CONCURRENCY });
  const deliver = async ({ data, attemptsMade }) => {
    const headers = { 'content-type': 'application/json', 'webhook-id': data.id, attempt: String(attemptsMade + 1) };
    const answer = await request(data.url, { dispatcher, method: 'POST', headers, body: data.payload });
    await answer.body.dump();
    if (answer.statusCode >= 300) throw new Error(`answered ${answer.statusCode}`);
  };
  return new Worker(NAME, deliver, { connection, concurrency: CONCURRENCY });
}

await (what === 'fill' ? fill() : send());
