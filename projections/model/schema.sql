CREATE TABLE models (
    id         uuid        PRIMARY KEY,
    tenant     uuid        NOT NULL,
    project    uuid        NOT NULL,
    owner      uuid        NOT NULL,
    name       text        NOT NULL,
    reach      smallint    NOT NULL, -- of the version that is shared widest: 0 owner, 1 project, 2 tenant
    changes    int         NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE TABLE model_versions (
    id         uuid        PRIMARY KEY,
    model      uuid        NOT NULL,
    tenant     uuid        NOT NULL,
    project    uuid        NOT NULL,
    owner      uuid        NOT NULL,
    name       text        NOT NULL, -- of the model
    number     int         NOT NULL,
    status     text        NOT NULL,
    visibility text        NOT NULL,
    reach      smallint    NOT NULL,
    details    jsonb       NOT NULL,
    space      uuid        NOT NULL,
    directory  text        NOT NULL,
    changes    int         NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX model_versions_model ON model_versions (model, created_at, id);
