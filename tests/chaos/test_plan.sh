#!/bin/sh
# test_plan.sh CHAOS - the same seed gives the same plan, another seed another.
set -eu

one=$("$1" --plan --seed 7)
[ "$one" = "$("$1" --plan --seed 7)" ] || {
    echo "one seed gave two plans"
    exit 1
}
[ "$one" != "$("$1" --plan --seed 8)" ] || {
    echo "two seeds gave one plan"
    exit 1
}
[ "$("$1" --plan --seed 7 --faults kill | grep -o 'kill@' | wc -l)" -eq 20 ] || {
    echo "the list of faults was not heeded"
    exit 1
}
