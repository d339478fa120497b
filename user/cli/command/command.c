// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What commands share: failures, operands, opening a store. */
#include "command/command.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "change/change.h"
#include "io/metrics_text.h"
#include "io/output.h"
#include "io/whole_file.h"
#include "kernel/interfaces.h"
#include "base/suggest.h"

#define IPV6_HEADER_BYTES 40

enum command_status command_status_of(int error)
{
	switch (-error) {
	case ECANCELED:
	case EINVAL:
	case ENODEV:
	case ENAMETOOLONG:
		return STATUS_USAGE;
	case ENOSPC:
	case ENOMEM:
	case E2BIG:
	case EUSERS:
		return STATUS_FULL;
	case EBUSY:
		return STATUS_BUSY;
	default:
		return STATUS_SYSTEM;
	}
}

enum command_status command_fail_because(int error, const struct reason *reason)
{
	const bool needs_root = (error == -EPERM || error == -EACCES) && geteuid();

	return command_fail(command_status_of(error), "%s%s", needs_root ? "run it as root: " : "", reason->text);
}

enum command_status command_answer(int error, const struct reason *reason, json_t *answer)
{
	if (error) {
		json_decref(answer);
		return command_fail_because(error, reason);
	}
	output_print(answer);
	return STATUS_DONE;
}

enum command_status command_fail(enum command_status status, const char *format, ...)
{
	char text[REASON_BYTES + 512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	output_error(status, text);
	return status;
}

enum command_status command_fail_not_running(const char *name)
{
	struct suggest suggest = suggest_for(name);
	char text[SUGGEST_TEXT_BYTES];
	struct kernel_filter *filters = NULL;
	struct reason ignored;
	size_t count = 0;

	kernel_find_filters((struct kernel_wish){ .keeps_pins = true }, &filters, &count, &ignored);
	for (size_t i = 0; i < count; i++)
		suggest_offer(&suggest, filters[i].config->name);
	kernel_filters_free(filters, count);
	/* A filter of this very name may have started in the meantime. It is no suggestion. */
	if (*suggest.nearest && strcmp(suggest.nearest, name))
		return command_fail(STATUS_NO, "no filter '%s' is running here%s", name,
				    suggest_text(&suggest, "xdp-cuckoo status", text));
	return command_fail(STATUS_NO,
			    "no filter '%s' is running here; see xdp-cuckoo status, or run it: "
			    "xdp-cuckoo%s load IFACE",
			    name, session_name_option(name));
}

void command_note(const char *text)
{
	output_note("%s", text);
}

void command_report_bad_line(const char *text)
{
	output_error(STATUS_USAGE, text);
}

void command_warn_reader(const char *text)
{
	struct pollfd errors = { .fd = STDERR_FILENO, .events = POLLOUT };

	/* Of a pipe without a reader: POLLOUT, too. */
	if (poll(&errors, 1, 0) > 0 && !(errors.revents & POLLERR))
		output_warning("%s", text);
}

enum command_status command_close_not_running(struct session *session)
{
	enum command_status status;

	command_report_undone(session);
	status = command_fail_not_running(session->name);
	session_close(session);
	return status;
}

enum command_status command_open_counts(const struct invocation *invocation, struct store *store,
					struct rule_counts *counts)
{
	struct reason reason;
	int error = rule_counts_open(counts, invocation->name, &reason);

	if (error == -ENOENT)
		return command_fail_not_running(invocation->name);
	if (error == -EOPNOTSUPP)
		return command_fail(STATUS_NO,
				    "the filter '%s' does not count by rule: load it again without --compact "
				    "and --no-counters; see xdp-cuckoo%s status",
				    invocation->name, session_name_option(invocation->name));
	if (!error && store)
		error = store_unread_reason(store_shapes(store, &counts->shapes), &reason);
	return error ? command_fail_because(error, &reason) : STATUS_DONE;
}

enum command_status command_check_format(const struct load_options *load)
{
	if (load->fingerprint_bits && !load->is_compact)
		return command_fail(STATUS_USAGE, "--fingerprint needs --compact: an exact table has 16 bits and drops "
						  "no innocent packet");
	return STATUS_DONE;
}

enum command_status command_fail_choices(const char *what, const char *word, const char *choices)
{
	struct suggest suggest = suggest_for(word);
	char spelt[SUGGEST_TEXT_BYTES], text[SUGGEST_TEXT_BYTES];
	const char *last = strrchr(choices, '|');
	size_t used = 0;

	/* "a|b|c" becomes "a, b or c". */
	for (const char *c = choices; *c && used < sizeof(spelt); c++)
		used += snprintf(spelt + used, sizeof(spelt) - used, "%.*s", *c == '|' ? 4 : 1,
				 *c != '|' ? c :
				 c == last ? " or " :
					     ", ");
	suggest_offer_choices(&suggest, choices);
	return command_fail(STATUS_USAGE, "%s '%s': must be %s%s", what, word, spelt,
			    suggest_text(&suggest, NULL, text));
}

void command_skip_dev(struct invocation *invocation)
{
	if (invocation->count < 2 || strcmp(invocation->operands[0], "dev") || interfaces_index("dev"))
		return;
	invocation->operands++;
	invocation->count--;
}

enum command_status command_read_rule_count(const char *what, const char *text, __u64 *number)
{
	const size_t digits = strspn(text, "0123456789");
	const __u64 unit = !strcasecmp(text + digits, "k") ? 1000 :
			   !strcasecmp(text + digits, "m") ? 1000000 :
			   !strcasecmp(text + digits, "g") ? 1000000000 :
							     1;
	char number_text[24];
	const int length =
		snprintf(number_text, sizeof(number_text), "%.*s", (int)(unit > 1 ? digits : strlen(text)), text);

	if (length < (int)sizeof(number_text) && !count_parse(number_text, number) &&
	    !__builtin_mul_overflow(*number, unit, number))
		return STATUS_DONE;
	return command_fail(STATUS_USAGE, "%s '%s': must be a number of rules, 1 or more, like 5000000 or 5M", what,
			    text);
}

int command_parse_rules(struct rule_words *words, bool is_strict, struct rules *rules, const char **list,
			struct reason *reason)
{
	const char **word = words->word;
	bool has_list = false;
	size_t kept = 0;

	/* Takes the words `list NAME` out. *list stays if there are none. */
	for (size_t i = 0; list && i < words->count; i++) {
		const bool has_equals = !strncasecmp(word[i], "list=", 5);
		const char *name;

		if (!has_equals && strcasecmp(word[i], "list")) {
			word[kept++] = word[i];
			/* The text of a comment may be the word list. */
			if (!strcasecmp(word[i], "comment") && i + 1 < words->count)
				word[kept++] = word[++i];
			continue;
		}
		if (kept > 1 && !strcasecmp(word[kept - 2], "comment") && rule_is_open_comment(word[kept - 1]))
			return reason_set(reason, -EINVAL,
					  "'%.40s' follows the comment '%.40s'; quote a comment of several "
					  "words; one of a single word comes last",
					  word[i], word[kept - 1]);
		if (has_list)
			return reason_set(reason, -EINVAL, "'list' is given twice");
		if (!has_equals && ++i == words->count)
			return reason_set(reason, -EINVAL, "'list' needs a value after it: NAME");
		name = word[i] + (has_equals ? 5 : 0);
		if (!session_is_name(name))
			return reason_set(reason, -EINVAL,
					  "'list %.40s': a name has 1 to %d letters, digits, '.', '_' or '-', and does "
					  "not start with '.' or '-'",
					  name, ABI_NAME_BYTES - 1);
		has_list = true;
		*list = name;
	}
	if (list)
		words->count = kept;
	return rules_parse(rules, word, words->count, is_strict, reason);
}

/* Stored rules, files and `del` may have such rules, which older versions took. */
int command_check_sense(const struct rules *rules, struct reason *reason)
{
	const struct rule *rule = rules->rule;
	bool is_long = false, may_begin = false;

	for (size_t i = 0; i < rules->count; i++) {
		rule = &rules->rule[i];
		is_long |= rule->family != FLOW_IPV6 || !rule->details.length_bits ||
			   (rule->length | 0xffff >> rule->details.length_bits) >= IPV6_HEADER_BYTES;
		may_begin |= !(rule->fields & RULE_NEW) || rule_may_begin(rule);
	}
	if (!is_long)
		return reason_set(reason, -EINVAL, "length: an IPv6 packet has at least 40 bytes");
	return may_begin ? 0 :
			   reason_set(reason, -EINVAL,
				      "state new: packets with this %s begin nothing; leave out one of the two",
				      rule->port_kind == FLOW_ICMP ? "ICMP type" :
				      rule->details.flags_mask     ? "flag" :
								     "pair of ports");
}

bool command_is_list(const struct invocation *invocation, const char *name)
{
	struct store_lists lists = {};
	struct store *store;
	struct reason ignored;
	bool is_there;

	if (!session_is_name(name) || rule_is_word(name) || command_open_store(invocation, &store, &ignored))
		return false;
	is_there = store && !store_lists(store, &lists) && store_lists_find(&lists, name);
	store_close(store);
	return is_there;
}

enum command_status command_read_rules(const struct invocation *invocation, struct rules *rules, const char **list)
{
	struct rule_words words = { .count = invocation->count };
	struct reason reason;
	int error = 0;

	*rules = (struct rules){};
	if (words.count == 1)
		error = rule_words_split(&words, invocation->operands[0], &reason);
	else if (words.count > RULE_WORDS_MAX)
		error = reason_set(&reason, -EINVAL, "'%.80s': too many words for a rule",
				   invocation->operands[RULE_WORDS_MAX]);
	else
		memcpy(words.word, invocation->operands, words.count * sizeof(*words.word));
	if (list)
		*list = invocation->list_name;
	/* ipset's "add SET ADDRESS" */
	if (!error && list && !*list && words.count > 1 && command_is_list(invocation, words.word[0])) {
		*list = words.word[0];
		memmove(words.word, words.word + 1, --words.count * sizeof(*words.word));
	}
	if (!error)
		error = command_parse_rules(&words, false, rules, list, &reason);
	if (error)
		return command_fail_because(error, &reason);
	if (rules->masked.count)
		output_note("'%s' has host bits set; its network is taken", rules->masked.first);
	return STATUS_DONE;
}

enum command_status command_read_rule(const struct invocation *invocation, struct rule *rule, const char **list)
{
	char first[RULE_TEXT_BYTES], second[RULE_TEXT_BYTES];
	enum command_status status;
	struct rules rules;

	status = command_read_rules(invocation, &rules, list);
	if (status != STATUS_DONE || !rules.count)
		return status;
	*rule = rules.rule[0];
	if (rules.count > 1)
		status = command_fail(STATUS_USAGE,
				      "these words mean %zu rules: '%s', '%s'%s; ask for one at a time; the other "
				      "address of a packet is its dst",
				      rules.count, rule_format(&rules.rule[0], first),
				      rule_format(&rules.rule[1], second), rules.count > 2 ? ", ..." : "");
	rules_free(&rules);
	return status;
}

enum command_status command_fail_list(int error, const struct reason *reason)
{
	return error == -ESRCH ? command_fail(STATUS_NO, "%s", reason->text) : command_fail_because(error, reason);
}

bool command_is_late(struct store *store)
{
	struct store_pending pending;

	return store && !store_pending(store, &pending) && pending.id && pending.left_ms <= 0;
}

/* Once, even if a command opens the store often. */
static void warn_if_late(const struct invocation *invocation, struct store *store)
{
	static bool is_reported;

	if (is_reported || !command_is_late(store))
		return;
	is_reported = true;
	output_warning("the last change was not confirmed in time, and is not undone yet: until then a running "
		       "filter passes everything; xdp-cuckoo%s check undoes it, and so does the next change",
		       session_name_option(invocation->name));
}

int command_open_store(const struct invocation *invocation, struct store **store, struct reason *reason)
{
	int error;

	*store = NULL;
	error = session_open_store(invocation->state, invocation->name, STORE_READ, store, reason);
	warn_if_late(invocation, *store);
	return error == -ENOENT ? 0 : error;
}

enum command_status command_read_store(const struct invocation *invocation, bool is_for_document, struct store **store)
{
	struct reason reason;
	char dir[PATH_MAX];
	int error = command_open_store(invocation, store, &reason);

	if (error)
		return command_fail_because(error, &reason);
	if (*store || session_state_dir(invocation->state, invocation->name, dir, sizeof(dir)))
		return STATUS_DONE;
	/* An empty document would replace a good one, if the name is mistyped or the disk of the store is not mounted. */
	if (is_for_document)
		return command_fail(STATUS_NO,
				    "nothing is written: no rules are stored in %s; --name and --state name another place",
				    dir);
	output_note("no rules are stored in %s; --name and --state name another place", dir);
	return STATUS_DONE;
}

int command_open_guarded(const struct invocation *invocation, const struct rule *only, struct session *session,
			 struct guard *guard, struct reason *reason)
{
	int error;

	*session = (struct session){};
	*guard = (struct guard){};
	error = invocation->is_forced ? 0 : guard_open_for(only, guard, invocation->state, reason);
	if (!error)
		error = invocation->is_dry_run ?
				session_open_dry_run(session, invocation->state, invocation->name, reason) :
				session_open(session, invocation->state, invocation->name, reason);
	if (!error && invocation->is_dry_run)
		warn_if_late(invocation, session->store);
	if (!error && !invocation->is_forced)
		session->guard = guard;
	return error;
}

void command_note_adder(struct session *session)
{
	const char *behind_sudo = geteuid() ? NULL : secure_getenv("SUDO_UID");
	FILE_CLOSED FILE *file = behind_sudo ? NULL : fopen("/proc/self/loginuid", "r");
	unsigned int user;

	session->adder = getuid();
	if (behind_sudo ? sscanf(behind_sudo, "%u", &user) == 1 : file && fscanf(file, "%u", &user) == 1 && user != ~0U)
		session->adder = user;
	session->notes_adder = true;
}

int command_begin(const struct invocation *invocation, struct session *session, struct reason *reason)
{
	int error = change_begin(session, reason);

	if (!error && invocation->confirm_ms)
		error = change_set_pending(session, invocation->confirm_ms, reason);
	if (error && session->open_change)
		change_abort(session);
	return error;
}

json_t *command_note_dry_run(const struct invocation *invocation, json_t *answer)
{
	json_t *marked = invocation->is_dry_run ? json_pack("{s:b}", "dry_run", true) : NULL;

	if (!marked)
		return answer;
	json_object_update(marked, answer);
	json_decref(answer);
	return marked;
}

enum command_status command_find_list(const struct invocation *invocation, struct store *store,
				      struct store_lists *lists, unsigned int *number)
{
	const char *name = invocation->list_name;
	struct reason reason;
	int error;

	*lists = (struct store_lists){};
	error = store ? store_lists(store, lists) : 0;
	if (store_unread_reason(error, &reason))
		return command_fail_because(error, &reason);
	*number = name ? store_lists_find(lists, name) : 0;
	if (*number || !name)
		return STATUS_DONE;
	change_say_no_list(invocation->name, name, &reason);
	return command_fail(STATUS_NO, "%s", reason.text);
}

json_t *command_list_names(const struct store_lists *lists, __u64 owners)
{
	json_t *names = json_array();

	for (size_t i = 1; i <= STORE_LISTS_MAX; i++)
		if (owners >> i & 1 && lists->list[i].name[0])
			json_array_append_new(names, json_string(lists->list[i].name));
	return names;
}

json_t *command_interface(const struct kernel_attachment *attachment)
{
	struct kernel_attachment cleaned = *attachment;

	interface_clean_name(cleaned.interface);
	return json_string(cleaned.interface);
}

enum command_status command_write_file(const char *path, int (*write)(FILE *to, void *context), void *context)
{
	const bool is_output = whole_file_is_output(path);
	struct whole_file file;
	int error = is_output ? write(output_document(), context) : whole_file_open(&file, path);

	if (!is_output && !error)
		error = whole_file_close(&file, write(file.to, context));
	if (error)
		return command_fail(STATUS_SYSTEM, "cannot write '%s': %s", path, reason_of_write(error));
	return STATUS_DONE;
}

int command_open_change(const struct invocation *invocation, bool is_guarded, const struct rule *only,
			struct command_change *change, struct reason *reason)
{
	*change = (struct command_change){ .watchdog = { .state = invocation->state, .name = invocation->name } };
	if (invocation->confirm_ms)
		watchdog_ignore_hangup();
	if (is_guarded)
		return command_open_guarded(invocation, only, &change->session, &change->guard, reason);
	return session_open(&change->session, invocation->state, invocation->name, reason);
}

int command_close_change(struct command_change *change, int error, struct reason *reason)
{
	struct watchdog *watchdog = &change->watchdog;
	struct session *session = &change->session;
	struct reason ignored;
	int unwatched = 0;

	/* The store is not asked: the commit may have been its last act, on a disk that fails. */
	if (session->confirm_ms) {
		watchdog->pending_id = session->pending_id;
		watchdog->deadline_ms = watchdog_deadline(session->confirm_ms);
	}
	session_close(session);
	guard_close(&change->guard);
	if (watchdog->pending_id)
		unwatched = watchdog_start(watchdog, error ? &ignored : reason);
	return error ? error : unwatched;
}

enum command_status command_end_change(const struct invocation *invocation, struct command_change *change, int error,
				       struct reason *reason, json_t *answer)
{
	enum command_status status;

	error = command_close_change(change, error, reason);
	json_object_set_new(answer, "changed", json_boolean(change->is_changed));
	status = command_answer(error, reason, command_note_dry_run(invocation, answer));
	if (status == STATUS_DONE && change->watchdog.pending_id)
		command_report_confirm(invocation, change->watchdog.deadline_ms);
	return status;
}

static int write_metrics_text(FILE *to, void *metrics)
{
	metrics_write(to, metrics);
	return 0;
}

enum command_status command_write_metrics(const char *path, json_t *metrics)
{
	enum command_status status = STATUS_DONE;

	if (output_is_json() && whole_file_is_output(path)) {
		output_document();
		output_print(json_incref(metrics));
	} else {
		status = command_write_file(path, write_metrics_text, metrics);
	}
	json_decref(metrics);
	return status;
}
