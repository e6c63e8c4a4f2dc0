# SPDX-License-Identifier: GPL-2.0
"""Test machines in QEMU: booting them, running commands in them, reading their kernel logs."""
