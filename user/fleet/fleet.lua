#!lua name=xdp_cuckoo
-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
--
-- The broker's half of a fleet: see xdp-cuckoo-fleet(7). `xdp-cuckoo fleet init` loads this file with FUNCTION LOAD.
-- It needs Redis 7.0 and no later command.
--
-- A list is a log and a state, and a function here always changes both together:
--
--   L:LIST:meta   hash    run, epoch, seq: the last entry of the log is EPOCH-SEQ, written by the master RUN
--                         rules, buckets: their numbers; p:PUBLISHER: the last counter of each publisher
--   L:LIST:log    stream  entries EPOCH-SEQ; EPOCH-0 has the field "base", all others the field "rules";
--                         "report": hosts report at once that they have it
--   L:LIST:b:N    hash    bucket N of the state: rule -> END [RATE] [COMMENT]; END is in ms, 0: never
--   L:LIST:ends   zset    rules with an end, so that the function finds those that have ended
--   L:LIST:hosts, L:LIST:refused  zset  hosts write these: see report.h
--
-- A line of "rules" is `+ END RULE` or `- RULE`. RULE is the tool's canonical text without a timeout. Its comment is
-- no part of its name in the state, nor is its rate: `src A rate 9/s` has the name `src A rate`, and the value `END 9/s`.
-- Version 5 kept each rate as a rule of its own. So the tool publishes rates by xc_publish_rates, which version 5 lacks.
--
-- Epochs. Replication is asynchronous: after a failover the new master may lack the last entries of the old one, and
-- its next entries would get the same ids. So a master that finds another master's RUN in the meta starts a new
-- epoch, which is the time in ms. Its entry EPOCH-0 says after which entry the list goes on ("base"). A follower
-- that has more than the base has seen entries that are gone.
--
-- A publisher may also write the keys of its list without these functions, so they may hold anything. An error must not
-- leave the state changed and the log as it was: publish first reads what it needs, then writes the log, then the state.

local VERSION = 9      -- of this file; fleet init replaces an older one
local FORMAT = 1       -- of keys and entries; a follower refuses a larger one
local BUCKET_RULES = 100 -- on average; Redis keeps hashes of up to 128 or 512 fields in compact form
local ENTRY_LINES = 1000
local ENTRY_BYTES = 65536
local LINE_BYTES = 599 -- LOG_LINE_BYTES of fleet.h, without the final 0
local PURGED = 200     -- ended rules that one call removes
local RESERVED = 1000000 -- buckets at most that a publisher can ask for
local BUCKETS_MAX = 4194304 -- as in snapshot.c: a follower reads no more
local EPOCH_MAX = 8796093022207 -- FLEET_EPOCH_MAX of fleet.h
local NUMBER_MAX = 9007199254740991 -- larger numbers are not exact here

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function integer(number)
  return string.format('%.0f', number)
end

-- The server's run id changes with each start, and each replica has its own. The replication id changes each time that
-- a server becomes the master: one that was a replica meanwhile has lost what its replicas did not have.
local function run_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') .. ':' ..
         string.match(redis.call('INFO', 'replication'), 'master_replid:(%x+)')
end

-- ---- the state: buckets by linear hashing, so that growth moves few rules at a time ----

local function hash_of(name)
  return tonumber(string.sub(redis.sha1hex(name), 1, 8), 16)
end

-- The largest power of 2 that is at most `buckets`.
local function power_below(buckets)
  local power = 1
  while power * 2 <= buckets do
    power = power * 2
  end
  return power
end

local function bucket_of(list, hash)
  local bucket = hash % (2 * list.power)
  if bucket >= list.buckets then
    bucket = hash % list.power
  end
  return list.prefix .. 'b:' .. integer(bucket)
end

-- Adds one bucket, and moves to it its share of the rules of one other bucket.
local function split(list)
  local from = list.prefix .. 'b:' .. integer(list.buckets - list.power)
  local to = list.prefix .. 'b:' .. integer(list.buckets)
  local pairs_of = redis.call('HGETALL', from)
  local gone, moved = {}, {}
  for i = 1, #pairs_of, 2 do
    if hash_of(pairs_of[i]) % (2 * list.power) == list.buckets then
      gone[#gone + 1] = pairs_of[i]
      moved[#moved + 1] = pairs_of[i]
      moved[#moved + 1] = pairs_of[i + 1]
    end
  end
  if #gone > 0 then
    redis.call('HSET', to, unpack(moved))
    redis.call('HDEL', from, unpack(gone))
  end
  list.buckets = list.buckets + 1
  if list.buckets == 2 * list.power then
    list.power = list.buckets
  end
end

local function take(list, name)
  redis.call('ZREM', list.prefix .. 'ends', name)
  list.rules = list.rules - redis.call('HDEL', bucket_of(list, hash_of(name)), name)
end

local function put(list, line)
  redis.call('HSET', bucket_of(list, line.hash), line.name, line.value)
  if line.ends ~= '0' then
    redis.call('ZADD', list.prefix .. 'ends', line.ends, line.name)
  elseif line.before then
    redis.call('ZREM', list.prefix .. 'ends', line.name)
  end
  if not line.before then
    list.rules = list.rules + 1
    if list.rules > list.buckets * BUCKET_RULES and list.buckets < BUCKETS_MAX then
      split(list)
    end
  end
end

-- Whether the line changes the state. `values` has what earlier lines make of their rules; false: they delete it.
local function changes(list, line, values)
  line.hash = hash_of(line.name)
  line.before = values[line.name]
  if line.before == nil then
    line.before = redis.call('HGET', bucket_of(list, line.hash), line.name)
  end
  line.value = line.op == '+' and line.ends .. line.rate .. line.comment
  values[line.name] = line.value
  return line.value ~= line.before
end

-- Followers end rules by themselves, so this writes no entry. `ended`: members of "ends". The end in the state decides,
-- because a publisher may write any of them there.
local function purge(list, ended, now)
  for _, name in ipairs(ended) do
    local value = redis.pcall('HGET', bucket_of(list, hash_of(name)), name)
    local ends = type(value) == 'string' and tonumber(string.match(value, '^%d+')) or 0
    if ends > now then
      redis.call('ZADD', list.prefix .. 'ends', integer(ends), name)
    elseif ends > 0 then
      take(list, name)
    else
      redis.call('ZREM', list.prefix .. 'ends', name)
    end
  end
end

-- ---- lines ----

-- A line as op, name, end, and rate and comment (each with the space before it). nil: it is none.
local function read_line(line)
  local op, ends, rule = '+', string.match(line, '^[+] (%d+) (.+)$')
  if not ends then
    op, rule = '-', string.match(line, '^- (.+)$')
  end
  if not rule or #line > LINE_BYTES or string.find(line, '[%z\1-\31]') or
     (ends and (#ends > 15 or string.find(ends, '^0.'))) then
    return nil
  end
  local at, comment, rate = string.find(rule, ' comment "', 1, true), '', ''
  if at and string.find(rule, '"$', at + 10) then
    rule, comment = string.sub(rule, 1, at - 1), string.sub(rule, at)
  end
  rule = string.gsub(rule, ' rate( %S+)(.*)$', function(number, rest)
    rate = number
    return rest .. ' rate'
  end)
  return { op = op, name = rule, rate = rate, comment = comment, ends = ends, text = line }
end

-- All lines are read before anything is changed: an error later would leave half of them done.
local function read_lines(args, first)
  local lines, bytes = {}, 0
  for i = first, #args do
    local line = read_line(args[i])
    if not line then
      return nil, (#args[i] > LINE_BYTES and 'XCLINE a line has at most ' .. LINE_BYTES .. ' bytes: ' or
                   'XCLINE not a line of a fleet: ') .. string.gsub(string.sub(args[i], 1, 200), '[%z\1-\31]', '?')
    end
    bytes = bytes + #args[i] + 1
    lines[#lines + 1] = line
  end
  if #lines > ENTRY_LINES or bytes > ENTRY_BYTES then
    return nil, 'XCLARGE an entry has at most 1000 lines and 64 KB'
  end
  return lines
end

-- ---- the meta and the log ----

-- nil: the field is no whole number from 0 to `most`.
local function number_of(field, missing, most)
  local number = tonumber(field or missing)
  return number and number >= 0 and number <= most and number == math.floor(number) and number or nil
end

-- Begins a new epoch after the entry `last`. A host's place in the sorted sets is EPOCH * 1024 + SEQ: it must grow.
-- Returns the epoch; nil and the error.
local function begin_epoch(log, epoch, seq, last)
  epoch = math.max(epoch + math.floor(seq / 1024), now_ms()) + 1
  local added = epoch > EPOCH_MAX and redis.error_reply('XCLOST its epochs are used up; delete the list') or
                redis.pcall('XADD', log, integer(epoch) .. '-0', 'base', last)
  if type(added) ~= 'table' or not added.err then
    return epoch
  end
  if string.find(added.err, 'equal or smaller', 1, true) then
    return nil, redis.error_reply('XCLOG an entry of the key ' .. log .. ' has too large an id; delete the key, ' ..
                                  'then publish again')
  end
  return nil, added
end

-- ---- the functions ----

-- KEYS: the fleet's meta. ARGS: a new random id; the length of logs, in entries. Returns the id and the version.
local function init(keys, args)
  redis.call('HSETNX', keys[1], 'id', args[1])
  redis.call('HSETNX', keys[1], 'panic', 'off')
  redis.call('HSETNX', keys[1], 'log', args[2])
  redis.call('HSET', keys[1], 'format', integer(FORMAT))
  return { redis.call('HGET', keys[1], 'id'), VERSION }
end

-- KEYS: the list's meta and log; a third one, if the publisher waits for the reports of hosts. FCALL needs the right to
-- write each of them, so the fleet's meta is none: a publisher may only read that.
-- ARGS: the publisher; its counter; the last entry, or '' where it does not matter; then lines.
-- Returns an answer, the last entry, and how many rules have changed and there are. Answers:
--   done   the lines that change something are in state and log
--   seen   the publisher has sent this counter before: nothing is changed
--   moved  the last entry is another: nothing is changed
local function publish(keys, args)
  local meta, log = keys[1], keys[2]
  local publisher, counter, expected = args[1], tonumber(args[2]), args[3]
  local fleet = redis.call('HMGET', string.match(meta, '^xc:[^:]+:') .. 'meta', 'id', 'log')
  if not fleet[1] then
    return redis.error_reply('XCNOFLEET there is no such fleet here; make it: xdp-cuckoo fleet init')
  end
  local lines, refusal = read_lines(args, 4)
  if not lines then
    return redis.error_reply(refusal)
  end
  local head = redis.call('HMGET', meta, 'run', 'epoch', 'seq', 'rules', 'buckets', 'p:' .. publisher)
  local run, epoch, seq = head[1], number_of(head[2], 0, EPOCH_MAX), number_of(head[3], 0, NUMBER_MAX)
  local list = { prefix = string.sub(meta, 1, -5), rules = number_of(head[4], 0, NUMBER_MAX),
                 buckets = number_of(head[5], 1, BUCKETS_MAX) }
  if not (epoch and seq and list.rules and list.buckets and list.buckets > 0) then
    return redis.error_reply('XCLOST the key ' .. meta .. ' has numbers that no list has; delete all keys ' ..
                             list.prefix .. '*, then publish the whole list')
  end
  local last = integer(epoch) .. '-' .. integer(seq)
  if (tonumber(head[6] or 0) or 0) >= counter then
    -- A write, so that WAIT waits until replicas have the first one too.
    redis.call('HSET', meta, 'p:' .. publisher, head[6])
    return { 'seen', last, 0, list.rules }
  end
  if expected ~= '' and expected ~= last then
    return { 'moved', last, 0, list.rules }
  end
  -- Without the meta nobody knows the buckets: a rule that is in them would change nothing, and no host would get it.
  if not head[2] and #redis.call('XRANGE', log, '-', '+', 'COUNT', '1') > 0 then
    return redis.error_reply('XCLOST the key ' .. meta .. ' is gone, and others of the list are there; delete all ' ..
                             'keys ' .. list.prefix .. '*, then publish the whole list')
  end
  list.power = power_below(list.buckets)
  local now = now_ms()
  local ended = redis.call('ZRANGEBYSCORE', list.prefix .. 'ends', '-inf', integer(now), 'LIMIT', 0, PURGED)
  local changed, texts, values = {}, {}, {}
  for _, line in ipairs(lines) do
    if changes(list, line, values) then
      changed[#changed + 1] = line
      texts[#changed] = line.text
    end
  end
  -- After an entry that this function did not write, only a new epoch can go on from `last`.
  local own_run = run_id()
  if own_run ~= run or #redis.call('XRANGE', log, '(' .. last, '+', 'COUNT', '1') > 0 then
    local refused
    epoch, refused = begin_epoch(log, epoch, seq, last)
    if refused then
      return refused
    end
    seq = 0
  end
  if #changed > 0 then
    seq = seq + 1
    redis.call('XADD', log, 'MAXLEN', '~', fleet[2] or '10000', integer(epoch) .. '-' .. integer(seq),
               'rules', table.concat(texts, '\n'), unpack(keys[3] and { 'report', 'now' } or {}))
  end
  for _, line in ipairs(changed) do
    if line.value then
      put(list, line)
    else
      take(list, line.name)
    end
  end
  purge(list, ended, now)
  last = integer(epoch) .. '-' .. integer(seq)
  redis.call('HSET', meta, 'run', own_run, 'epoch', integer(epoch), 'seq', integer(seq), 'rules', integer(list.rules),
             'buckets', integer(list.buckets), 'p:' .. publisher, args[2])
  return { 'done', last, #changed, list.rules }
end

-- So many rules are to come: gives an empty list the buckets for them. Later every bucket would be split, and half of
-- its rules moved, each time that the list doubles. KEYS: the list's meta. ARGS: the number. Returns the buckets.
local function reserve(keys, args)
  local buckets = math.min(math.ceil(tonumber(args[1]) / BUCKET_RULES), RESERVED)
  local head = redis.call('HMGET', keys[1], 'rules', 'buckets')
  if (tonumber(head[1] or 0) or 1) > 0 or (tonumber(head[2] or 1) or buckets) >= buckets then
    return tonumber(head[2] or 1)
  end
  redis.call('HSET', keys[1], 'buckets', integer(buckets))
  return buckets
end

-- KEYS: the fleet's meta and ctl. ARGS: on or off.
local function panic(keys, args)
  if not redis.call('HGET', keys[1], 'id') then
    return redis.error_reply('XCNOFLEET there is no such fleet here; make it: xdp-cuckoo fleet init')
  end
  redis.call('HSET', keys[1], 'panic', args[1])
  return redis.call('XADD', keys[2], 'MAXLEN', '100', '*', 'panic', args[1])
end

-- Deletes the list, and lets hosts delete theirs until a time in ms. That is a right of its own: to write the fleet's
-- "accept", a hash of LIST -> ms. KEYS: the list's meta; accept. ARGS: the list; the time. Returns how many rules there
-- were; nil: there is no list.
local function delete(keys, args)
  local prefix, head = string.sub(keys[1], 1, -5), redis.call('HMGET', keys[1], 'rules', 'buckets')
  if not head[2] then
    return false
  end
  redis.call('HSET', keys[2], args[1], args[2])
  -- Version 8 could stage a deletion by this field, and followers of that version obey it even if the list comes back.
  redis.call('HDEL', keys[2], 'stage:' .. args[1])
  for bucket = 0, (number_of(head[2], 1, BUCKETS_MAX) or 0) - 1 do
    redis.call('UNLINK', prefix .. 'b:' .. integer(bucket))
  end
  redis.call('UNLINK', prefix .. 'ends', prefix .. 'hosts', prefix .. 'refused', prefix .. 'log', keys[1])
  return tonumber(head[1] or 0)
end

redis.register_function('xc_init', init)
redis.register_function('xc_publish', publish)
redis.register_function('xc_publish_rates', publish)
redis.register_function('xc_reserve', reserve)
-- These work on a broker that is out of memory, too: panic must always, and a deletion makes room.
local always = { 'allow-oom' }
redis.register_function({ function_name = 'xc_delete', callback = delete, flags = always })
redis.register_function({ function_name = 'xc_panic', callback = panic, flags = always })
