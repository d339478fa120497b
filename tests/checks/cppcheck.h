/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For cppcheck, which reads no header of the system: what macros of those come to. */
#ifndef XDP_CUCKOO_CPPCHECK_H
#define XDP_CUCKOO_CPPCHECK_H

#define SEC(name)
#define LIBBPF_OPTS(type, name, ...) struct type name = { __VA_ARGS__ }
#define bpf_object__for_each_program(program, object) \
	for (program = bpf_object__next_program(object, NULL); program; \
	     program = bpf_object__next_program(object, program))
#define json_array_foreach(array, index, value) \
	for (index = 0; index < json_array_size(array) && (value = json_array_get(array, index)); index++)
#define json_object_foreach(object, key, value) while (json_next(object, &key, &value))

#endif
