#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# bash tests/helpers/redis-server.sh OPTION...: a Redis server takes the place of this process. Debian's package redis-server would
# start a service on the machine; redis-tools has the same program by another name.
exec -a redis-server redis-check-rdb "$@"
