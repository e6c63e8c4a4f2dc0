#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# fio_verify.sh with files of 64 MiB.
#
# Tier: full
# Limit: 3600

export megabytes=64
. "$(dirname "$0")/fio_verify.sh"
