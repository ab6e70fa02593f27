-- quorum_steps.lua - whether this node of a quorum votes, and its report on itself
-- with each answer. Part of other scripts. Needs grant.lua.
--
--   node   hash: "run" id of the server when it was last asked, "from" when it
--          votes, in us, "longest" ttl of any client in ms, "durable", and the
--          latest time that was "seen", more or less
--include quorum_terms
local REFUSED = 23
local NAME_SLOTS = 64

local server = call('INFO', 'server')
local run = server:match('run_id:(%x+)')
local votes_from = 0

-- A fence is not from the future, by this clock.
local function is_ahead(fence)
    return tonumber(fence) > now + AHEAD_MS * 1000
end

-- A node that was started, or emptied, since the last ask votes once every lease
-- that it may have forgotten has ended. The wait counts from this ask: the uptime
-- of the server follows its wall clock, which may have been set since the start. A
-- node that wrote everything down has forgotten nothing, if it does so in this run
-- as well: otherwise it may have begun with an older snapshot.
local function first_vote(was_durable, durable, longest_ms)
    if was_durable == '1' and durable == '1' then
        return 0
    end
    return now + longest_ms * 1000
end

-- The status of a vote: OK, STALE when the asker means an earlier run of the
-- server, or REFUSED. If the clock was set back it had been ahead, and leases have
-- ended too early. An asker may have looked at the settings before they were changed:
-- a run that was not durable once is not.
local function may_vote(node, voter_run, durable, longest_ms)
    local at = call('HMGET', node, 'run', 'from', 'longest', 'durable', 'seen')
    local longest = math.max(tonumber(longest_ms), tonumber(at[3] or 0))
    local seen = tonumber(at[5] or 0)

    votes_from = tonumber(at[2] or 0)
    if voter_run ~= run then
        return STALE
    end
    if at[1] ~= run then
        votes_from = math.max(votes_from, first_vote(at[4], durable, longest))
    elseif at[4] == '0' then
        durable = '0'
    end
    if now < seen - BACK_MS * 1000 then
        votes_from = now + longest * 1000
    end
    if at[1] ~= run or longest > tonumber(at[3] or 0) or durable ~= at[4] or
       math.abs(now - seen) > SEEN_MS * 1000 then
        call('HSET', node, 'run', run, 'from', int(votes_from), 'longest',
             int(longest), 'durable', durable, 'seen', int(now))
    end
    return votes_from > now and REFUSED or OK
end

-- A fence was given here or elsewhere: this node gives none below it any more.
local function heed(fence)
    local last = call('GET', watermark)

    if not last or tonumber(last) < tonumber(fence) then
        call('SET', watermark, fence)
    end
end

-- The least fence, from a given one on, that a slot may have; 0 is the name itself.
-- Slots have fences of their own: two slots never have the same one.
local function fence_of(slot, least)
    if slot == 0 then
        return int(least)
    end
    return int(least + (slot - 1 - least) % NAME_SLOTS)
end

-- A lease gets the fence that was agreed on, and time if it has less. One that is
-- exclusive is the whole of its key.
local function agree(holder, fence, ttl_ms)
    local till = math.max(holder.till, now + ttl_ms * 1000)

    if holder.fence ~= fence then
        holder.fence = fence
        heed(fence)
        if holder.mode == EXCLUSIVE then
            call('HSET', lock, 'fence', fence)
        end
    end
    if holder.till < till then
        holder.till = till
        extend_lock()
    end
    if holder.mode == PERMITS then
        write_holder(holder)
    end
end

-- The beginning of every answer.
local function say(status)
    return {status, int(now), math.ceil(math.max(0, votes_from - now) / 1000)}
end
