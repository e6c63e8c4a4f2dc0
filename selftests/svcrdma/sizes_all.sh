#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every transfer size from 1 to 9000 and the powers of two to 1 MiB, at odd
# offsets.
#
# Tier: full
# Limit: 1800

export sample=all
. "$(dirname "$0")/sizes.sh"
