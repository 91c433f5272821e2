CREATE TABLE images (
    id         uuid        PRIMARY KEY,
    tenant     uuid        NOT NULL,
    project    uuid        NOT NULL, -- nil: of none
    owner      uuid        NOT NULL,
    reach      smallint    NOT NULL, -- 0 owner, 1 project, 2 tenant
    kind       text        NOT NULL,
    name       text        NOT NULL,
    framework  text        NOT NULL,
    scenario   text        NOT NULL,
    settings   jsonb       NOT NULL,
    created_at timestamptz NOT NULL
);
