-- roster.sql - the steps of src/store/roster.h. The rule is that of src/store/meet.c.

-- Another one after each start of the server, and after a promotion.
CREATE OR REPLACE FUNCTION @schema@.run() RETURNS text
LANGUAGE sql VOLATILE AS $$
    SELECT date_part('epoch', pg_postmaster_start_time())::text || ' '
           || left(pg_walfile_name(pg_current_wal_lsn()), 8)
$$;

-- Notifies every doorbell that listens to a roster, as `tell` does.
CREATE OR REPLACE FUNCTION @schema@.tell_roster(a_name text, a_news text, a_gen bigint)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    at_us bigint := @schema@.now_us();
    v_topic text := 'roster:' || a_name;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(v_topic, 1701994860));
    PERFORM @schema@.ring(e.bell, e.address, a_news, a_gen)
    FROM @schema@.ear AS e WHERE e.topic = v_topic AND e.until_us > at_us;
END
$$;

-- Locks the row of a name, and makes it first with a_make; gen 0 when there is no
-- roster. The numbers of a new row begin above those of rows that were swept.
CREATE OR REPLACE FUNCTION @schema@.enter_roster(a_name text, a_make boolean)
RETURNS @schema@.roster
LANGUAGE plpgsql AS $$
DECLARE
    r @schema@.roster;
BEGIN
    LOOP
        SELECT * INTO r FROM @schema@.roster AS q
        WHERE q.name = a_name FOR UPDATE;
        IF FOUND THEN
            RETURN r;
        ELSIF NOT a_make THEN
            r.kind := 0; r.gen := 0; r.need := 0; r.here := 0; r.seats := 0;
            r.run := ''; r.broken := '{}';
            RETURN r;
        END IF;
        INSERT INTO @schema@.roster(name) VALUES (a_name) ON CONFLICT DO NOTHING;
        UPDATE @schema@.roster AS q
        SET last = greatest(q.last, (SELECT m.floor FROM @schema@.meta AS m))
        WHERE q.name = a_name;
    END LOOP;
END
$$;

-- Begins the next generation; a_news: this one has "opened" or is "broken".
CREATE OR REPLACE FUNCTION @schema@.next_generation(
    r @schema@.roster, at_us bigint, a_news text)
RETURNS @schema@.roster
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM @schema@.tell_roster(r.name, a_news, r.gen);
    IF a_news = 'broken' THEN
        r.broken := (r.gen || r.broken)[1:64];
    END IF;
    r.last := greatest(r.last + 1, at_us);
    r.gen := r.last;
    r.here := 0;
    RETURN r;
END
$$;

-- Ends the seats whose time is up by then.
CREATE OR REPLACE FUNCTION @schema@.end_seats(
    r @schema@.roster, at_us bigint, a_by_us bigint)
RETURNS @schema@.roster
LANGUAGE plpgsql AS $$
DECLARE
    v_ended bigint;
    v_used bigint;
BEGIN
    WITH ended AS (DELETE FROM @schema@.seat AS s
                   WHERE s.name = r.name AND s.until_us <= a_by_us
                   RETURNING s.kind)
    SELECT count(*), count(*) FILTER (WHERE e.kind > 0)
    INTO v_ended, v_used FROM ended AS e;
    r.seats := r.seats - v_ended;
    IF v_used > 0 AND r.here > 0 THEN
        r := @schema@.next_generation(r, at_us, 'broken');
    END IF;
    RETURN r;
END
$$;

-- Makes the roster what a step needs.
CREATE OR REPLACE FUNCTION @schema@.found_roster(
    r @schema@.roster, at_us bigint, a_kind bigint, a_need bigint)
RETURNS @schema@.roster
LANGUAGE plpgsql AS $$
BEGIN
    IF r.gen = 0 OR a_kind = 2 THEN
        r.last := greatest(r.last + 1, at_us);
        r.gen := r.last;
    END IF;
    r.kind := a_kind;
    r.need := a_need;
    r.here := 0;
    r.until_us := 0;
    RETURN r;
END
$$;

-- Removes some rosters that nobody has used for a minute. Waits for no lock.
CREATE OR REPLACE FUNCTION @schema@.sweep_rosters(at_us bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    v_names text[];
    v_last bigint;
BEGIN
    SELECT array_agg(o.name), max(o.last) INTO v_names, v_last FROM (
        SELECT q.name, q.last FROM @schema@.roster AS q
        WHERE q.until_us < at_us - 60000000
        LIMIT 8 FOR UPDATE SKIP LOCKED) AS o;
    IF v_names IS NOT NULL THEN
        UPDATE @schema@.meta AS m SET floor = v_last WHERE m.floor < v_last;
        DELETE FROM @schema@.seat AS s WHERE s.name = ANY (v_names);
        DELETE FROM @schema@.roster AS q WHERE q.name = ANY (v_names);
    END IF;
END
$$;

-- Writes what a step has made of the head. A roster without seats is none.
CREATE OR REPLACE FUNCTION @schema@.save_roster(old @schema@.roster, r @schema@.roster)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF r.kind <> 2 AND r.seats = 0 THEN
        r.gen := 0;
        r.kind := 0;
        r.need := 0;
        r.here := 0;
        r.broken := '{}';
        r.run := '';
    END IF;
    IF r.name IS NOT NULL AND r IS DISTINCT FROM old THEN
        UPDATE @schema@.roster AS q
        SET kind = r.kind, gen = r.gen, last = r.last, need = r.need,
            here = r.here, seats = r.seats, until_us = r.until_us, run = r.run,
            broken = r.broken
        WHERE q.name = r.name;
    END IF;
END
$$;

-- For how long the first seat lives (a_need 0), or so many that count; in ms.
CREATE OR REPLACE FUNCTION @schema@.seats_left(a_name text, at_us bigint, a_need bigint)
RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    v_until bigint;
BEGIN
    IF a_need = 0 THEN
        SELECT min(s.until_us) INTO v_until
        FROM @schema@.seat AS s WHERE s.name = a_name;
    ELSE
        SELECT s.until_us INTO v_until FROM @schema@.seat AS s
        WHERE s.name = a_name AND s.kind IN (1, 2) AND s.counts_us <= at_us
        ORDER BY s.until_us DESC LIMIT 1 OFFSET a_need - 1;
    END IF;
    RETURN coalesce((v_until - at_us) / 1000, 0);
END
$$;

-- Tells what has become of a generation: 0 opened, 1 gathers, 3 nobody knows any more,
-- 4 broken.
CREATE OR REPLACE FUNCTION @schema@.outcome(r @schema@.roster, a_gen bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN a_gen = r.gen THEN 1 WHEN a_gen = ANY (r.broken) THEN 4
                WHEN a_gen < r.broken[64] THEN 3 ELSE 0 END
$$;

-- The steps without a fence, and those with one: each answers status and number,
-- and the head in `r`.
CREATE OR REPLACE FUNCTION @schema@.meet_unseated(
    INOUT r @schema@.roster, at_us bigint, a_verb text, a_id text, a_after bigint,
    a_need bigint, a_ttl_ms bigint, a_flags text, a_settle_ms bigint, a_who text,
    OUT status bigint, OUT number bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_kind bigint := CASE WHEN strpos(a_flags, 'f') > 0 THEN 1 ELSE 0 END;
    v_need bigint := CASE WHEN v_kind = 1 THEN a_need ELSE 0 END;
    s @schema@.seat;
BEGIN
    SELECT * INTO s FROM @schema@.seat AS t
    WHERE t.name = r.name AND t.id = a_id;
    IF a_verb = 'sit' THEN
        IF r.gen = 0 OR (r.seats = 0 AND r.kind <> 2
                         AND (r.kind <> v_kind OR r.need <> v_need)) THEN
            r := @schema@.found_roster(r, at_us, v_kind, v_need);
        END IF;
        IF r.kind <> v_kind OR r.need <> v_need THEN
            status := 6;
        ELSIF s.name IS NOT NULL THEN
            status := 0;
            number := s.fence;
        ELSIF v_kind = 1 AND r.seats >= v_need THEN
            status := 1;
        ELSE
            status := 0;
            r.last := greatest(r.last + 1, at_us);
            r.seats := r.seats + 1;
            IF r.until_us < at_us + 2000 * a_ttl_ms THEN
                r.until_us := at_us + 4000 * a_ttl_ms;
            END IF;
            number := r.last;
            INSERT INTO @schema@.seat VALUES (
                0, number, 0, number, at_us + a_settle_ms * 1000,
                at_us + least(a_ttl_ms, 3000) * 1000, r.name, a_id, a_who);
        END IF;
    ELSIF a_verb = 'count' THEN
        IF (r.gen = 0 OR (r.kind <> 2 AND r.seats = 0)) AND a_after = 0 THEN
            r := @schema@.found_roster(r, at_us, 2, a_need);
        END IF;
        IF r.gen = 0 THEN
            status := 4;
        ELSIF r.kind <> 2 OR r.need <> a_need THEN
            status := 6;
        ELSIF a_after <> 0 AND a_after <> r.gen THEN
            status := 4;
        ELSIF r.here >= r.need THEN
            status := 0;
        ELSIF s.name IS NOT NULL THEN
            status := 1;
        ELSE
            INSERT INTO @schema@.seat VALUES (
                3, 0, 0, r.gen, 0, 9223372036854775807, r.name, a_id, '');
            r.until_us := at_us + a_ttl_ms * 1000;
            r.here := r.here + 1;
            status := CASE WHEN r.here < r.need THEN 1 ELSE 0 END;
            IF status = 0 THEN
                PERFORM @schema@.tell_roster(r.name, 'opened', r.gen);
            END IF;
        END IF;
    ELSIF r.gen = 0 THEN
        status := 5;
    ELSIF a_verb = 'look' THEN
        status := CASE WHEN r.need <> 0 AND a_need <> 0 AND r.need <> a_need
                            THEN 6
                       WHEN r.kind = 2 AND r.here < r.need THEN 1
                       ELSE 0 END;
    ELSIF r.kind <> 2 THEN
        status := 6;
    ELSE
        DELETE FROM @schema@.seat AS t WHERE t.name = r.name;
        r := @schema@.found_roster(r, at_us, 2, r.need);
        r.until_us := at_us + a_ttl_ms * 1000;
        status := 0;
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION @schema@.meet_seated(
    INOUT r @schema@.roster, at_us bigint, a_verb text, a_id text, a_fence bigint,
    a_after bigint, a_need bigint, a_ttl_ms bigint, a_flags text, OUT status bigint,
    OUT number bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_begun boolean;
    s @schema@.seat;
BEGIN
    SELECT * INTO s FROM @schema@.seat AS t
    WHERE t.name = r.name AND t.id = a_id;
    IF s.fence IS DISTINCT FROM a_fence OR s.kind = 3 THEN
        status := 3;
        RETURN;
    ELSIF r.need <> 0 AND a_need <> 0 AND r.need <> a_need THEN
        status := 6;
        RETURN;
    ELSIF a_verb = 'leave' THEN
        DELETE FROM @schema@.seat AS t WHERE t.name = r.name AND t.id = a_id;
        r.seats := r.seats - 1;
        IF s.kind > 0 AND r.here > 0 AND (strpos(a_flags, 'q') = 0
            OR s.kind = 2 AND s.rec = r.gen) THEN
            r := @schema@.next_generation(r, at_us, 'broken');
        END IF;
        status := 0;
        RETURN;
    ELSIF a_verb <> 'keep' AND r.kind <> 1 THEN
        status := 6;
        RETURN;
    END IF;
    IF r.until_us < at_us + 2000 * a_ttl_ms THEN
        r.until_us := at_us + 4000 * a_ttl_ms;
    END IF;
    s.until_us := greatest(s.until_us, at_us + a_ttl_ms * 1000);
    s.kind := greatest(s.kind, 1);
    v_begun := s.rec <> a_after;
    IF a_verb = 'keep' THEN
        status := 0;
    ELSIF s.kind = 2 AND NOT v_begun AND s.rec = r.gen THEN
        status := 3; -- It passed an opening that was lost since.
    ELSIF v_begun AND s.came_from <> a_after THEN
        status := 3;
    ELSIF v_begun AND s.kind = 1 THEN
        status := 2;
        number := s.rec;
    ELSIF a_verb = 'arrive' THEN
        IF NOT v_begun THEN
            s.came_from := a_after;
            s.rec := r.gen;
            s.kind := 2;
            r.here := r.here + 1;
            IF r.here >= r.need THEN
                r := @schema@.next_generation(r, at_us, 'opened');
            END IF;
        END IF;
        status := @schema@.outcome(r, s.rec);
        number := s.rec;
    ELSIF v_begun AND s.rec <> r.gen THEN
        status := @schema@.outcome(r, s.rec);
        number := s.rec;
    ELSE
        IF v_begun AND strpos(a_flags, 'b') > 0 THEN
            r := @schema@.next_generation(r, at_us, 'broken');
        ELSIF v_begun THEN
            r.here := r.here - 1;
        END IF;
        r.last := greatest(r.last + 1, at_us);
        s.came_from := a_after;
        s.rec := r.last;
        s.kind := 1;
        status := 2;
        number := s.rec;
    END IF;
    UPDATE @schema@.seat AS t
    SET kind = s.kind, came_from = s.came_from, rec = s.rec,
        until_us = s.until_us
    WHERE t.name = r.name AND t.id = a_id;
END
$$;

-- Does an item. A crash of the server may lose seats and arrivals, which their
-- parties make again; not what opens or breaks, nor a count.
-- Answers "status number here live parties left_ms clock_us". One in sixteen of those that
-- draw a number sweeps, not each that finds such a number: all counts of a latch would.
CREATE OR REPLACE FUNCTION @schema@.meet(
    a_name text, a_verb text, a_id text, a_fence bigint, a_after bigint,
    a_need bigint, a_ttl_ms bigint, a_flags text, a_settle_ms bigint, a_by_us bigint,
    a_who text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    old @schema@.roster := @schema@.enter_roster(
        a_name, a_verb IN ('sit', 'count'));
    r @schema@.roster := old;
    at_us bigint := @schema@.now_us();
    v_run text;
    v_left bigint := 0;
    o record;
BEGIN
    IF r.gen <> 0 AND r.kind = 2 AND r.until_us <= at_us THEN
        DELETE FROM @schema@.seat AS s WHERE s.name = a_name;
        r.gen := 0;
        r.kind := 0;
        r.need := 0;
        r.here := 0;
    END IF;
    IF r.run <> '' OR strpos(a_flags, 's') > 0 THEN
        v_run := @schema@.run();
        IF r.run <> v_run THEN
            r := @schema@.end_seats(r, at_us, 9223372036854775806);
            r.run := v_run;
        END IF;
    END IF;
    IF r.seats > 0 THEN
        r := @schema@.end_seats(r, at_us, at_us);
    END IF;
    IF a_by_us > 0 AND at_us > a_by_us AND a_verb IN ('sit', 'keep') THEN
        SELECT r AS r, 2::bigint AS status, NULL::bigint AS number INTO o;
    ELSIF a_verb IN ('sit', 'count', 'look', 'reset') THEN
        SELECT * INTO o FROM @schema@.meet_unseated(
            r, at_us, a_verb, a_id, a_after, a_need, a_ttl_ms, a_flags,
            a_settle_ms, a_who);
    ELSE
        SELECT * INTO o FROM @schema@.meet_seated(
            r, at_us, a_verb, a_id, a_fence, a_after, a_need, a_ttl_ms,
            a_flags);
    END IF;
    r := o.r;
    IF a_verb = 'keep' AND o.status = 0
       AND greatest(r.need, a_need) > 0 THEN
        v_left := @schema@.seats_left(
            a_name, at_us, CASE WHEN r.need > 0 THEN r.need ELSE a_need END);
    ELSIF a_verb = 'arrive' AND o.status = 1 THEN
        v_left := @schema@.seats_left(a_name, at_us, 0);
    END IF;
    IF r.kind <> 2 AND (old.gen = 0 OR old.gen = r.gen) THEN
        PERFORM @schema@.lazily();
    END IF;
    PERFORM @schema@.save_roster(old, r);
    IF a_verb IN ('sit', 'count') AND r.last > old.last
       AND r.last % 16 = 0 THEN
        PERFORM @schema@.sweep_rosters(at_us);
    END IF;
    RETURN concat_ws(' ', o.status, coalesce(o.number, r.gen), r.here, r.seats,
                     r.need, v_left, at_us);
END
$$;
