CREATE TABLE data_sets (
    id          uuid        PRIMARY KEY,
    tenant      uuid        NOT NULL,
    project     uuid        NOT NULL,
    owner       uuid        NOT NULL,
    reach       smallint    NOT NULL, -- 0 owner, 1 project, 2 tenant
    name        text        NOT NULL,
    description text        NOT NULL,
    content     jsonb       NOT NULL,
    cache       jsonb       NOT NULL,
    cached      boolean     NOT NULL,
    version     int         NOT NULL,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL
);
