#!/usr/bin/env bash
# Makes the commits and tags of a release, and pushes nothing:
#
#	tools/release.sh v0.1.0
#	tools/release.sh -try v0.1.0    # in a clone that is thrown away, with a program of a stranger that requires the release
#
# The order matters. The root module is tagged first, as it requires none of the others. Then one commit has the modules below it require
# that tag in place of the folder, since `go install …@v0.1.0` refuses a module with a replace; their tags stand on that commit. The last commit goes
# back to the folders, for work on all modules at once. The go command finds the tags in this clone, so that sums are right before the push.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=github.com/latchkey-go/latchkey
# Those that users require. All others are for tests, benchmarks and examples, and are never tagged.
modules="interceptor/connectguard lock/etcdlock lock/zklock lock/sqllock lock/mongolock cmd/latchkey
	jobs/asynqguard jobs/cronguard jobs/riverguard jobs/temporalguard"
for new in cmd/latchkey-vet cmd/latchkey-gen; do
	if [ -e "$new/go.mod" ]; then modules="$modules $new"; fi
done

fail() { echo "release: $1" >&2; exit 1; }

# here has the go command take the module from the clone in $PWD, and everything else from where it always does.
here() {
	GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.file://$PWD/.git.insteadOf" GIT_CONFIG_VALUE_0="https://$module" \
		GOPRIVATE="$module" GOFLAGS=-mod=mod "$@"
}

release() {
	local version=$1
	[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$ ]] || fail "$version is no version: write one like v0.1.0"
	[ -z "$(git status --porcelain)" ] || fail "the work tree has changes: commit or drop them first"
	[ -z "$(git tag --list "$version")" ] || fail "there is a tag $version already"
	grep -q "^## $version" CHANGELOG.md || fail "CHANGELOG.md has no part \"## $version\": cut it from Unreleased first"
	git tag --annotate "$version" --message "$version"

	for dir in $modules; do
		go -C "$dir" mod edit -dropreplace="$module" -require="$module@$version"
		here sh -c "cd '$dir' && go mod tidy && go build ./..." || fail "$dir does not build on $module $version"
		if go -C "$dir" mod edit -json | grep -q '"Replace": \['; then fail "$dir still replaces a module"; fi
	done
	git commit --quiet --all --message "release $version"
	for dir in $modules; do
		git tag --annotate "$dir/$version" --message "$dir $version"
	done
	for dir in $modules; do
		local up
		up=$(sed 's|[^/]*|..|g' <<<"$dir")
		go -C "$dir" mod edit -replace="$module=$up"
		(cd "$dir" && GOFLAGS=-mod=mod go mod tidy)
	done
	git commit --quiet --all --message "modules below the root are built with this tree again"
	echo "release: made $(git tag --list "*$version" | tr '\n' ' ')"
	echo "release: git push --atomic origin main $(git tag --list "*$version" | tr '\n' ' ')"
}

# try releases in a clone, and then is somebody who has only the tags.
try() {
	local version=$1
	dir=$(mktemp -d)
	trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
	git clone --quiet . "$dir/clone"
	cd "$dir/clone"
	git config user.name release && git config user.email release@localhost
	grep -q "^## $version" CHANGELOG.md || {
		sed -i "s/^## Unreleased/## Unreleased\n\n## $version/" CHANGELOG.md
		git commit --quiet --all --message "cut $version"
	}
	# In a cache of its own: in the usual one, what was tried would stand for the version for ever.
	GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
	export GOPROXY GOMODCACHE="$dir/cache" GOBIN="$dir/bin"
	tools/release.sh "$version"
	mkdir "$dir/user"
	cat >"$dir/user/main.go" <<-'END'
		package main

		import (
			"context"
			"fmt"

			"github.com/latchkey-go/latchkey/guard"
			"github.com/latchkey-go/latchkey/lock/etcdlock"
			"github.com/latchkey-go/latchkey/lock/memlock"
		)

		var _ etcdlock.Option

		func main() {
			g := guard.Must(guard.New(memlock.New(), guard.Name("hello"), guard.Key("hello:#{req}")))
			hello := guard.Must(guard.Func(g, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil }))
			fmt.Println(hello(context.Background(), "release"))
		}
	END
	here sh -c "cd '$dir/user' && go mod init example.com/user && go get $module@$version $module/lock/etcdlock@$version && go run ."
	here sh -c "cd '$dir/user' && for m in cmd/latchkey cmd/latchkey-vet cmd/latchkey-gen; do
		if [ -e '$dir/clone/'\$m/go.mod ]; then go install $module/\$m@$version || exit 1; fi; done"
	"$dir/bin/latchkey" --version
	echo "release: tried $version in a clone"
}

case "${1-}" in
-try) try "${2-}" ;;
v*) release "$1" ;;
*) fail "usage: tools/release.sh [-try] v0.1.0" ;;
esac
