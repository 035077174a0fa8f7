# What the other scripts share. To be read with `.` from the project's folder.
set -eu
cd "$(dirname "$0")/.."
TORCH=${TORCH:-torch==2.13.0} # what pip installs when no Python has torch

say() {
	printf '== %s\n' "$*"
}

# packages NAME...: Debian packages, with root's own rights or by sudo.
packages() {
	missing=
	for name in "$@"; do
		dpkg-query -W -f '${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing="$missing $name"
	done
	[ -n "$missing" ] || return 0
	say "installing$missing"
	as_root=
	[ "$(id -u)" -eq 0 ] || as_root=sudo
	$as_root apt-get update -q
	$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

has_torch() {
	"$1" -c 'import torch' >/dev/null 2>&1
}

# Sets PYTHON to one with torch: $PYTHON, an active virtual environment or conda, python3; if none has it, a
# virtual environment in .venv gets it.
find_python() {
	for candidate in "${PYTHON-}" "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python}" "${CONDA_PREFIX:+$CONDA_PREFIX/bin/python}" \
		python3 .venv/bin/python; do
		if [ -n "$candidate" ] && has_torch "$candidate"; then
			PYTHON=$candidate
			export PYTHON
			return
		fi
	done
	make_venv
	PYTHON=$PWD/.venv/bin/python
	export PYTHON
}

make_venv() {
	say "no Python here has torch: putting $TORCH into .venv (some hundred MB; a GPU build has several GB)"
	python3 -m venv .venv
	.venv/bin/python -m pip install -q --disable-pip-version-check "$TORCH" numpy
}

build() {
	say "building"
	[ -x configure ] || autoreconf -fi
	[ -f Makefile ] || ./configure -q "$@"
	make -s -j"$(nproc)"
}

BUILD_PACKAGES='gcc make autoconf automake pkg-config libsqlite3-dev libjansson-dev python3 python3-dev python3-venv'
