-- acquire_many.lua - grants free names to many who ask for one each.
-- KEYS: fence, then for each lock party
-- ARGV: for each the same number of words: owner ttl_ms who [bell flags]
-- Answers for each the fence, or nil when it is for acquire to do: the name is
-- held, or somebody waits for it or has left it.
local call = redis.call

--include fence
local count = (#KEYS - 1) / 2
local width = #ARGV / count
local fence = next_fences(KEYS[1], call('TIME'), count)
local answers = {}

for i = 1, count do
    local lock, first = KEYS[2 * i], width * (i - 1) + 1
    local answer = false

    if call('EXISTS', lock, KEYS[2 * i + 1]) == 0 then
        local ttl_ms = ARGV[first + 1]
        local bell = width > 3 and ARGV[first + 3] or '-'

        answer = int(fence)
        fence = fence + 1
        call('HSET', lock, 'owner', ARGV[first], 'fence', answer, 'ttl', ttl_ms,
             'who', ARGV[first + 2])
        call('PEXPIRE', lock, ttl_ms)
        if bell ~= '-' then
            call('HSET', lock, 'bell', bell)
        end
    end
    answers[i] = answer
end
return answers
