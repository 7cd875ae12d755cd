# The table of contents: every ritual of this tree, one line each.

# List the recipes
default:
    @just --list --unsorted

# Build the binary as it is released: target/release/teimoso
build:
    cargo build --release --locked

# Accept events and deliver them, by the flags given
run *flags:
    cargo run --release --locked -- serve {{ flags }}

# Watch one event fail twice and arrive: a test destination, a server with a store of its own, one event
tour: build
    #!/usr/bin/env bash
    set -euo pipefail
    store=$(mktemp -d)
    trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$store"' EXIT
    target/release/teimoso sink &
    target/release/teimoso serve --store "$store" --allow-net 127.0.0.0/8 --policy webhook &
    for _ in {1..50}; do
        target/release/teimoso events list >/dev/null 2>&1 && break
        sleep 0.1
    done
    target/release/teimoso send http://127.0.0.1:4000/teimoso --wait

# Install what the tests need, and run them all
test *args:
    ./test.sh {{ args }}

# Check form, lints and documentation: no warning is left
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# Bring the source into form
fmt:
    cargo fmt --all

# Check licences, sources, banned crates and known vulnerabilities of everything we depend on
deny:
    cargo deny --locked check

# Kill the real process at random moments, so many times, and account for every acknowledged event
crash rounds="200":
    TEIMOSO_CRASH_ROUNDS={{ rounds }} cargo nextest run --locked --profile long -p teimoso --test e2e --no-capture crash::

# Kill, stop, partition and cut senders and their Redis at random, and account for every acknowledged event
chaos-redis *flags: build
    cargo run --release --locked -p teimoso-chaos -- run {{ flags }}

# Run every property over so many random cases
soak cases="20000":
    PROPTEST_CASES={{ cases }} cargo nextest run --locked --profile long --workspace

# Everything a change must pass, as it is checked before it lands
ci:
    .ci/run

# Measure the released binary beside the limit of the machine, on a quiet machine: the table, and what docs/ shows of it
bench *flags: build
    cargo run --release --locked -p teimoso-bench -- run --json target/bench.json --svg docs/performance.svg --page docs/performance.md {{ flags }}

# The same with small numbers, within two minutes: shows that it works, not how fast it is
bench-short *flags: build
    cargo run --release --locked -p teimoso-bench -- run --short {{ flags }}

# Compare the store alone with a bare append log
bench-store *flags:
    cargo run --release --locked -p teimoso-bench -- store {{ flags }}

# Count the instructions of the hot paths with callgrind; more than 10 % away from bench/instructions.json fails
instructions *flags:
    cargo run --release --locked -p teimoso-bench -- instructions {{ flags }}

# Play the fault matrix against other clients that retry, and print how often the peer executed one POST
compare-clients:
    cargo run --locked --manifest-path bench/others/Cargo.toml --target-dir target/others
