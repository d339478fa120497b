#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# In the machine of tests/systemd/machine.sh: runs the tests of this boot with their output on the second serial port, the last
# line of which is "status N"; then boots again.
stty -F /dev/ttyS1 raw
(
	cd /project || exit
	sh "tests/systemd/$(sed 's/.* tests=\([a-z]*\).*/\1/' /proc/cmdline)_boot.sh"
	echo "status $?"
) >/dev/ttyS1 2>&1 </dev/null
systemctl reboot
