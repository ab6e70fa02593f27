-- renew.lua - renews many leases, each by owner and fence.
-- KEYS: fence, then for each lock party queue place
-- ARGV: for each owner fence ttl_ms; bell of the client that renews
-- Answers for each -1 when it is lost, else twice the time left in ms, plus one
-- when there is a waiter.
local call = redis.call
local answers = {}
local others = {}

for i = 1, (#ARGV - 1) / 3 do
    local lock = KEYS[4 * i - 2]
    local at = redis.pcall('HMGET', lock, 'owner', 'fence')

    if at[1] == ARGV[3 * i - 2] and at[2] == ARGV[3 * i - 1] then
        local left_ms = call('PTTL', lock)
        local ttl_ms = tonumber(ARGV[3 * i])

        if left_ms < ttl_ms then
            call('PEXPIRE', lock, ARGV[3 * i])
            left_ms = ttl_ms
        end
        answers[i] = 2 * left_ms
    else
        answers[i] = -1
        others[#others + 1] = i
    end
end
if #others == 0 then
    return answers
end

--include grant
local bell = ARGV[#ARGV]

-- The client that renews is the one that listens: a lease that was transferred has
-- no bell until then.
local function hear(mine)
    if bell ~= '-' and bell ~= address(mine) then
        mine.bell = tells(mine) and bell .. '+' or bell
        mine.handed = false
        if mine.mode == EXCLUSIVE then
            call('HSET', lock, 'bell', mine.bell)
        end
    end
end

local function renew(owner, fence, ttl_ms)
    local mine = roll[owner]
    local held = mine and not mine.left and mine.fence == fence

    prune()
    if held then
        mine.till = math.max(mine.till, now + ttl_ms * 1000)
        mine.claim = false
        extend_lock()
        hear(mine)
        write_holder(mine)
    end
    serve()
    settle()
    if not held then
        return -1
    end
    return 2 * math.floor((mine.till - now) / 1000) + call('EXISTS', queue)
end

for _, i in ipairs(others) do
    if enter(4 * i - 2, KEYS[1]) then
        answers[i] = renew(ARGV[3 * i - 2], ARGV[3 * i - 1],
                           tonumber(ARGV[3 * i]))
    end
end
return answers
