#!/bin/sh
# Runs the benchmarks of another commit and of the files as they are, in turn, so that a slow spell of the machine falls on both,
# and prints what benchstat makes of them. The other commit gets a work tree of its own, which is removed at the end.
#
#	tools/bench-compare.sh BASE [PACKAGES [REGEXP [COUNT]]]
set -eu

base=${1:?"usage: make bench-compare BASE=ref [PKG=./redisson] [BENCH=Uncontended] [COUNT=6]"}
packages=${2:-./...} bench=${3:-.} count=${4:-6}

commit=$(git rev-parse --verify --quiet "$base^{commit}") || { echo "make bench-compare: $base is no commit" >&2; exit 2; }
dir=$(mktemp -d)
cleanup() {
	git worktree remove --force "$dir/base" 2>/dev/null || true
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
git worktree add --quiet --detach "$dir/base" "$commit"

run() { # in the folder $1, to the file $2
	# shellcheck disable=SC2086 # several packages are several words
	(cd "$1" && go test -run '^$' -bench "$bench" -benchmem $packages) >>"$2"
}

i=1
while [ "$i" -le "$count" ]; do
	echo "make bench-compare: $i of $count" >&2
	run "$dir/base" "$dir/base.txt"
	run . "$dir/here.txt"
	i=$((i + 1))
done
go tool -modfile=tools/go.mod benchstat "$base=$dir/base.txt" "here=$dir/here.txt"
