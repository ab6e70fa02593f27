-- acquire_all.lua - asks for several names, each exclusively: all or none.
-- KEYS: fence, then for each lock party queue place
-- ARGV: for each owner ttl_ms who bell priority
-- Answers OK and for each fence left_ms claim, or the refusal of the first name
-- that is not free:
--   BUSY which fence left_ms ahead who | LOST which | MISMATCH which capacity
local call = redis.call

--include grant
local count = math.floor((#KEYS - 1) / 4)
local asks, free = {}, {}

local function read_asks()
    for i = 1, count do
        local first = 5 * i - 4

        asks[i] = {owner = ARGV[first], ttl = ARGV[first + 1],
                   who = ARGV[first + 2], bell = ARGV[first + 3],
                   priority = ARGV[first + 4], mode = EXCLUSIVE, permits = 1,
                   capacity = 0}
        free[i] = i
    end
end

local function unused()
    local keys = {}

    for i = 1, count do
        keys[2 * i - 1], keys[2 * i] = KEYS[4 * i - 2], KEYS[4 * i - 1]
    end
    return call('EXISTS', unpack(keys)) == 0
end

local function refuse(i)
    local first = first_to_end()

    tell()
    return {BUSY, i - 1, call('GET', watermark) or '0', wait_ms(first),
            call('ZCOUNT', queue, '-inf', '+inf'), first and first.who or ''}
end

-- The refusal of a name, or nil when it is free. If the asker holds it, its lease
-- replaces its ask.
local function look(i)
    local ask = asks[i]

    if not enter(4 * i - 2, KEYS[1]) then
        return FOREIGN
    end
    prune()
    serve()
    settle()

    local mine = roll[ask.owner]
    local other = roll.holders[1] or head()

    if mine and holds_on(mine) then
        asks[i] = mine
    elseif mine or call('HGET', party, ask.owner) == 't' then
        return {LOST, i - 1}
    elseif other and other.capacity > 0 then
        return {MISMATCH, i - 1, int(other.capacity)}
    elseif other and (other.fence or
           tonumber(other.priority) >= tonumber(ask.priority)) then
        return refuse(i)
    else
        free[#free + 1] = i
    end
end

local function take(i, fence)
    enter(4 * i - 2, KEYS[1])
    asks[i].fence = int(fence)
    asks[i].till = now + asks[i].ttl * 1000
    add(asks[i])
    write_new(asks[i])
end

read_asks()
if not unused() then
    free = {}
    for i = 1, count do
        local why_not = look(i)

        if why_not then
            return why_not
        end
    end
end
if #free > 0 then
    local fence = next_fences(KEYS[1], time, #free)

    for n, i in ipairs(free) do
        take(i, fence + n - 1)
    end
end

local answers = {OK}

for i, ask in ipairs(asks) do
    answers[3 * i - 1] = ask.fence
    answers[3 * i] = math.floor((ask.till - now) / 1000)
    answers[3 * i + 1] = ask.claim and 1 or 0
end
return answers
