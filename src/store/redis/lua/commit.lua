-- commit.lua - changes values and indexes of one slot together, or nothing.
-- KEYS: fence, then the values and indexes, which the plan names by their numbers here
-- ARGV: publish plan
-- Answers status and time in us; beside OK the version and for each enter the size of
-- its index; beside STALE the check that does not hold, from 0, and version, time left
-- in ms (-1: for ever) and data of its value.
--
-- The plan is "NOT_BEFORE NOT_AFTER CHECKS CHANGES", then "KEY VERSION" for each check
-- and "VERB KEY NUMBER LENGTH" for each change, all with a newline behind. LENGTH bytes
-- follow a change. The verbs, those that take away first:
--   l  leave: a member              d  delete
--   p  put: data; NUMBER is its ttl in ms, 0 for ever
--   e  enter: a member at NUMBER    f  the same, NUMBER us from now
--   t  tell: a channel NUMBER, 0 for the version
local call, find, sub = redis.call, string.find, string.sub

--include fence
--include tell_topic
local publish, plan = ARGV[1], ARGV[2]
local time = call('TIME')
local us = time[1] * 1000000 + time[2]
local _, at, before, after, checks, changes =
    find(plan, '^(%d+) (%d+) (%d+) (%d+)\n')

if us < tonumber(before) then
    return {10, us}
elseif after ~= '0' and us > tonumber(after) then
    return {11, us}
end

local versions = {}

-- Fails if the key holds something else.
local function version_of(key)
    versions[key] = versions[key] or call('HGET', key, 'version') or '0'
    return versions[key]
end

local last = tonumber(call('GET', KEYS[1]) or 0) or 0

for i = 0, checks - 1 do
    local k, version
    _, at, k, version = find(plan, '^(%d+) (%d+)\n', at + 1)

    local key = KEYS[tonumber(k)]
    local found = version_of(key)

    if found ~= version then
        return {4, us, i, found, call('PTTL', key),
                call('HGET', key, 'data') or ''}
    end
    last = math.max(last, tonumber(found) or 0)
end

-- All that can fail comes before the first write.
local work = {}

for i = 1, changes do
    local verb, k, number, len
    _, at, verb, k, number, len = find(plan, '^(%a) (%d+) (%d+) (%d+)\n', at + 1)

    local key = KEYS[tonumber(k)]

    if verb == 'p' or verb == 'd' then
        version_of(key)
    elseif verb ~= 't' then
        call('ZCARD', key)
    end
    work[i] = {verb, key, number, sub(plan, at + 1, at + len)}
    at = at + len
end
if last > 9007199254740990 then
    error('-USEDUP the fences of this database are used up')
end

local version = int(math.max(us, last + 1))

-- A full server refuses the first write only if that takes memory: it still takes
-- the end of things.
for _, change in ipairs(work) do
    local verb, key = change[1], change[2]

    if verb == 'l' then
        call('ZREM', key, change[4])
    elseif verb == 'd' and versions[key] ~= '0' then
        call('DEL', key)
    end
end
call('SET', KEYS[1], version)

local do_verb = {
    p = function(key, ttl_ms, data)
        if versions[key] ~= '0' then
            call('DEL', key)
        end
        call('HSET', key, 'version', version, 'data', data)
        if ttl_ms ~= '0' then
            call('PEXPIRE', key, ttl_ms)
        end
    end,
    e = function(key, number, member)
        call('ZADD', key, number, member)
    end,
    f = function(key, span_us, member)
        call('ZADD', key, int(us + span_us), member)
    end,
}

for _, change in ipairs(work) do
    local act = do_verb[change[1]]

    if act then
        act(change[2], change[3], change[4])
    end
end

local answer = {0, us, version}

for _, change in ipairs(work) do
    local verb, key, number = change[1], change[2], change[3]

    if verb == 'p' then
        tell_topic(publish, key, 'changed ' .. version)
    elseif verb == 'd' and versions[key] ~= '0' then
        tell_topic(publish, key, 'changed 0')
    elseif verb == 't' then
        tell_topic(publish, change[4],
                   'changed ' .. (number == '0' and version or number))
    elseif verb == 'e' or verb == 'f' then
        answer[#answer + 1] = call('ZCARD', key)
    end
end
return answer
