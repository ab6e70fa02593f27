-- text_int.lua - a whole number as text. Part of other scripts. %.0f takes longer than
-- to call GET, and %d has no more than 32 bits at some servers.
local format = string.format

-- Numbers are exact below 2^53.
local function int(number)
    if number >= 0 and number < 1000000 then
        return format('%d', number)
    elseif number > 0 and number < 2147483648000000 then
        return format('%d%06d', number / 1000000, number % 1000000)
    end
    return format('%.0f', number)
end
