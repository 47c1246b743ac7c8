#!/bin/sh
# Puts what the tests need on a Debian machine, if it is missing: redis-server, and a C compiler for the race detector.
# The tests start private servers on free ports, so the service that comes with the package is not left running.
# The argument is the make target that is being prepared; only "test" has the race detector.
set -eu

target=$1

missing() {
	cc=$(go env CC)
	[ "$target" != test ] || command -v "${cc%% *}" >/dev/null || echo gcc libc6-dev
	command -v redis-server >/dev/null || echo redis-server
}

fail() {
	echo "make $target: $1" >&2
	echo "make $target: install $packages (the names are Debian's), or run what can run without: go test ./..." >&2
	exit 1
}

packages=$(missing | xargs)
[ -n "$packages" ] || exit 0

root=
if [ "$(id -u)" -ne 0 ]; then
	sudo -n true 2>/dev/null || fail "cannot install packages: this is neither root nor a user with password-less sudo"
	root='sudo -n'
fi
command -v apt-get >/dev/null || fail "cannot install packages: there is no apt-get"

echo "make $target: installing $packages"
apt="$root env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300"
$apt update </dev/null || true # one broken source need not matter
$apt install -y --no-install-recommends $packages </dev/null || fail "apt-get install failed"

case $packages in *redis-server*)
	$root update-rc.d redis-server disable || true
	$root invoke-rc.d redis-server stop || true
esac
[ -z "$(missing)" ] || fail "$(missing | xargs) cannot be found after the installation"
