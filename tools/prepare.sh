#!/bin/sh
# Puts what the tests need on a Debian machine, if it is missing: redis-server, a C compiler for the race detector, and for "make
# services" the servers of other lock services, for "make console-test" a browser and npm. The tests start private servers on free ports, so the services that come with the
# packages are not left running. The argument is the make target that is being prepared; "test" and "services" have the race detector.
set -eu

target=$1

missing() {
	cc=$(go env CC)
	case $target in test | services) command -v "${cc%% *}" >/dev/null || echo gcc libc6-dev ;; esac
	command -v redis-server >/dev/null || echo redis-server
	[ "$target" != console-test ] || command -v chromium >/dev/null || echo chromium
	[ "$target" != console-test ] || command -v npm >/dev/null || echo npm
	[ "$target" = services ] || return 0
	[ -e /usr/share/java/zookeeper.jar ] || echo zookeeper
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || echo postgresql
	command -v mariadbd >/dev/null || echo mariadb-server
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

for service in redis-server postgresql mariadb; do
	case $packages in *$service*)
		$root update-rc.d "$service" disable || true
		$root invoke-rc.d "$service" stop || true
	esac
done
[ -z "$(missing)" ] || fail "$(missing | xargs) cannot be found after the installation"
