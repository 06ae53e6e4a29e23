# shellcheck shell=sh
# What the scripts share; read with `.` from the root of the checkout.

say() {
    printf '%s\n' "$*" >&2
}

fail() {
    say "$*"
    exit 1
}

# can_install: whether this is Debian (or a child of it) and we may install packages.
can_install() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1
}

# debian PACKAGE...: installs Debian packages.
debian() {
    say "Installing Debian packages: $*"
    if [ -z "${apt_is_fresh:-}" ]; then
        apt-get update -qq </dev/null >&2
        apt_is_fresh=yes
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >&2
}
