#!/bin/sh
# Looks for known vulnerabilities that the code of each module can reach, with the govulncheck pinned in tools/go.mod. The
# database is that of VULNDB, or of Go. Where it can't be reached, nothing is known, and that is a failure of its own kind.
set -eu

db=${VULNDB:-https://vuln.go.dev}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -modfile=tools/go.mod -o "$dir/govulncheck" golang.org/x/vuln/cmd/govulncheck

found=
for mod in go.mod $(find . -mindepth 2 -name go.mod -not -path './tools/*' | sort); do
	module=$(dirname "$mod")
	echo "vulncheck: $module"
	status=0
	(cd "$module" && "$dir/govulncheck" -db "$db" ./...) >"$dir/out" 2>&1 || status=$?
	case $status in
	0) ;;
	3)
		cat "$dir/out"
		found="$found $module"
		;;
	*)
		tail -n 3 "$dir/out" >&2
		echo "make vulncheck: nothing is known: the check could not be made, mostly because $db can't be reached from here." >&2
		echo "make vulncheck: VULNDB=file:///path names a copy of the database" >&2
		exit 2
		;;
	esac
done
[ -z "$found" ] || { echo "make vulncheck: known vulnerabilities are reached in:$found" >&2; exit 1; }
echo "vulncheck: no known vulnerability is reached"
