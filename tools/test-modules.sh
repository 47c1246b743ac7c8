#!/bin/sh
# Vets and tests each module below the root. Most of them wait for most of their time, so two go at once, and each one's output is printed
# when it ends. Those that measure time come last, alone.
#
# Those under tools are programs without tests. examples/frameworks, docs/check and test/temporal take minutes to compile what they run:
# .ci/services tests them.
set -eu
cd "$(dirname "$0")/.."

if [ $# -gt 0 ]; then # one module
	out=$(mktemp)
	trap 'rm -f "$out"' EXIT
	begun=$(date +%s)
	status=0
	(cd "$1" && export CGO_ENABLED=1 && go vet -race ./... && go test -race -count=1 ./...) >"$out" 2>&1 || status=$?
	echo "$1: $(($(date +%s) - begun)) s"
	cat "$out"
	[ $status -eq 0 ] || echo "$1: failed"
	exit $status
fi

modules() {
	find . -mindepth 2 -name go.mod -not -path './tools/*' -not -path './examples/frameworks/*' -not -path './docs/check/*' -not -path './test/temporal/*' -exec dirname {} \; | sort
}
timed='^\./\(benchmarks\|faults\)$'
modules | grep -v "$timed" | xargs -P 2 -n 1 sh tools/test-modules.sh
modules | grep "$timed" | xargs -n 1 sh tools/test-modules.sh
