CREATE TABLE algorithms (
    id         uuid        PRIMARY KEY,
    tenant     uuid        NOT NULL,
    project    uuid        NOT NULL,
    owner      uuid        NOT NULL,
    name       text        NOT NULL,
    reach      smallint    NOT NULL, -- of the widest published version: 0 owner, 1 project, 2 tenant
    grouped    boolean     NOT NULL, -- whether a version reaches just the project
    changes    int         NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE algorithm_versions (
    id           uuid        PRIMARY KEY,
    algorithm    uuid        NOT NULL,
    tenant       uuid        NOT NULL,
    project      uuid        NOT NULL,
    owner        uuid        NOT NULL,
    name         text        NOT NULL, -- of the algorithm
    label        text        NOT NULL,
    status       text        NOT NULL,
    problem      text        NOT NULL,
    visibility   text,
    wanted       text,
    approval     jsonb,
    reach        smallint    NOT NULL,
    settings     jsonb       NOT NULL,
    based_on     jsonb,
    operation    uuid,
    before       text,
    files        jsonb,
    fingerprint  text        NOT NULL,
    artefact     boolean     NOT NULL,
    published_at timestamptz,
    published_by uuid,
    uses         jsonb       NOT NULL,
    changes      int         NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL
);
CREATE INDEX algorithm_versions_algorithm ON algorithm_versions (algorithm, created_at, id);

-- How far each version reached, from when to when, as access_grants tells who
-- held which role: together they say who could see what at a moment. Rows stay
-- when the version is gone.
CREATE TABLE algorithm_reaches (
    algorithm     uuid        NOT NULL,
    version       uuid        NOT NULL,
    tenant        uuid        NOT NULL,
    project       uuid        NOT NULL,
    owner         uuid        NOT NULL,
    reach         smallint    NOT NULL,
    valid_from    timestamptz NOT NULL,
    valid_to      timestamptz,
    from_position bigint      NOT NULL,
    to_position   bigint,
    PRIMARY KEY (algorithm, version, from_position)
);

CREATE TABLE algorithm_favorites (
    tenant    uuid NOT NULL,
    user_id   uuid NOT NULL,
    algorithm uuid NOT NULL,
    since     timestamptz NOT NULL,
    PRIMARY KEY (user_id, algorithm)
);
