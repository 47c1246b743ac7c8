#!/usr/bin/env bash
# Compares the API of the root module with that of its last tag, by the gorelease pinned in tools/go.mod. An incompatible change fails, unless
# the part Unreleased of CHANGELOG.md has a heading "### Breaking", which says what to write instead. Before the first tag there is nothing
# to compare, and the API is only looked at.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

go test ./internal/imports -count=1 -run TestAPI # what is exported, beside internal/imports/testdata/api.txt
base=$(git tag --list 'v[0-9]*' --sort=-version:refname | head -n 1)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -modfile=tools/go.mod -o "$dir/gorelease" golang.org/x/exp/cmd/gorelease
echo "api: compared with ${base:-nothing, as there is no tag}"
# The tag is taken from this clone, as in release.sh.
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$PWD/.git.insteadOf" GIT_CONFIG_VALUE_0="https://github.com/latchkey-go/latchkey" \
	GOPRIVATE=github.com/latchkey-go/latchkey "$dir/gorelease" -base="${base:-none}" >"$dir/report" 2>&1 || true
cat "$dir/report"
if grep -q '^## incompatible changes' "$dir/report" &&
	! sed -n '/^## Unreleased/,/^## v/p' CHANGELOG.md | grep -q '^### Breaking'; then
	echo 'api: incompatible changes need a heading "### Breaking" in the part Unreleased of CHANGELOG.md, with what to write instead' >&2
	exit 1
fi
if [ -n "$base" ] && ! grep -q '^# summary' "$dir/report"; then
	echo "api: gorelease has made no comparison" >&2
	exit 2
fi
