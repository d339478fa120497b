/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Changes the rules: in the store, and in the tables of all running filters. Every change goes
 * through here. This folder knows no commands and prints nothing.
 *
 * Words: a filter runs on interfaces and has one table in use (filter/filter.h). A session is one
 * process that has the store and all filters of one name open for writing. A change is all from
 * change_begin() to its end; the functions change_...() are its steps. It is pending if it will be
 * undone unless `confirm` comes in time. A key makes one entry in a table; most rules have one. The
 * guard lists the flows that must stay unblocked (host/host.h). A rule has ended when its timeout is
 * over. The other words, as shape and generation, are in include/abi.h.
 *
 * The order of a change, for a table that is changed in place, as by `del 10.77.0.0/24`, `add
 * 10.77.0.0/25`, `add 10.77.0.128/25` in one batch:
 *
 *    what happens                                               where
 *    rules change in the store's transaction                    change_add(), change_del(): rules.c
 *    the guard may refuse                                       change_check_guard(): lockout.c
 *    the table gets the generation ABI_GENERATION_DIRTY         insert_all(): entries.c
 *    the new shapes are published beside the old ones, and
 *    new rates get meters                                       publish_new()
 *    keys of pass rules enter                                   insert_action(), set_later_ends()
 *    wait until packets that began before have ended            filter_wait_for_packets()
 *    keys of drop rules enter, then those of monitor rules      insert_action(), set_later_ends()
 *    the store commits                                          carry_out(): commit.c
 *    policies change                                            entries_finish(): entries.c
 *    wait, as before
 *    keys that no rule has any more leave: those of drop rules,
 *    then (after a wait) of pass rules, then of monitor rules   finish_key()
 *    the old shapes and meters leave                            filter_publish_shapes()
 *    the table gets the store's generation                      finish(): commit.c
 *
 * From the first key that enters to the last that leaves, a packet meets old rules and new ones
 * together. A pass rule wins, so none is dropped in between, and each verdict changes at most once.
 *
 * A crash before the commit leaves the old rules, one after it the new ones. In both cases a table
 * may have keys too many, and lacks none. Its generation says so: the next writer makes it equal to
 * the store (filter_update()). Signals that end the process wait for the end of the change.
 *
 * While a pending change waits, each rule that it touched has two values, in force and as undone.
 * A later change goes to both: store_change_undone() in store/pending_change.c writes the second,
 * and change_undo() puts it in force.
 *
 * A table is not changed in place if the added keys do not fit, if the change must take effect at
 * once, or if the store chooses anew which shapes are joined for look-up (rule/shapes.h). Then a
 * new table is filled with the future content of the store before the commit. It takes the old
 * table's place after the commit, and its policies come with it. A table that must be repaired is
 * replaced too, if it can be: nothing tells which of its entries are of pass rules.
 *
 * Files, from the lowest to the highest; each calls only those before it: names.c; query.c (which
 * rule decides about a flow); pending_keys.c keeps the keys of a change; filter_change.c has the
 * states of a table; entries.c moves the keys; pending.c has the deadline of what waits for
 * `confirm`; rules.c says what changes; lockout.c refuses what would cut this host off; equal.c
 * makes a list equal to a set; commit.c has the order, and the undo; whole_changes.c; series.c
 * makes many small changes; session.c opens and closes; confirm_watchdog.c.
 */
#ifndef XDP_CUCKOO_CHANGE_H
#define XDP_CUCKOO_CHANGE_H

#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "base/error_reason.h"
#include "host/host.h"
#include "rule/rule.h"
#include "store/store.h"
#include "filter/filter.h"
#include "rule/rule_set.h"

#define SESSION_NAME_DEFAULT "default"
#define SESSION_STATE_DEFAULT HOST_STATE_DIR

struct open_change; /* internal.h: its keys, and what the guard saw before it */

/* The result of undoing a pending change whose time was over. */
struct change_undone {
	bool is_done;         /* this process has undone it */
	bool is_reported;     /* the caller has written this to stderr */
	__u64 rules;          /* rules that the change had added, removed or given another timeout */
	int error;            /* -errno: the undo failed and the change is still pending; else 0 */
	__u64 lost;           /* earlier rules not restored: no room for their shape */
	struct reason reason; /* for the error, or for the first lost rule */
};

struct session {
	char name[ABI_NAME_BYTES];
	struct store *store;
	struct filter *filters;
	size_t filters_count;
	const struct guard *guard; /* a change that newly blocks a flow of it fails; NULL: none fails */
	unsigned int owner;        /* of added rules: STORE_BY_HAND or the number of a list: change_open_list() */
	__s64 confirm_ms;          /* time to confirm the current change, counted from its end; 0: not pending */
	__u64 pending_id;          /* of the current change, if it is pending */
	bool notes_adder;          /* change_add() notes who adds a rule by hand, and when */
	__u32 adder;               /* uid */
	bool is_dry_run;           /* change_commit() asks the guard, and then aborts the change */
	struct store_info planned; /* of a dry run: what the store would hold */
	struct open_change *open_change; /* between change_begin() and its end; else NULL */
	struct change_undone undone;
	struct reason limited;        /* the change has put a flow of the guard under a rate; or "" */
	struct reason voided;         /* the change has a pass rule that voids lists; or "" */
	size_t rates_max;             /* a fleet's rules get no new rate if the store has so many; 0: ABI_RATES_MAX */
	__u64 kept_rates;             /* rules with a rate that the owner gave up, and that others want */
	struct reason not_reached;    /* a filter of this name that cannot be used: changes do not reach it; or "" */
	const char *state;            /* of session_open(); must stay valid until session_close() */
	bool is_unwatched;            /* a filter is new: see watchdog_wanted */
	int adoption_lock;            /* held while filters of other loaders are set up; 0: it is not */
	struct kernel_filter *paused; /* of a paused session: its filters, as somebody last saw them run */
	size_t paused_count;
};

/* Whether `name` is valid for a filter: 1 to 31 of A-Z a-z 0-9 . _ -, and the first is neither . nor -. */
bool session_is_name(const char *name);

/*
 * " --name NAME", as part of a command to type; "" for the default name, and for a filter without a name yet. Valid until
 * the next call of this thread.
 */
const char *session_name_option(const char *name);

/* Writes the path of the store `name` below the directory `state` (NULL: the default). 0; -ENAMETOOLONG. */
int session_state_dir(const char *state, const char *name, char *dir, size_t size);

/* Opens that store, or resumes it if *store is not NULL: see store_open(), store_resume(). */
int session_open_store(const char *state, const char *name, enum store_mode mode, struct store **store,
		       struct reason *reason);

/*
 * Opens the store for writing, and every running filter of that name. Then:
 * - sets up filters that another loader has loaded;
 * - repairs tables that differ from the store;
 * - replaces filters of an older version of this tool;
 * - undoes a pending change whose time is over. session->undone has the result; a failed undo is no error here.
 *
 * This process is the only writer until session_close(). session_close() also accepts a zeroed struct, and a struct
 * that failed to open. 0; -errno with the reason. -EPERM: no filter of the name was found, but there is a program
 * that this process may not inspect. -EADDRINUSE: the store's filter runs in another network namespace.
 *
 * session_try_open() does not wait: -EBUSY: another writer is at work. session_open_to_load() is for callers
 * that load a filter: for them the -EPERM above is no error. They get its reason in *unseen, or "" if there was no
 * such error. Filters that another loader has loaded still pass everything, until session_start(). With is_on_trial,
 * filters of another version are an error (-EINVAL), because nothing could undo their replacement.
 *
 * If the store is on a read-only file system and none of its filters runs, session_open_to_load() opens a copy in memory
 * (store_is_copy()), but not on trial: -EROFS. What changes the copy is lost when it closes; nobody could confirm a pending
 * change, so it is undone there.
 *
 * -EPROTO, -EPROTONOSUPPORT: a newer version of this tool has made a table or written the store. Nothing has changed.
 */
int session_open(struct session *session, const char *state, const char *name, struct reason *reason);
int session_open_to_load(struct session *session, const char *state, const char *name, bool is_on_trial,
			 struct reason *unseen, struct reason *reason);
void session_start(struct session *session);

/*
 * For changes that only show what they would do: opens the store, but no filter, and repairs nothing. If there is no
 * store, opens an empty one, whose directory is deleted already. change_commit() changes nothing, and returns the
 * errors that the guard, the limits and the store would give.
 */
int session_open_dry_run(struct session *session, const char *state, const char *name, struct reason *reason);

int session_try_open(struct session *session, const char *state, const char *name, struct reason *reason);
void session_close(struct session *session);

/*
 * For a process that makes one change after the other. session_pause() ends the session: others can write.
 * session_resume() does what session_open() does, but faster: the files of the store and the memory of the filters
 * are still open, if they are the same. It accepts a zeroed struct. Close a session after an error, and before a fork().
 */
void session_pause(struct session *session);
int session_resume(struct session *session, const char *state, const char *name, struct reason *reason);

/* Closes the store, so that others can write. After this call the caller may only read the filters. */
void session_unlock(struct session *session);

/*
 * The filter of the session that runs on an interface in one direction, and its attachment there; NULL: there is none.
 * `interface` may be any of the names that the interface has.
 */
struct kernel_filter *session_filter_on(const struct session *session, const char *interface, bool is_outgoing,
					struct kernel_attachment **attachment);
const struct kernel_attachment *session_attachment_on(const struct session *session, const char *interface,
						      bool is_outgoing);

/*
 * Runs the session's filter on an interface, and with is_outgoing on the packets sent there. What is there already stays.
 * After an error nothing is there that was not there before. 0, and errors, as kernel_attach().
 */
int session_attach(struct session *session, const char *interface, enum kernel_mode mode, bool is_outgoing,
		   struct reason *reason);

/*
 * After session_attach() of a load that is not on trial: the filter stays there if an earlier load, which waits for
 * `confirm`, is undone. No filter of the session need run any more on interfaces that are gone.
 * 0; -EBUSY: this cannot be noted.
 */
int session_keep(const struct session *session, const char *interface, bool is_outgoing, struct reason *reason);

/*
 * One change: all calls between begin and commit. If change_begin() returns 0, call change_commit(), change_abort() or
 * change_end() once. If change_commit() returns 0, the change is durable and active. change_end() gets as `error` what
 * the calls within the change returned. If it is 0, change_end() commits; otherwise it aborts and returns `error`.
 */
int change_begin(struct session *session, struct reason *reason);
/*
 * Called with true before tables and store change, and with false when they are equal again: signals that end the process
 * wait meanwhile, or keys of a rule that is not stored would stay until the next command. NULL in the library.
 */
extern void (*change_hold_signals)(bool is_held);

int change_commit(struct session *session, struct reason *reason);
void change_abort(struct session *session);
int change_end(struct session *session, int error, struct reason *reason);

/* Within a change: switches to new tables where that is possible, so that all takes effect at once. */
void change_at_once(const struct session *session);

/*
 * Within a change: session->owner becomes the list `name`, so change_add() adds rules for it, and change_give_up()
 * gives up its rules. NULL: rules by hand. change_open_list() makes a missing list; with `source`, it notes an import
 * from there (store/store.h); -EUSERS. change_find_list(): -ESRCH: there is no such list. Both set the reason.
 */
int change_open_list(struct session *session, const char *name, const char *source, struct reason *reason);
int change_find_list(struct session *session, const char *name, struct reason *reason);

/* Set the reason that there is no such list, or that there are too many. Both return the error. */
int change_say_no_list(const char *filter, const char *list, struct reason *reason);
int change_say_too_many_lists(struct session *session, struct reason *reason);

/*
 * These are called within a change. After an error, the change must be aborted; but -E2BIG of change_check_kinds() comes
 * before anything has changed. *added and *deleted say what became of the rule (store/store.h).
 *
 * change_add() adds a rule for session->owner. change_set() makes it as session->owner wants it, whatever that owner, or with
 * is_alone anybody, wanted before. change_give_up() removes session->owner from the owners of a rule;
 * the rule is deleted if nobody else wants it. change_del() deletes a rule of any owner. change_put_back() is
 * for the undo: it restores a rule, unless none of its owners exists any more. change_restore(): the rule is as before this
 * change, for all its owners.
 */
int change_add(struct session *session, const struct rule *rule, enum store_added *added, struct reason *reason);
int change_set(struct session *session, const struct rule *rule, bool is_alone, struct reason *reason);
int change_put_back(struct session *session, const struct rule *rule, struct reason *reason);
int change_give_up(struct session *session, const struct rule *rule, enum store_deleted *deleted,
		   struct reason *reason);
int change_del(struct session *session, const struct rule *rule, enum store_deleted *deleted, struct reason *reason);
int change_restore(struct session *session, const struct rule *rule, struct reason *reason);
int change_clear(struct session *session, struct reason *reason);

/*
 * Within a change: whether change_add(), which checks this too, would take all these rules. -E2BIG: they need too many
 * shapes or rates, now or when the pending change is undone. The change may go on.
 */
int change_check_kinds(struct session *session, const struct rule *rules, size_t count, struct reason *reason);

/* Within a change: whether one more key needs a larger table. Deletions of the change are not counted. */
bool change_is_full(const struct session *session);

/* Within a change: deletes the rules that have ended. *count is their number. */
int change_expire(struct session *session, __u64 *count, struct reason *reason);

/*
 * Stores settings (store_set_settings()) and applies them to every running filter, as one change; `confirm_ms`, if not 0,
 * makes it pending.
 * -EBUSY: the policy `no-rule drop` cannot be set now, because the undo of the pending change would remove pass rules.
 */
int change_settings(struct session *session, const struct store_settings *settings, __s64 confirm_ms,
		    struct reason *reason);
int change_set_monitor_only(struct session *session, bool is_on, struct reason *reason);

/*
 * Within a change: makes it pending. If change_confirm() does not come within `timeout_ms` of the end of the
 * change, change_undo() or the next session_open() undoes it. Each step of the change sets the deadline again. So
 * if the process dies in the middle of the change, the filters soon pass every packet: at most `timeout_ms` and the
 * time of one step later. -EBUSY: another change is pending.
 */
int change_set_pending(struct session *session, __s64 timeout_ms, struct reason *reason);

/*
 * change_confirm() confirms the pending change, and filters that wait for it filter again; *was_waiting: the change or
 * a filter was waiting. change_undo() undoes the change; -ENOENT: there is none. It counts in session->undone the rules
 * that it cannot restore. Each of these calls is a whole change.
 */
int change_confirm(struct session *session, bool *was_waiting, struct reason *reason);
int change_undo(struct session *session, struct reason *reason);

/*
 * Loads a new filter with room for at least `capacity` keys (0: the default, or more if the store needs it)
 * and fills it from the store. It is not attached yet. *filter belongs to `session`. -ENOSPC: the store holds
 * more keys; -EINVAL: no table can be that large; -ENOMEM.
 */
int session_load(struct session *session, const struct abi_options *options, __u64 capacity, struct filter **filter,
		 struct reason *reason);

/*
 * Gives every running table room for `capacity` keys, under traffic. Errors as session_load(); -EBUSY: another
 * tool holds the filter.
 */
int session_resize(struct session *session, __u64 capacity, struct reason *reason);

/*
 * Makes sure, under traffic, that every running filter has this tool's program, and a table with these
 * options and room for at least `capacity` keys (0: any size). *renewed counts the filters that it had to
 * replace. Errors as session_resize().
 */
int session_renew(struct session *session, const struct abi_options *options, __u64 capacity, size_t *renewed,
		  struct reason *reason);

/*
 * Finds the rule that decides about the flows in `query`: a matching pass rule, else a matching drop rule, else one with
 * a rate, else a matching monitor rule. Rules that have ended do not match. 0 with *rule; -ENOENT. Reads only the store.
 */
int query_test(struct store *store, const struct rule *query, struct rule *rule);

/*
 * What is asked about: received packets as they are, so that a rule with `state new` matches only if the question says
 * so; received packets, which begin something if they can; or packets that this host sends.
 */
enum query_packets { QUERY_RECEIVED, QUERY_BEGINNING, QUERY_SENT };

/* How rules see these packets: see flow_exchange(). Rules with `state new` match no sent packets. */
struct rule query_looked_up(const struct rule *asked, enum query_packets packets);

/* query_test() of query_looked_up(), among the rules of one owner, a number. */
int query_test_owned(struct store *store, unsigned int owner, const struct rule *asked, enum query_packets packets,
		     struct rule *rule);

/*
 * What becomes of all packets of these flows: query_test(), or else the policy `no-rule`, of later fragments the policy
 * `later-fragment`. Unless `asked` says so, later fragments do not count for the policies.
 */
enum query_decision {
	QUERY_NO_RULE,           /* they pass: no rule matches them all */
	QUERY_MONITORED,         /* they pass: only a monitor rule matches */
	QUERY_LIMITED,           /* they pass up to a rate */
	QUERY_PASSED,            /* by a pass rule */
	QUERY_PARTLY,            /* they are blocked, but a part passes */
	QUERY_BLOCKED,           /* by a drop rule */
	QUERY_BLOCKED_BY_POLICY, /* `no-rule drop`; perhaps a monitor rule matches, too */
	QUERY_BLOCKED_LATER,     /* the same by `later-fragment drop` */
	QUERY_DECISIONS,
};

/* "blocked", ... */
extern const char *const query_decision_words[QUERY_DECISIONS];

/* Whether a pass rule lets through all that the drop rule would block. */
bool query_is_passed(struct store *store, const struct rule *drop, struct rule *pass);

struct query_finding {
	enum query_decision decision;
	bool is_listed;   /* query_test() has found `rule` */
	bool has_part;    /* `part` of the packets fares otherwise */
	struct rule rule;
	struct rule part; /* as `asked` describes packets: that is, sent ones as they are sent */
	struct rule part_rule; /* decides about the part; all 0: none does */
};

/* With QUERY_PARTLY: the part that passes. 0; -errno. Reads only rules that share addresses with the question. */
int query_decide(struct store *store, const struct rule *asked, enum query_packets packets,
		 struct query_finding *finding);

/*
 * After query_decide() found no rule that blocks or passes all: in `finding`, a part that a rule blocks. has_part: there
 * is one; pass rules may let some of it through. 0; -errno.
 */
int query_find_part(struct store *store, const struct rule *asked, enum query_packets packets,
		    struct query_finding *finding);

/*
 * Fails with -ECANCELED if a rule or policy blocks a flow of session->guard, or will do so when a pass rule ends.
 * Packets to this host do not count if a permanent rule lets somebody in: see guard_lets_in(), unless only a list blocks them.
 * Within a change, a flow counts only if it is blocked sooner than by the rules from before the change. It also checks
 * what an undo of the pending change would leave, because the undo may remove pass rules.
 */
int change_check_guard(struct session *session, struct reason *reason);

/*
 * Finds a pass rule that lets everybody, or half of all addresses, reach an address of this host, by TCP, UDP or any protocol:
 * drop rules of other sources have no effect there. 0; -ENOENT; another -errno.
 */
#define CHANGE_VOID /* the rule */ \
	"'%s' passes everybody's packets to this host: drop rules and lists have no effect on them; pass one source, or one port"
int change_find_void(struct store *store, const struct guard *guard, struct rule *rule);

/*
 * What drops packets of these flows, now or when the pass rules that match them have ended: a drop rule that ends later,
 * or the policy `no-rule drop`, or nothing. `is_undone`: as if the pending change were undone. 0; -errno.
 */
#define QUERY_NEVER_MS INT64_MAX

struct query_block {
	enum query_blocker { QUERY_NOTHING, QUERY_RULE, QUERY_POLICY } by;
	struct rule rule; /* QUERY_RULE: one that a list added and not the operator, if there is one */
	__s64 in_ms;      /* until the last pass rule ends; 0: there is none; QUERY_NEVER_MS: nothing drops them */
	__u64 rate;       /* of a rule that limits them; 0: none does, or a permanent pass rule comes first */
};

int query_blocks(struct store *store, const struct rule *query, bool is_undone, struct query_block *block);

/* *has_rule: the running filter has every key of a stored rule, so that the rule's packets match. 0; -errno. */
int query_has_rule(const struct kernel_filter *kernel, struct store *store, const struct rule *rule, bool *has_rule);

/* *matches: the running filter finds an entry for these flows, looking it up as the packet path does. 0; -ENOMEM. */
int query_matches(const struct kernel_filter *kernel, const struct rule *query, bool *matches);

enum sample_cause {
	SAMPLE_RULE,         /* a stored rule */
	SAMPLE_UNKNOWN_RULE, /* a rule that is deleted or has ended, or a false positive of a compact table */
	SAMPLE_POLICY,       /* the policy for the sample's outcome */
};

struct sample_view {
	bool has_flow;
	struct rule flow; /* the flow of the packet, if has_flow */
	/*
	 * What the filter looked up: the flow with its details, and with `state new` if the packet may begin something.
	 * Of a sent packet, source and destination are exchanged.
	 */
	struct rule packet;
	bool is_sent;
	enum sample_cause cause;
	struct rule rule; /* with SAMPLE_RULE */
};

/*
 * Finds the flow of a sampled packet by the captured bytes of the frame, and the rule or policy that dropped it by the
 * rules that are stored now. `store` may be NULL.
 */
struct sample_view sample_view(const struct abi_sample *sample, struct store *store);

/* The share of slots in use, 0 to 1. */
double query_fill(const struct kernel_filter *kernel);

/* The mean number of look-ups for a packet that no rule matches. The mean is over all source addresses of `family`. */
double query_mean_probes(const struct kernel_filter *kernel, enum flow_family family);

/* The probability that a packet of `family` counts as a match although no rule matches it. */
double query_false_positive_rate(const struct kernel_filter *kernel, enum flow_family family);

/* ---- equal.c ---- */

/*
 * What becomes of the rules of an owner. A stored rule that has ended counts as absent: if it is wanted it is added again.
 * If not, it is deleted without being counted, because compact tables still hold it. A rule with several owners keeps its
 * comment and the end that other owners want.
 */
struct rule_diff {
	struct rule_set obsolete; /* to delete or give up first */
	struct rule_set passes;   /* the owner's pass rules that go, or end, for lockout.c */
	__u64 added, updated, kept, removed;
	__u64 left; /* given up by the owner, but still wanted by others */
};

#define LEFT_OUT_PREFIX_MIN 7 /* lists have fc00::/7 and 10.0.0.0/8, which hold addresses of hosts */

struct change_left_out {
	__u64 count;
	struct reason why; /* the first rule, and what it would block */
	struct guard_advice advice;
};

/* How session->owner gets the rules of a set. The caller fills in the first part. */
struct change_equal {
	struct rule_set *wanted; /* is sorted; afterwards only what was added or updated is left */
	bool is_entries;         /* it has only what changes; a rule with a negative timeout is given up */
	bool is_added;           /* of entries: the owner keeps what it has of a rule: change_add() */
	bool is_alone;           /* there are no other rules, of any owner */
	bool is_at_once;         /* also a few rules: see change_at_once() */
	bool leaves_blockers; /* what change_commit() would refuse is left out: a drop rule, or the end of a pass rule */
	bool leaves_roomless;    /* so are rules for which change_check_kinds() has no room; else these are errors */
	unsigned int prefix_min; /* a blocker without a prefix of so many bits is not left out: the change is refused */
	__s64 near_ms;           /* ends that differ by at most this are the same */
	/* Each may be NULL. go_on() comes before each rule that changes; an error ends the change. */
	int (*go_on)(size_t done, size_t total, void *context, struct reason *reason);
	void (*leave)(void *context, const struct rule *rule, const struct reason *why); /* as in `wanted` */
	void *context;

	struct rule_diff diff; /* what was done; `added` is without what was left out */
	bool is_compared;      /* after an error, too: diff.obsolete and `wanted` are whole */
	struct change_left_out left_out;
	bool *is_back; /* by the number in `wanted`: the guard refuses the rule, and it is as before */
};

/*
 * Within a change: makes what session->owner has equal to the set, or changes it by entries, and keeps that from the undo
 * of a pending change. One pass, however much is left out. 0; -errno: the change must be aborted. Call change_equal_close()
 * in any case; it does not free `wanted`.
 */
int change_make_equal(struct session *session, struct change_equal *equal, struct reason *reason);
void change_equal_close(struct change_equal *equal);

/* ---- series.c ---- */

/*
 * Makes entries `first` to before `end`, in order, with few changes, so that only those at fault fail. b bad ones of n cost
 * at most some b * log(n) changes.
 */
struct change_series {
	void *context;
	/*
	 * Makes one change. It may make *end smaller, but not as small as `first`. After an error, *at is the entry at
	 * which the change stopped; it stays *end if that is not known. 0; -errno.
	 */
	int (*make)(void *context, size_t first, size_t *end, size_t *at, struct reason *reason);
	bool (*is_at_fault)(void *context, int error); /* an entry may be; else no smaller change is tried. NULL: yes */
	void (*fail)(void *context, size_t first, size_t end, int error, const struct reason *reason);
};

void change_series(const struct change_series *series, size_t first, size_t end);

/* ---- confirm_watchdog ---- */

/*
 * A separate process that waits for `confirm`, and undoes the change or load if it does not come in time. It
 * survives the end of its parent, the session and the terminal. If it dies itself, the filter passes
 * everything from the deadline on, and the next command undoes a change of rules. It reports failures to
 * syslog.
 */

#define WATCHDOG_MS_MAX (24 * 3600 * 1000LL) /* longest time to confirm */

/* The change of rules, or the load, that it undoes. */
struct watchdog {
	const char *state, *name;             /* of the store; `state` may be NULL */
	__s64 deadline_ms;                    /* from watchdog_deadline() */
	__u64 pending_id;                     /* of the change, from store_pending(); 0: a load */
	__u32 confirm_by;                     /* for a load: as in the filter's config */
	bool sets_monitor_only;               /* for a load: it has set monitor-only, which was off */
	struct kernel_attachment *attachment; /* for a load: what it attached */
	size_t attachments;
};

/* The deadline that is `left_ms` from now, on CLOCK_BOOTTIME; and the time left until a deadline. */
__s64 watchdog_deadline(__s64 left_ms);
__s64 watchdog_left(__s64 deadline_ms);

/* Fills in the pending change of the store, if there is one. */
void watchdog_take_pending(struct watchdog *watchdog, struct store *store);

/*
 * session_close() calls this last if a change from before may have no process that waits for
 * `confirm`: after a reboot there is none, and one of an older version can undo nothing when this
 * version has taken the filter over. A second process does no harm. NULL in the library.
 */
extern void (*watchdog_wanted)(const struct watchdog *watchdog);

/* Makes this process survive a closed terminal or pipe. Call it before watchdog_start(). */
void watchdog_ignore_hangup(void);

/*
 * Starts the process. Close store and filters before: it must not hold them while it waits. 0; -errno with
 * the reason.
 */
int watchdog_start(const struct watchdog *watchdog, struct reason *reason);

#endif
