# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Making Debian trixie trees out of the mirror that the host itself uses.

# The URI of the host's own Debian mirror, or nothing where it has none: then
# mmdebstrap's default stands.
host_mirror() {
	local id codename
	command -v apt-get >/dev/null || return 0
	id=$(. /etc/os-release && echo "${ID:-}")
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	[ "$id" = debian ] || return 0
	apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		awk -v r="$codename" '$1 == r && $2 == "main" && $3 ~ /^(https?|file|copy):/ { print $3; exit }'
}

# The host's settings about how to reach a mirror, as mmdebstrap options.
host_aptopts() {
	apt-config dump | grep -E '^Acquire::(https?|Retries|Check-|ForceIPv)' | grep -v ' "";$' |
		sed 's/^/--aptopt=/' || true
}

need_mmdebstrap() {
	command -v mmdebstrap >/dev/null && return 0
	command -v apt-get >/dev/null || die "mmdebstrap is missing, and this is not a Debian machine"
	say "installing mmdebstrap on the host"
	as_root apt-get update -qq || say "apt-get update had errors; going on"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		mmdebstrap debian-archive-keyring >/dev/null || die "cannot install mmdebstrap"
}

# package_list FILE: its packages, separated by commas.
package_list() { sed 's/#.*//; /^\s*$/d' "$1" | paste -sd,; }

# bootstrap DIR PACKAGES [MMDEBSTRAP_OPTION...]: a trixie tree in DIR.
bootstrap() {
	local dir=$1 packages=$2 mirror log=$1.log
	local opts=()
	shift 2
	need_mmdebstrap
	mirror=$(host_mirror)
	mapfile -t opts < <(host_aptopts)
	as_root mmdebstrap --variant=apt --mode=root --include="$packages" "${opts[@]}" "$@" \
		trixie "$dir" ${mirror:+"$mirror"} >"$log" 2>&1 || {
		tail -n 20 "$log" >&2
		die "mmdebstrap failed; all of its output is in $log"
	}
	rm -f "$log"
}
