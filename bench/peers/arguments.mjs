// What every peer is told: fill or send, Redis's port, the sink's address, how many events, and the payload.
export const [what, port, sink, count, payload] = process.argv.slice(2);

// 0 to count, in pieces that fit into one round trip.
export function* pieces(size = 1000) {
  for (let from = 0; from < Number(count); from += size) {
    yield Array.from({ length: Math.min(size, Number(count) - from) }, (_, n) => from + n);
  }
}

export const endpoint = (n) => `http://${sink}/ok/0${n % 4}`;
