#!/usr/bin/env bash
# Installs what the tests need, where it is missing, and runs every test. Arguments go to the runner instead of
# `--workspace`: ./test.sh -p teimoso-retry
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

.ci/install

if (($# == 0)); then
    # Examples in the documentation first, which the runner does not know: its summary comes last.
    cargo test --locked --quiet --doc --workspace
    set -- --workspace
fi
if cargo nextest --version >/dev/null 2>&1; then
    exec cargo nextest run --locked "$@"
fi
exec cargo test --locked --no-fail-fast --lib --bins --tests "$@"
