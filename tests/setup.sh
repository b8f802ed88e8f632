#!/usr/bin/env bash
# Installs what the tests need: Debian packages, npm packages and a Python environment.
#
# Safe to run at any time: what is already there is left alone, and a run with nothing to do takes
# well under a second. Debian packages need root (or sudo); all else stays inside the project, in
# tests/node_modules and .setup/, which git ignores.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*"; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        say "need root to run: $*" >&2
        exit 1
    fi
}

debian_packages() {
    local wanted missing
    wanted=$(grep -v '^#' tests/debian-packages.txt)
    # dpkg-query fails when it has never heard of a package; that one is missing, too.
    # shellcheck disable=SC2086
    missing=$(comm -13 \
        <(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $wanted 2>/dev/null \
            | sed -n 's/^installed //p' | sort -u) \
        <(sort <<<"$wanted"))
    if [ -z "$missing" ]; then
        return
    fi
    say "Debian packages:" $missing
    as_root apt-get update -q
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -q -y --no-install-recommends $missing
}

# Runs `$2…` when the files in $1 are not those of the last run that succeeded.
when_changed() {
    local files=$1 stamp now
    shift
    stamp=.setup/$(tr -c 'a-z0-9\n' - <<<"$files").sum
    # shellcheck disable=SC2086
    now=$(sha256sum $files)
    if [ "$(cat "$stamp" 2>/dev/null)" != "$now" ]; then
        say "$*"
        "$@"
        printf '%s\n' "$now" >"$stamp"
    fi
}

npm_packages() {
    (cd tests && npm ci --no-audit --no-fund)
}

python_environment() {
    rm -rf .setup/venv
    /usr/bin/python3 -m venv .setup/venv
    .setup/venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
}

main() {
    mkdir -p .setup
    debian_packages
    if [ ! -d tests/node_modules ]; then rm -f .setup/tests-package*.sum; fi
    when_changed "tests/package.json tests/package-lock.json" npm_packages
    if [ ! -x .setup/venv/bin/python ]; then rm -f .setup/tests-requirements*.sum; fi
    when_changed "tests/requirements.txt" python_environment
}

main
