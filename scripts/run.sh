#!/usr/bin/env bash
# Shows Nestor working: starts a server on a checkpoint, asks it one question that the smallest submodel thinks about and
# the largest answers, streams both to the terminal, stops the server. Succeeds if all of that did.
#
#   scripts/run.sh BIN_FOLDER CHECKPOINT
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin="${1:?usage: scripts/run.sh BIN_FOLDER CHECKPOINT}"
checkpoint="${2:?usage: scripts/run.sh BIN_FOLDER CHECKPOINT}"
question="Sort 17 4 79 50 49 in ascending order."

printf '\nquestion: %s\n\n' "$question"
exec timeout --kill-after=10 180 .venv/bin/python scripts/with_server.py "$bin" "$checkpoint" \
  "$bin/nestor" generate --server '{server}' --output text --thinking-submodel 0.5m --answer-submodel 2.5m \
  --temperature 0 "$question"
