#!/bin/sh
# Vets and tests each module below the root. Most of them wait for most of their time, so two go at once, and each one's output is printed
# when it ends, with the seconds and the CPU that it took. Those that measure time come last, alone, and so does latchkey-vet: it reads all
# modules, and finds them compiled then.
#
# Those under tools are programs without tests. What takes minutes to compile is left to .ci/services.
set -eu
cd "$(dirname "$0")/.."
elsewhere='/latchkey/\(examples/frameworks\|test/docs\|test/services\|test/temporal\)$'

if [ $# -gt 0 ]; then # one module
	out=$(mktemp)
	trap 'rm -f "$out" "$out.cpu"' EXIT
	begun=$(date +%s)
	status=0
	# Nothing in these two runs concurrently. What latchkey-vet reads is compiled as the modules that it reads are for their own tests.
	flags=$(go env GOFLAGS) race=-race
	case $1 in
	*/latchkey-gen) race=-race=false ;;
	*/latchkey-vet) race=-race=false flags="$flags -race" ;;
	esac
	# go test vets, too: "go vet" before it would look a second time at all that is imported.
	(cd "$1" && export CGO_ENABLED=1 GOFLAGS="$flags" && packages=$(go list ./... | grep -v "$elsewhere") &&
		go test $race -vet=all -count=1 -timeout=15m $packages) >"$out" 2>&1 || status=$?
	times >"$out.cpu"
	echo "$1: $(($(date +%s) - begun)) s, CPU $(sed -n 2p "$out.cpu")"
	cat "$out"
	[ $status -eq 0 ] || echo "$1: failed"
	exit $status
fi

modules() { find . -mindepth 2 -name go.mod -not -path './tools/*' -exec dirname {} \; | sort -r; } # test takes longest
alone='^\./\(benchmarks\|cmd/latchkey-vet\|faults\)$'
modules | grep -v "$alone" | xargs -P 2 -n 1 sh tools/test-modules.sh
modules | grep "$alone" | xargs -n 1 sh tools/test-modules.sh
