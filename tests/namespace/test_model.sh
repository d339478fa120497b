#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# The tool and its filter beside a model in Python of what the documentation promises: tests/model. SEED=N draws other
# commands; COURSES, STEPS and FRAMES say how many; COURSE=N runs one alone, SECONDS_MAX=N as many as there is time for;
# WITHOUT=KIND,... draws no such steps.
# Takes a minute.
. tests/lib.sh

# model OPTION...: in the filter's namespace, where nothing but the test sends.
model() {
	silence
	in_rx $PYTHON -B tests/model/drive.py --tool "$PWD/$TOOL" --helpers "$HELPERS" --object "$OBJECT" --state "$STATE" \
		--interface vrx --from "$TX:vtx" --seed "$SEED" ${TIMES:+--times} ${WITHOUT:+--without "$WITHOUT"} "$@"
}

test_what_the_documentation_promises() {
	run model --courses "${COURSES:-4}" --steps "${STEPS:-30}" --frames "${FRAMES:-200}" ${COURSE:+--course "$COURSE"} \
		${SECONDS_MAX:+--seconds "$SECONDS_MAX"}
	[ "$STATUS" -eq 0 ] || { cat "$STATE/out" "$STATE/err"; fail "the tool and the model differ, seed $SEED"; }
	[ -z "${TIMES:-}" ] || cat "$STATE/out" >"$TIMES"
	note "$(tail -1 "$STATE/out")"
}

# This tool reports success for `add` without adding the rule.
test_the_model_notices_what_is_wrong() {
	cat >"$STATE/tool" <<-END
		#!/bin/sh
		[ "\$3" != add ] || { echo "added: \$4"; exit 0; }
		exec "$PWD/$TOOL" "\$@"
	END
	chmod +x "$STATE/tool"
	assert_status 1 model --tool "$STATE/tool" --courses 1 --steps 100 --frames 50
	assert_output '^WRONG in course 0, step [0-9]+, seed'
	assert_output "^again: SEED=$SEED COURSE=0 STEPS=100 "
}

run_tests "$0" "$@"
