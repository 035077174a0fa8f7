#!/bin/sh
# The directions of the house: a file includes only files of its own room and of floors below (README.md, "How it is made"),
# and each outside library stays behind its one door.
: "${srcdir:=.}"
cd "$srcdir/src" || exit 1
n=0

tell() { # tell STATUS NAME [WHAT]
	n=$((n + 1))
	echo "$1 $n - $2"
	[ -z "${3-}" ] || printf '# %s\n' "$3"
}

may() { # may ROOM FLOORS...: what the files of a room may include
	room=$1
	shift
	allowed=$(echo "$room $*" | tr ' ' '|')
	bad=$(grep -rnE '^#include "' "$room" --include='*.[ch]' | grep -vE "#include \"($allowed)/" | head -3)
	if [ -z "$bad" ]; then tell ok "$room stands on: ${*:-nothing}"; else tell 'not ok' "$room" "$bad"; fi
}

only() { # only HEADER FILE...: who may include it
	header=$1
	shift
	bad=$(grep -rlE "#include <$header>" . --include='*.[ch]' | grep -vE "^\./($(echo "$*" | tr ' ' '|'))\$" | head -3)
	if [ -z "$bad" ]; then tell ok "only $* includes $header"; else tell 'not ok' "$header" "$bad"; fi
}

pure() { # pure FILE...: no file descriptor, no clock of its own
	for file in "$@"; do
		bad=$(grep -nE '#include <(unistd|fcntl|stdio|sys/[a-z]+|poll|termios)\.h>' "$file" | head -3)
		if [ -z "$bad" ]; then tell ok "$file sees no file descriptor"; else tell 'not ok' "$file" "$bad"; fi
	done
}

may base
may facts base
may session facts base
may device facts base
may capture session facts base
may diagnose capture session facts base
may report diagnose facts base
may cmd report diagnose device capture session facts base
only sqlite3.h base/db.c
only Python.h agent/cuwhy_agent/_fast.c
only curses.h ui/.*
pure capture/logscan*.c capture/launch.c diagnose/steps.c diagnose/verdict.c diagnose/fault.c diagnose/words.c facts/model.c facts/event.c
echo "1..$n"
