-- outcome.sql - version 14: the outcome of a generation that is older than all broken ones
-- that are kept. It replaces a function of version 3.

-- Tells what has become of a generation: 0 opened, 1 gathers, 3 nobody knows any more,
-- 4 broken.
CREATE OR REPLACE FUNCTION @schema@.outcome(r @schema@.roster, a_gen bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN a_gen = r.gen THEN 1 WHEN a_gen = ANY (r.broken) THEN 4
                WHEN a_gen < r.broken[64] THEN 3 ELSE 0 END
$$;

UPDATE @schema@.meta SET version = 14;
