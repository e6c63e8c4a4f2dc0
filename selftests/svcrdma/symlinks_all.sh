#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Symbolic links with targets of every length from 1 to 4095 bytes.
#
# Tier: full
# Limit: 1800

export sample=1
. "$(dirname "$0")/symlinks.sh"
