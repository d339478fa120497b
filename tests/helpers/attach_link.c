// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Attaches the BPF object to an interface by a bpf_link, as loaders other than ip(8) do, says so on
 * standard output, and holds the link until it is killed.
 */
#include <net/if.h>
#include <stdio.h>
#include <unistd.h>

#include <bpf/libbpf.h>

static struct bpf_link *attach(const char *interface, const char *path)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	const int index = if_nametoindex(interface);
	struct bpf_program *program;

	if (!object || !index || bpf_object__load(object))
		return NULL;
	program = bpf_object__find_program_by_name(object, "xdp_cuckoo");
	return program ? bpf_program__attach_xdp(program, index) : NULL;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fputs("usage: attach_link IFACE OBJECT\n", stderr);
		return 2;
	}
	if (!attach(argv[1], argv[2])) {
		perror("attach_link");
		return 1;
	}
	puts("attached");
	fflush(stdout);
	pause();
	return 0;
}
