-- Operational tables: what cannot be rebuilt from the log. They are migrated
-- in place and backed up. Projected tables live in the schemas of generations.

-- Throw-away: any row may be deleted, the stream is then read from its start.
CREATE TABLE tallyard.snapshots (
    stream       text   NOT NULL,
    fold_version int    NOT NULL,
    revision     bigint NOT NULL,
    data         bytea  NOT NULL,
    PRIMARY KEY (stream, fold_version)
);

-- Where a request came from; expires by the tenant's retention setting, apart
-- from the events, which carry only the request's id.
CREATE TABLE tallyard.request_origins (
    request_id uuid        PRIMARY KEY,
    address    text        NOT NULL,
    user_agent text        NOT NULL,
    at         timestamptz NOT NULL
);
CREATE INDEX request_origins_at ON tallyard.request_origins (at);

-- Keys of personal data, wrapped by the installation's key. Deleting a row
-- erases the person.
CREATE TABLE tallyard.person_keys (
    tenant     uuid        NOT NULL,
    person     uuid        NOT NULL,
    wrapped    bytea       NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, person)
);

-- How far running operations are; their beginnings and ends are events.
CREATE TABLE tallyard.operation_progress (
    operation   uuid        PRIMARY KEY,
    tenant      uuid        NOT NULL,
    done_bytes  bigint      NOT NULL,
    total_bytes bigint      NOT NULL,
    done_files  bigint      NOT NULL,
    total_files bigint      NOT NULL,
    at          timestamptz NOT NULL
);

-- Uploads that can be taken up again.
CREATE TABLE tallyard.uploads (
    id         uuid        PRIMARY KEY,
    tenant     uuid        NOT NULL,
    space      uuid        NOT NULL,
    path       text        NOT NULL,
    total      bigint      NOT NULL,
    received   bigint      NOT NULL,
    started_by uuid        NOT NULL,
    at         timestamptz NOT NULL,
    CHECK (received >= 0 AND (total < 0 OR received <= total))
);
CREATE INDEX uploads_at ON tallyard.uploads (at);

-- Generations of the projected tables: one schema each, at most one is live.
CREATE TABLE tallyard.generations (
    id             int         PRIMARY KEY,
    digest         text        NOT NULL,
    state          text        NOT NULL CHECK (state IN ('building', 'live', 'retired', 'verify')),
    store_identity uuid        NOT NULL,
    created_at     timestamptz NOT NULL,
    live_at        timestamptz,
    retired_at     timestamptz
);
CREATE UNIQUE INDEX generations_one_live ON tallyard.generations (state) WHERE state = 'live';

CREATE TABLE tallyard.checkpoints (
    generation int         NOT NULL,
    projection text        NOT NULL,
    position   bigint      NOT NULL,
    event_id   uuid,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (generation, projection)
);

CREATE TABLE tallyard.parked_streams (
    generation int         NOT NULL,
    projection text        NOT NULL,
    stream     text        NOT NULL,
    revision   bigint      NOT NULL,
    position   bigint      NOT NULL,
    event_id   uuid        NOT NULL,
    event_type text        NOT NULL,
    error      text        NOT NULL,
    attempts   int         NOT NULL,
    parked_at  timestamptz NOT NULL,
    PRIMARY KEY (generation, projection, stream)
);

-- What a person asked of the projector (rebuild, verify, replay), so that any
-- process can take the request and the leader carries it out.
CREATE TABLE tallyard.projection_requests (
    id           uuid        PRIMARY KEY,
    kind         text        NOT NULL,
    argument     text        NOT NULL,
    state        text        NOT NULL,
    result       text        NOT NULL,
    requested_at timestamptz NOT NULL,
    finished_at  timestamptz
);
CREATE INDEX projection_requests_open ON tallyard.projection_requests (requested_at) WHERE finished_at IS NULL;
