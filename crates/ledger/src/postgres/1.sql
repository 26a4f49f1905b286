CREATE TABLE about (
    version bigint NOT NULL,
    -- The whole key: the schema's name has only its beginning.
    key bytea NOT NULL CHECK (length(key) = 32)
);

-- Processes that serve. A job belongs to the worker in its column `owner` for as long as that one's `until` has not passed,
-- so that one row is written to keep all jobs.
CREATE TABLE worker (
    owner bytea PRIMARY KEY CHECK (length(owner) = 16),
    until timestamptz NOT NULL,
    -- The last batch that it had taken, and what became of its steps: whoever lost the answer asks again.
    batch bigint NOT NULL DEFAULT 0,
    outcomes bigint[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50);

CREATE TABLE job (
    id bytea PRIMARY KEY CHECK (length(id) = 32),
    customer bytea NOT NULL CHECK (length(customer) = 32),
    stage smallint NOT NULL CHECK (stage BETWEEN 1 AND 7),
    came bigint NOT NULL,
    at bigint NOT NULL,
    origin text NOT NULL,
    request text,
    attempts integer NOT NULL DEFAULT 0,
    sent smallint NOT NULL DEFAULT 0,
    paid boolean NOT NULL DEFAULT false,
    owner bytea NOT NULL,
    fence bigint NOT NULL DEFAULT 1,
    -- The batch in which its owner took it over.
    taken bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX job_open ON job (stage) WHERE stage < 7;
CREATE INDEX job_unsent ON job (at) WHERE stage = 7 AND sent = 0;
-- What is purged has one time if it was free and another if it was paid.
CREATE INDEX job_at ON job (paid, at) WHERE sent < 2;

CREATE TABLE quote (
    job bytea PRIMARY KEY REFERENCES job (id),
    tool text NOT NULL,
    price bigint NOT NULL CHECK (price >= 0),
    credit bigint NOT NULL CHECK (credit BETWEEN 0 AND price),
    rail smallint NOT NULL CHECK (rail BETWEEN 1 AND 4),
    money smallint NOT NULL CHECK (money BETWEEN 1 AND 10),
    hash bytea UNIQUE CHECK (length(hash) = 32),
    preimage bytea CHECK (length(preimage) = 32),
    invoice text,
    token text,
    expires bigint NOT NULL,
    paid bigint NOT NULL CHECK (paid >= 0)
) WITH (fillfactor = 70);
CREATE INDEX quote_lapsed ON quote (expires) WHERE money = 9;

CREATE TABLE coin (
    id bytea PRIMARY KEY,
    job bytea NOT NULL REFERENCES job (id)
);

CREATE TABLE answer (
    job bytea NOT NULL REFERENCES job (id),
    number integer NOT NULL,
    event text NOT NULL,
    PRIMARY KEY (job, number)
);

CREATE TABLE credit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer bytea NOT NULL,
    at bigint NOT NULL,
    msat bigint NOT NULL,
    balance bigint NOT NULL CHECK (balance >= 0),
    job bytea NOT NULL REFERENCES job (id),
    why text NOT NULL
);
CREATE INDEX credit_customer ON credit (customer, number);

CREATE TABLE free_use (
    customer bytea NOT NULL,
    tool text NOT NULL,
    used bigint NOT NULL,
    PRIMARY KEY (customer, tool)
);

-- Whoever writes has the ledger to itself until the transaction ends: what was looked at stays as it was, nothing can
-- deadlock, and what was asked for twice is seen twice.
CREATE FUNCTION only_one() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(hashtextextended('rialto ' || current_schema(), 0))
$$;

-- A worker is here.
CREATE FUNCTION be_here(its_owner bytea, lease interval) RETURNS void LANGUAGE sql AS $$
    INSERT INTO worker (owner, until) VALUES (its_owner, clock_timestamp() + lease)
    ON CONFLICT (owner) DO UPDATE SET until = excluded.until
$$;

-- One step. Everything is looked at before anything is written, so that a step that is refused leaves nothing behind.
-- The job's fence if it was taken; -1 moved, -2 hash used, -3 coin used, -4 no credit, -5 none free, -10 - stage if known.
CREATE FUNCTION step(its_owner bytea, given jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    this bytea := decode(given->>'id', 'hex');
    next_stage smallint := given->>'stage';
    moment bigint := given->>'at';
    start jsonb := given->'new';
    offer jsonb := given->'quote';
    its_hash bytea := decode(offer->>'hash', 'hex');
    coins bytea[];
    entry bigint := given->'credit'->>'msat';
    its_balance bigint;
    free jsonb := given->'free';
    answers jsonb := given->'answers';
    is_paid boolean := offer IS NOT NULL OR entry IS NOT NULL OR given ? 'coins';
    is_running integer := (next_stage = 5)::integer;
    found_job record;
    its_customer bytea;
    its_fence bigint := 1;
BEGIN
    SELECT customer, stage, fence INTO found_job FROM job WHERE id = this;
    IF start IS NOT NULL THEN
        IF FOUND THEN RETURN -10 - found_job.stage; END IF;
        its_customer := decode(start->>'customer', 'hex');
    ELSE
        IF NOT FOUND OR found_job.stage <> (given->>'before')::smallint
            OR found_job.fence <> (given->>'fence')::bigint THEN RETURN -1; END IF;
        its_customer := found_job.customer;
        -- Two workers may look after a job that is done, for money that comes late. One of them notes it.
        its_fence := found_job.fence + (found_job.stage = 7)::integer;
    END IF;
    IF its_hash IS NOT NULL AND EXISTS (SELECT FROM quote WHERE hash = its_hash AND job <> this) THEN RETURN -2; END IF;
    IF given ? 'coins' THEN
        coins := ARRAY(SELECT decode(value, 'hex') FROM jsonb_array_elements_text(given->'coins'));
        IF EXISTS (SELECT FROM coin WHERE id = ANY (coins))
            OR (SELECT count(DISTINCT one) FROM unnest(coins) one) <> cardinality(coins) THEN RETURN -3; END IF;
    END IF;
    IF entry IS NOT NULL THEN
        SELECT balance INTO its_balance FROM credit WHERE customer = its_customer ORDER BY number DESC LIMIT 1;
        IF coalesce(its_balance, 0)::numeric + entry NOT BETWEEN 0 AND 9223372036854775807 THEN RETURN -4; END IF;
        its_balance := coalesce(its_balance, 0) + entry;
    END IF;
    IF free IS NOT NULL THEN
        IF (free->>'of')::bigint <= coalesce(
            (SELECT used FROM free_use WHERE customer = its_customer AND tool = free->>'tool'), 0) THEN RETURN -5; END IF;
    END IF;

    IF start IS NOT NULL THEN
        INSERT INTO job (id, customer, stage, came, at, origin, request, attempts, sent, paid, owner)
        VALUES (this, its_customer, next_stage, (start->>'came')::bigint, moment, start->>'origin',
            CASE WHEN next_stage < 7 THEN start->>'request' END, is_running,
            (next_stage = 7 AND coalesce(jsonb_array_length(answers), 0) = 0)::integer, is_paid, its_owner);
    ELSE
        UPDATE job SET stage = next_stage, at = moment, attempts = attempts + is_running,
            request = CASE WHEN next_stage < 7 THEN request END,
            -- What has nothing to say need not be sent.
            sent = CASE
                WHEN answers IS NOT NULL THEN (next_stage = 7 AND jsonb_array_length(answers) = 0)::integer
                WHEN found_job.stage < 7 AND next_stage = 7
                    THEN (NOT EXISTS (SELECT FROM answer WHERE answer.job = this))::integer
                ELSE sent END,
            paid = paid OR is_paid, fence = its_fence
        WHERE id = this;
    END IF;
    IF offer IS NOT NULL THEN
        INSERT INTO quote (job, tool, price, credit, rail, money, hash, preimage, invoice, token, expires, paid)
        VALUES (this, offer->>'tool', (offer->>'price')::bigint, (offer->>'credit')::bigint, (offer->>'rail')::smallint,
            (offer->>'money')::smallint, its_hash, decode(offer->>'preimage', 'hex'), offer->>'invoice',
            offer->>'token', (offer->>'expires')::bigint, (offer->>'paid')::bigint)
        ON CONFLICT (job) DO UPDATE SET tool = excluded.tool, price = excluded.price, credit = excluded.credit,
            rail = excluded.rail, money = excluded.money, hash = excluded.hash, preimage = excluded.preimage,
            invoice = excluded.invoice, token = excluded.token, expires = excluded.expires, paid = excluded.paid;
    END IF;
    IF coins IS NOT NULL THEN
        INSERT INTO coin (id, job) SELECT one, this FROM unnest(coins) one;
    END IF;
    IF entry IS NOT NULL THEN
        INSERT INTO credit (customer, at, msat, balance, job, why)
        VALUES (its_customer, moment, entry, its_balance, this, given->'credit'->>'why');
    END IF;
    IF free IS NOT NULL THEN
        INSERT INTO free_use AS known (customer, tool, used) VALUES (its_customer, free->>'tool', 1)
        ON CONFLICT (customer, tool) DO UPDATE SET used = known.used + 1;
    END IF;
    IF answers IS NOT NULL THEN
        IF start IS NULL THEN DELETE FROM answer WHERE job = this; END IF;
        INSERT INTO answer (job, number, event)
        SELECT this, position - 1, event FROM jsonb_array_elements_text(answers) WITH ORDINALITY AS one (event, position);
    END IF;
    RETURN its_fence;
END
$$;

-- A worker's batch of steps, in this order, and of acknowledged answers. One statement is one transaction: a worker that is
-- stopped cannot leave one open. Asked for a second time it answers the same, and does nothing.
CREATE FUNCTION take(
    its_owner bytea, its_batch bigint, lease interval, durable boolean, steps jsonb, acknowledged bytea[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    earlier record;
    result bigint[] := '{}';
    one jsonb;
BEGIN
    IF NOT durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    ELSIF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    PERFORM only_one();
    SELECT batch, outcomes INTO earlier FROM worker WHERE owner = its_owner;
    IF earlier.batch = its_batch THEN RETURN earlier.outcomes; END IF;
    IF earlier.batch > its_batch THEN RAISE EXCEPTION 'this batch was given up'; END IF;
    FOR one IN SELECT value FROM jsonb_array_elements(steps) LOOP
        result := array_append(result, step(its_owner, one));
    END LOOP;
    UPDATE job SET sent = 1 WHERE id = ANY (acknowledged) AND stage = 7 AND sent = 0;
    INSERT INTO worker (owner, until, batch, outcomes)
    VALUES (its_owner, clock_timestamp() + lease, its_batch, result)
    ON CONFLICT (owner) DO UPDATE SET until = excluded.until, batch = excluded.batch, outcomes = excluded.outcomes;
    RETURN result;
END
$$;

-- Gives a worker the jobs whose owner is not here any more; they are those with its owner and this batch in `taken`.
CREATE FUNCTION take_left(its_owner bytea, its_batch bigint, lease interval, unsent bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    earlier bigint;
BEGIN
    PERFORM only_one();
    SELECT batch INTO earlier FROM worker WHERE owner = its_owner;
    IF earlier > its_batch THEN RAISE EXCEPTION 'this batch was given up'; END IF;
    IF earlier = its_batch THEN RETURN; END IF;
    INSERT INTO worker (owner, until, batch) VALUES (its_owner, clock_timestamp() + lease, its_batch)
    ON CONFLICT (owner) DO UPDATE SET until = excluded.until, batch = excluded.batch, outcomes = '{}';
    UPDATE job SET owner = its_owner, fence = fence + 1, taken = its_batch
    WHERE (stage < 7 OR (stage = 7 AND sent = 0 AND at >= unsent))
        AND NOT EXISTS (SELECT FROM worker WHERE worker.owner = job.owner AND worker.until > clock_timestamp());
END
$$;

-- Forgets some jobs; says whether there may be more. A job with money that may still move is not over, whatever it says.
CREATE FUNCTION purge(free_before bigint, paid_before bigint, most integer) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    free bytea[];
    old bytea[];
BEGIN
    PERFORM only_one();
    free := ARRAY(SELECT id FROM job WHERE NOT paid AND at < free_before AND sent < 2 AND stage = 7 ORDER BY at LIMIT most);
    DELETE FROM answer WHERE job = ANY (free);
    DELETE FROM job WHERE id = ANY (free);
    -- Credits and coins belong to jobs that were paid; those stay for ever, and are small.
    old := ARRAY(SELECT id FROM job WHERE paid AND at < paid_before AND sent < 2 AND stage = 7
        AND NOT EXISTS (SELECT FROM quote WHERE quote.job = job.id AND quote.money IN (1, 2, 3, 4, 5, 9))
        ORDER BY at LIMIT most);
    DELETE FROM answer WHERE job = ANY (old);
    UPDATE job SET sent = 2, origin = '', request = NULL WHERE id = ANY (old);
    UPDATE quote SET preimage = NULL, invoice = NULL, token = NULL WHERE job = ANY (old);
    RETURN cardinality(free) = most OR cardinality(old) = most;
END
$$;
