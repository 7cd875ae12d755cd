// The plain sender: a list of what is ready, a sorted set of what waits, one request at a time with the global fetch.
import { Redis } from 'ioredis';
import { endpoint, payload, pieces, port, what } from './arguments.mjs';

const READY = 'webhooks:prontos';
const WAITING = 'webhooks:espera';
const DEAD = 'webhooks:mortos';
const ATTEMPTS = 5;

const redis = new Redis(Number(port), '127.0.0.1');

async function fill() {
  for (const numbers of pieces()) {
    const event = (n) => JSON.stringify({ id: `evt_${n}`, url: endpoint(n), corpo: JSON.parse(payload), tentativas: 0 });
    await redis.rpush(READY, ...numbers.map(event));
  }
  await redis.quit();
}

async function promote() {
  for (const due of await redis.zrangebyscore(WAITING, 0, Date.now())) {
    if (await redis.zrem(WAITING, due)) await redis.rpush(READY, due);
  }
}

async function deliver(event) {
  event.tentativas += 1;
  let status = 0;
  try {
    const headers = { 'content-type': 'application/json', 'webhook-id': event.id };
    const answer = await fetch(event.url, { method: 'POST', headers, body: JSON.stringify(event.corpo) });
    status = answer.status;
    await answer.arrayBuffer();
  } catch {
    // No answer: waits like a 5xx.
  }
  if (status >= 200 && status < 300) return;
  const final = (status >= 400 && status < 500 && status !== 429) || event.tentativas >= ATTEMPTS;
  if (final) return redis.rpush(DEAD, JSON.stringify(event));
  const wait = Math.min(2000 * 2 ** (event.tentativas - 1), 300_000) + Math.random() * 1000;
  return redis.zadd(WAITING, Date.now() + wait, JSON.stringify(event));
}

async function send() {
  for (;;) {
    await promote();
    const taken = await redis.blpop(READY, 1);
    if (taken) await deliver(JSON.parse(taken[1]));
  }
}

await (what === 'fill' ? fill() : send());
