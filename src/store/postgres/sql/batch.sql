-- batch.sql - acquires and releases of many callers, in one transaction.

-- The short ways of acquire and release for many, in one statement: those without
-- a ttl are released. Answers 64 * fence + number, which is below 64, for those that
-- it did; `batch` does the others, in a transaction of its own. They come sorted by
-- name, and are joined in that order, so that two such statements cannot deadlock:
-- the connection has no other joins than nested loops. If several have the same name,
-- the first is done. a_lazily: all of them are released.
CREATE OR REPLACE FUNCTION @schema@.few(
    a_names text[], a_owners text[], a_ttls bigint[], a_whos text[], a_bell text,
    a_lazily boolean)
RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.now_us();
    v_set text;
BEGIN
    IF a_lazily THEN
        v_set := set_config('synchronous_commit', 'off', true);
    END IF;
    RETURN QUERY
    UPDATE @schema@.roll AS r
    SET last = CASE WHEN b.ttl = 0 THEN r.last
                    ELSE greatest(r.last + 1, at_us) END,
        owner = CASE WHEN b.ttl = 0 THEN '' ELSE b.owner END,
        ttl_ms = b.ttl, since_us = at_us, until_us = at_us + b.ttl * 1000,
        bell = a_bell, who = b.who
    FROM unnest(a_names, a_owners, a_ttls, a_whos)
         WITH ORDINALITY AS b(name, owner, ttl, who, i)
    WHERE r.name = b.name AND NOT r.crowded AND CASE
        WHEN b.ttl = 0 THEN r.owner = b.owner AND r.until_us > at_us
        ELSE r.owner = '' OR r.until_us <= at_us END
    RETURNING r.last * 64 + b.i;
END
$$;

-- The same where the connection has no settings of its own.
CREATE OR REPLACE FUNCTION @schema@.few_pooled(
    a_names text[], a_owners text[], a_ttls bigint[], a_whos text[], a_bell text,
    a_lazily boolean)
RETURNS SETOF bigint
LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off
SET enable_seqscan = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY SELECT @schema@.few(a_names, a_owners, a_ttls, a_whos, a_bell,
                                     a_lazily);
END
$$;

-- Does them one after the other, by the whole rule: in the order of their names, as
-- above; for one name, in the order of arrival. Flags of a release: 1 for unanswered.
-- a_ms is the ttl, or how long a release excludes others. Answers as acquire and
-- release.
CREATE OR REPLACE FUNCTION @schema@.batch(
    a_release bigint[], a_names text[], a_owners text[], a_modes text[],
    a_permits bigint[], a_capacities bigint[], a_flags bigint[],
    a_priorities bigint[], a_ms bigint[], a_whos text[], a_bell text)
RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    answers text[] := array_fill(''::text, ARRAY[array_length(a_names, 1)]);
    v_sync text := current_setting('synchronous_commit');
    v_firm boolean := false;
    v_set text;
    i integer;
BEGIN
    FOR i IN SELECT n.i FROM unnest(a_names) WITH ORDINALITY AS n(name, i)
             ORDER BY n.name COLLATE "C", n.i
    LOOP
        IF a_release[i] <> 0 THEN
            answers[i] := @schema@.release(a_names[i], a_owners[i],
                                           a_flags[i] & 1 <> 0, a_ms[i]);
        ELSE
            answers[i] := @schema@.acquire(
                a_names[i], a_owners[i], a_modes[i]::@schema@.mode,
                a_permits[i], a_capacities[i], a_flags[i]::integer | 8,
                a_priorities[i]::integer, a_ms[i], a_whos[i], a_bell);
        END IF;
        -- One that may be lost does not speak for the others.
        IF current_setting('synchronous_commit') = v_sync THEN
            v_firm := true;
        ELSE
            v_set := set_config('synchronous_commit', v_sync, true);
        END IF;
    END LOOP;
    IF NOT v_firm THEN
        PERFORM @schema@.lazily();
    END IF;
    RETURN answers;
END
$$;
