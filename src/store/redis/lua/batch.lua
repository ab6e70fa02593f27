-- batch.lua - grants free names to many askers, one each, and releases many
-- leases, each as release_unqueued does.
-- KEYS: fence, for each asker lock party, for each release lock
-- ARGV: the number of askers; for each of them the same number of words: owner
--       ttl_ms who [bell flags]; for each release owner
-- Answers to each asker the fence, or nil when acquire must do it: the name has a
-- holder, a waiter or a tombstone. To each release OK, or BUSY when release must
-- do it.
local call = redis.call

--include fence
--include write_holder
local asking = tonumber(ARGV[1])
local count = #KEYS - 1 - asking
local answers = {}

-- Before any release: only this part can fail.
if asking > 0 then
    local width = (#ARGV - 1 - count + asking) / asking
    local fence = next_fences(KEYS[1], call('TIME'), asking)
    local all_free = call('EXISTS', unpack(KEYS, 2, 2 * asking + 1)) == 0
    local granted = {}

    for i = 1, asking do
        local lock, first = KEYS[2 * i], width * (i - 1) + 2
        local answer = false

        if not granted[lock] and
           (all_free or call('EXISTS', lock, KEYS[2 * i + 1]) == 0) then
            answer = int(fence)
            fence = fence + 1
            hold(lock, answer, unpack(ARGV, first, first + width - 1))
            granted[lock] = true
        end
        answers[i] = answer
    end
end
if count > asking then
    local owner_at = #ARGV - count
    local over = {}

    for i = asking + 1, count do
        local lock = KEYS[asking + 1 + i]

        answers[i] = 1
        if redis.pcall('HGET', lock, 'owner') == ARGV[owner_at + i] then
            over[#over + 1] = lock
            answers[i] = 0
        end
    end
    if over[1] then
        call('DEL', unpack(over))
    end
end
return answers
