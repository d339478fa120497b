# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What packets load and what writers store, structure by structure: see memory_order.py.

A load is: its name, its place, the loads that its address depends on, and its line. {name} in a place is what the load of
that name has seen. A change is: its name, the memory before, and its steps: "place=value" is a store-release, "~place=value"
a store that may be visible earlier or later, "grace" a grace period. Lines of stores are below the changes.
"""
from collections import namedtuple

Structure = namedtuple("Structure", "name judge loads changes stores")


def by_policy(rule, policy):
    return policy if rule == "none" else rule


# ---- the exchange of tables: all that a table has, is at an address that depends on `active` ----
TABLES = Structure("tables", lambda see: by_policy(see("active") and see("rule"), see("policy")), [
    ("active", "active", "", "include/abi.h: &config->table[READ_ONCE(config->active) % ABI_TABLES]"),
    ("rule", "table{active}.rule", "active", "bpf/lookup_key.h: READ_ONCE(table->first_bucket);"),
    ("policy", "table{active}.policy", "active", "include/abi.h: READ_ONCE(table->drops) >> outcome & 1"),
], [
    # The old rule drops nothing, the new policy neither; the second table has rests of older rules.
    ("exchange", "active=0 table0.rule=pass table0.policy=drop table1.rule=drop table1.policy=drop",
     "~table1.rule=none", "~table1.policy=pass", "active=1", "grace", "~table0.rule=drop"),
], [
    "user/core/filter/new_table.c: __atomic_store_n(&config->active, config->active + 1, __ATOMIC_RELEASE);",
    "user/core/filter/new_table.c: int error = wait_for_old_table(filter->kernel.config);",
])


# ---- the two lists of shapes, and hints ----
def by_shapes(see):
    """A packet that begins nothing, beside a drop rule with `state new`, which does not match it, and other rules."""
    flip = see("flip")
    hint = see("hint") if see("reads") == "yes" else "all"
    has_new_only, shapes = see("new_only") == "yes", see("shapes")
    if "shortcut" in hint and not has_new_only:
        shapes, otherwise = "p" if "p" in shapes else "", "drop"
    else:
        otherwise = "pass"
    if hint != "all":
        shapes = [shape for shape in shapes if shape in hint.split("+")]
    if "p" in shapes and see("key_p") == "in":
        return "pass"
    return "drop" if any(see("key_" + shape) == "in" for shape in shapes if shape in "de") else otherwise


HINTS = Structure("shapes and hints", by_shapes, [
    ("flip", "flip", "", "include/abi.h: READ_ONCE(table->shapes_active[family]) & 1"),
    ("reads", "list{flip}.reads", "flip", "bpf/try_shapes.h: reads_hints = READ_ONCE(list->reads_hints)"),
    ("shapes", "list{flip}.shapes", "flip", "bpf/try_shapes.h: candidates = READ_ONCE(list->all)"),
    ("new_only", "list{flip}.new_only", "flip", "bpf/try_shapes.h: (!READ_ONCE(list->new_only) ||"),
    ("hint", "hint", "reads", "bpf/try_shapes.h: hint = maps_hint(READ_ONCE(table->first_hint[family]) + after"),
    # No look-up waits for the one before, nor for the hint: where the hint has all bits, the first shape is known.
    ("key_p", "key_p", "", "bpf/try_shapes.h: answer = lookup_key(search->table, hash, &input)"),
    ("key_d", "key_d", "", "bpf/try_shapes.h: answer = lookup_once(search->table, hash, &input)"),
    ("key_e", "key_e", "", "bpf/try_shapes.h: answer = lookup_once(search->table, hash, &input)"),
], [
    ("a pass rule and a drop rule come", "flip=0 list0.reads=yes list0.shapes=pd list0.new_only=no "
     "hint=- key_p=out key_d=out", "~hint=p", "~key_p=in", "grace", "~hint=p+d", "~key_d=in",
     "~hint=p+d+shortcut"),
    ("both go", "flip=0 list0.reads=yes list0.shapes=pd list0.new_only=no "
     "hint=p+d+shortcut key_p=in key_d=in", "~hint=p+d", "~key_d=out", "grace", "~key_p=out"),
    ("a drop rule takes the place of another", "flip=0 list0.reads=yes list0.shapes=de list0.new_only=no hint=d+shortcut "
     "key_d=in key_e=out", "~hint=d+e+shortcut", "~key_e=in", "grace", "~hint=d+e", "~key_d=out"),
    ("a rule with `state new` goes", "flip=0 list0.reads=yes list0.shapes=n list0.new_only=yes list1.reads=yes "
     "list1.shapes=n list1.new_only=yes hint=n+shortcut", "~hint=n", "~list1.shapes=-", "~list1.new_only=no", "flip=1"),
    ("a shape comes beside that of a rule with `state new`", "flip=0 list0.reads=yes list0.shapes=n list0.new_only=yes "
     "list1.reads=yes list1.shapes=- list1.new_only=no hint=n+shortcut", "~list1.shapes=nq", "~list1.new_only=yes",
     "flip=1"),
    ("lists that are filled again", "flip=0 list0.reads=no list0.shapes=pd list0.new_only=no list1.shapes=d "
     "list1.reads=no list1.new_only=no hint=p+d key_p=in key_d=in", "~list1.shapes=pd", "flip=1", "grace",
     "~list0.shapes=d"),
], [
    "user/core/filter/publish_shapes.c: __atomic_store_n(&table->shapes_active[family], !active, __ATOMIC_RELEASE);",
    "user/core/filter/publish_shapes.c: return is_changed ? filter_wait_for_packets(filter, reason) : 0;",
    "user/core/filter/one_key.c: hints_mark(filter_hints(filter), key, hint);",
    "user/core/filter/hints.c: __atomic_fetch_or(hint, bits, __ATOMIC_RELEASE);",
    "user/core/filter/hints.c: __atomic_fetch_and(hint, ABI_HINT_ALL, __ATOMIC_RELEASE);",
    "user/core/change/entries.c: if (order[step] == RULE_DROP && any_comes(keys, RULE_PASS) && any_comes(keys, RULE_DROP))",
    "user/core/change/entries.c: error = must_wait || (has_dropped && action == RULE_PASS) ?",
])


# ---- rates: a place leads a key to its meter. Lines that packets read stay as they are; one store puts others in use. ----
def by_rate(see):
    see("lines")
    if see("hash") != "K":
        return "pass"  # a key without a place matches nothing
    see("number")
    return "drop" if see("meter") == "empty" else "pass"


RATES = Structure("rates", by_rate, [
    ("lines", "lines", "", "bpf/try_shapes.h: READ_ONCE(search->table->first_rate_line)"),
    ("hash", "hash{lines}", "lines", "bpf/limit_rate.h: if (READ_ONCE(line->hash[place]) != hash)"),
    ("number", "number{lines}", "lines", "bpf/limit_rate.h: return READ_ONCE(line->number[place]);"),
    ("meter", "meter{number}", "number", "bpf/limit_rate.h: rate = &rates->rate[number];"),
], [
    ("a key gets a place", "lines=0 hash0=H number0=1 hash1=J number1=1 meter1=empty meter2=empty",
     "~meter2=full", "~hash1=K", "~number1=2", "lines=1"),
    ("a key keeps its meter", "lines=0 hash0=K number0=1 hash1=H number1=2 meter1=empty meter2=full",
     "~hash1=K", "~number1=1", "lines=1"),
    ("lines are filled again", "lines=0 hash0=K number0=1 hash1=K number1=1 meter1=full meter2=empty",
     "lines=1", "grace", "~meter2=full", "~number0=2", "lines=0"),
], [
    "user/core/filter/rates.c: const int error = kernel->attachments_count ? grace_wait() : 0;",
    "user/core/filter/rates.c: line[i] = plan->line[i];",
    "user/core/filter/rates.c: __atomic_store_n(&table->first_rate_line, idle, __ATOMIC_RELEASE);",
])


# ---- a meter: processors race for its two words. Any order of loads shows only what they see in order, too. ----
def by_meter(see):
    """abi_rate_used(), of a meter of 2^30 tokens a jiffy, that was idle for so long that `spent` tells nothing."""
    refill, burst, debt, now = 1 << 30, 5 << 20, 1 << 50, 1 << 36
    used = (int(see("spent")) + burst - now * refill) % (1 << 64)
    pause = now - int(see("used_at"))
    return str(0 if used > burst + debt or (pause >> 12) * (refill >> 20) >> 30 else used)


METERS = Structure("meters", by_meter, [
    ("spent", "spent", "", "include/rate.h: abi_rate_used(rate, READ_ONCE(rate->spent), now) < rate->burst"),
    ("used_at", "used_at", "", "include/rate.h: used_at = READ_ONCE(rate->used_at);"),
], [
    ("a packet after a pause", "spent=0 used_at=0", f"~spent={1 << 66}", f"~used_at={1 << 36}"),
    ("two packets", f"spent={(1 << 66) - (1 << 20)} used_at={(1 << 36) - 1}", f"~spent={1 << 66}",
     f"~used_at={1 << 36}", f"~spent={(1 << 66) + (1 << 20)}"),
], [
    "include/rate.h: __sync_val_compare_and_swap(&rate->spent, spent, full + grant) != spent)",
    "include/rate.h: *(volatile __u64 *)&rate->used_at = now;",
])


# ---- ends of records: a record is one word, and the clock one place, so later look-ups see no earlier time ----
def by_ends(see):
    has = {}
    for key in ("p", "d"):
        end = int(see("record_" + key))
        has[key] = not end or int(see("tick_" + key)) - int(see("epoch_" + key)) < end
    return "pass" if has["p"] else "drop" if has["d"] else "pass"


ENDS = Structure("ends of records", by_ends, [
    ("record_p", "record_p", "", "bpf/lookup_key.h: record = READ_ONCE(*at);"),
    ("tick_p", "jiffies", "", "bpf/lookup_key.h: maps_tick() - READ_ONCE(table->epoch) >= end"),
    ("epoch_p", "epoch", "", "bpf/lookup_key.h: maps_tick() - READ_ONCE(table->epoch) >= end"),
    ("record_d", "record_d", "", "bpf/lookup_key.h: record = READ_ONCE(*at);"),
    ("tick_d", "jiffies", "", "bpf/lookup_key.h: maps_tick() - READ_ONCE(table->epoch) >= end"),
    ("epoch_d", "epoch", "", "bpf/lookup_key.h: maps_tick() - READ_ONCE(table->epoch) >= end"),
], [
    ("a pass rule and a drop rule end at one time", "epoch=0 jiffies=9 record_p=10 record_d=10", "~jiffies=10", "~jiffies=11"),
    ("both end later", "epoch=0 jiffies=9 record_p=10 record_d=10", "~record_p=12", "grace", "~record_d=12", "~jiffies=10"),
    ("old entries end at once", "epoch=200 jiffies=209 record_p=0 record_d=0", "~record_d=99", "~record_p=99", "grace",
     "epoch=100", "grace", "~record_p=1", "~record_d=1"),
    ("meanwhile another one stays", "epoch=200 jiffies=209 record_p=1 record_d=20", "~record_d=120", "grace", "epoch=100"),
], [
    "user/core/table/table.c: abi_record(key->tag, end), __ATOMIC_RELEASE);",
    "user/core/filter/fill_in_place.c: __atomic_store_n(&in_config->epoch, in_config->epoch - LATER, __ATOMIC_RELEASE);",
])


# ---- how the filter runs ----
def by_run(see):
    if see("run") != "set_up":
        run = see("run")
        if "set_up" not in run or "panic" in run or ("trial" in run and see("deadline") == "past"):
            return "pass"
    if by_policy(see("rule"), see("policy")) == "pass" or "monitor" in see("monitor"):
        return "pass"
    return "drop"


RUN = Structure("run", by_run, [
    ("run", "run", "", "bpf/verdict.h: run = READ_ONCE(config->run);"),
    ("deadline", "confirm_by", "run", "bpf/verdict.h: maps_tick() >= READ_ONCE(after->confirm_by)"),
    ("rule", "rule", "run", "bpf/verdict.h: table = abi_active((const void *)config + after);"),
    ("policy", "policy", "run", "bpf/verdict.h: table = abi_active((const void *)config + after);"),
    ("monitor", "run", "", "bpf/verdict.h: READ_ONCE(config->run) & ABI_RUN_MONITOR ?"),
], [
    ("a trial begins", "run=set_up confirm_by=past rule=drop policy=pass", "~confirm_by=later", "run=set_up+trial"),
    ("a rule is undone after its deadline", "run=set_up+trial confirm_by=past rule=drop policy=pass", "~rule=none",
     "run=set_up"),
    ("a policy is undone after its deadline", "run=set_up+trial confirm_by=past rule=none policy=drop", "~policy=pass",
     "run=set_up"),
    ("the filter is set up", "run=- confirm_by=past rule=none policy=pass", "~policy=drop", "~rule=pass", "run=set_up"),
    ("a panic ends", "run=set_up+panic confirm_by=past rule=drop policy=pass", "~rule=none", "run=set_up"),
    ("monitor-only begins, and a rule comes", "run=set_up rule=none policy=pass", "~run=set_up+monitor", "grace",
     "~rule=drop"),
    ("a rule goes, and monitor-only ends", "run=set_up+monitor confirm_by=past rule=drop policy=pass", "~rule=none",
     "grace", "~run=set_up"),
    ("a pass rule comes, and a policy that drops", "run=set_up rule=none policy=pass", "~rule=pass", "grace",
     "~policy=drop"),
    ("a policy that passes comes, and a pass rule goes", "run=set_up rule=pass policy=drop", "~policy=pass", "grace",
     "~rule=none"),
], [
    "user/core/filter/run_state.c: __atomic_store_n(&config->confirm_by, tick, __ATOMIC_RELEASE);",
    "user/core/filter/run_state.c: __atomic_fetch_or(&config->run, bit, __ATOMIC_RELEASE);",
    "user/core/filter/run_state.c: return ABI_LOADS_IN_ORDER ? 0 : filter_wait_for_packets(filter, reason);",
    "user/core/filter/run_state.c: if (!error && config->run & ABI_RUN_MONITOR && !settings.is_monitor_only)",
    "user/core/filter/update_from_store.c: __atomic_fetch_or(&config->run, ABI_RUN_SET_UP, __ATOMIC_RELEASE);",
])


# ---- the two parts of a table: a drop rule for an address moves to the other one when its end changes ----
PARTS = Structure("parts", lambda see: "drop" if "in" in (see("address"), see("record")) else "pass", [
    ("address", "address", "", "bpf/lookup_key.h: answer = lookup_compact(table, hash);"),
    ("record", "record", "", "bpf/lookup_key.h: return lookup_exact(table, hash, input);"),
], [
    ("a rule gets an end", "address=in record=out", "~record=in", "grace", "~address=out"),
    ("a rule loses its end", "address=out record=in", "~address=in", "grace", "~record=out"),
], [
    "user/core/filter/one_key.c: error = filter_insert(filter, key, tick);",
    "user/core/filter/one_key.c: int error = is_new ? filter_wait_for_packets(filter, reason) : 0;",
])


# ---- the two buckets of a key that moves. The engine's own stores are the changes: see store_order.c ----
def by_buckets(see):
    """One try to find K. If the sequence has changed, there is another one."""
    sequence = see("sequence")
    hits = [i for i in ("0", "1") if see("bucket" + i) == "1"]  # all loads of buckets come first
    if see("exact") == "exact":
        hits = [i for i in hits if see("record" + i) == "K"]
    return "found" if hits or see("again") != sequence else "missed"


BUCKETS = Structure("buckets", by_buckets, [
    ("exact", "exact", "", "bpf/lookup_key.h: if (lookup_has_tag(input))"),
    ("sequence", "sequence", "", "bpf/lookup_key.h: view->sequence = READ_ONCE(table->sequence);"),
    ("bucket0", "bucket0", "sequence", "bpf/lookup_key.h: view->first = lookup_read(first + after, pair.first, format);"),
    ("bucket1", "bucket1", "sequence", "bpf/lookup_key.h: view->second = lookup_read(second + after, pair.second, format);"),
    ("record0", "record0", "bucket0", "bpf/lookup_key.h: record = READ_ONCE(*at);"),
    ("record1", "record1", "bucket1", "bpf/lookup_key.h: record = READ_ONCE(*at);"),
    ("again", "sequence", "bucket0 bucket1 record0 record1", "bpf/lookup_key.h: READ_ONCE(again->sequence) =="),
], [], [])

STRUCTURES = [TABLES, HINTS, RATES, METERS, ENDS, RUN, PARTS]
