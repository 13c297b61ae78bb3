#!/usr/bin/env bash
# Compares Nestor's logits with the golden ones, for the shipped model and every golden checkpoint of the tests.
#
#   scripts/verify.sh BIN_FOLDER [CHECKPOINT...]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
bin="${1:?usage: scripts/verify.sh BIN_FOLDER [CHECKPOINT...]}"
shift

if [ $# -gt 0 ]; then checkpoints=("$@"); else checkpoints=(models/abacus tests/data/golden/*/); fi
failed=()
for checkpoint in "${checkpoints[@]}"; do
  checkpoint="${checkpoint%/}"
  [ -f "$checkpoint/golden.json" ] || continue # templates, tokenizers
  if [ -f "$checkpoint/hf_quant_config.json" ]; then
    echo "verify: $checkpoint: left out, its weights are quantised and Nestor refuses those"
    continue
  fi
  echo "verify: $checkpoint"
  "$bin/nestor-checkpoint" verify "$checkpoint" || failed+=("$checkpoint")
done
[ ${#failed[@]} = 0 ] || { echo "verify: beyond the tolerance: ${failed[*]}" >&2; exit 1; }
