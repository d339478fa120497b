// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* An error text of the kernel belongs to one refusal only. Runs in its own network namespace. */
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/if_link.h>

#include "unit/test.h"
#include "kernel/internal.h"

/* The loopback interface supports only generic XDP, and the kernel says so. */
static void be_refused(void)
{
	static const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	const int program = bpf_prog_load(BPF_PROG_TYPE_XDP, "pass", "GPL", pass, 2, NULL);

	assert_true(program >= 0);
	assert_true(bpf_xdp_attach(if_nametoindex("lo"), program, XDP_FLAGS_DRV_MODE, NULL) < 0);
	close(program);
}

TEST(test_an_error_text_belongs_to_one_refusal)
{
	struct reason reason;

	needs_root();
	kernel_catch_messages();
	be_refused();
	assert_non_null(strstr(kernel_error_text(), "native mode"));
	kernel_refuse_in_words(&reason, -EOPNOTSUPP, "cannot attach to ", "lo");
	assert_non_null(strstr(reason.text, "native mode"));
	/* For a map the kernel gives no text. */
	kernel_refuse(&reason, -ENOMEM, "cannot read the counters", "");
	assert_string_equal("cannot read the counters: Cannot allocate memory", reason.text);
	kernel_catch_messages();
	assert_string_equal("", kernel_error_text());
}

static int own_namespace(void **state)
{
	(void)state;
	return geteuid() ? 0 : unshare(CLONE_NEWNET);
}

TEST_MAIN(own_namespace, NULL)
