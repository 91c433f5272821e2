CREATE TABLE algorithms (
    id         uuid        PRIMARY KEY,
    tenant     uuid        NOT NULL,
    project    uuid        NOT NULL,
    owner      uuid        NOT NULL,
    name       text        NOT NULL,
    reach      smallint    NOT NULL, -- of the widest published version: 0 owner, 1 project, 2 tenant
    changes    int         NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL
);
CREATE INDEX algorithms_updated ON algorithms (tenant, updated_at, id);
CREATE INDEX algorithms_created ON algorithms (tenant, created_at, id);
CREATE INDEX algorithms_name ON algorithms (tenant, name, id);
-- The ways of access.Filter, each in the three orders of lists: one's own, what
-- the tenant sees, what one's projects see.
CREATE INDEX algorithms_owner_updated ON algorithms (tenant, owner, updated_at, id);
CREATE INDEX algorithms_owner_created ON algorithms (tenant, owner, created_at, id);
CREATE INDEX algorithms_owner_name ON algorithms (tenant, owner, name, id);
CREATE INDEX algorithms_global_updated ON algorithms (tenant, updated_at, id) WHERE reach = 2;
CREATE INDEX algorithms_global_created ON algorithms (tenant, created_at, id) WHERE reach = 2;
CREATE INDEX algorithms_global_name ON algorithms (tenant, name, id) WHERE reach = 2;
CREATE INDEX algorithms_group_updated ON algorithms (tenant, project, updated_at, id) WHERE reach = 1;
CREATE INDEX algorithms_group_created ON algorithms (tenant, project, created_at, id) WHERE reach = 1;
CREATE INDEX algorithms_group_name ON algorithms (tenant, project, name, id) WHERE reach = 1;
CREATE INDEX algorithms_project ON algorithms (tenant, project, updated_at, id);

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
CREATE INDEX algorithm_versions_updated ON algorithm_versions (tenant, updated_at, id);
CREATE INDEX algorithm_versions_created ON algorithm_versions (tenant, created_at, id);
CREATE INDEX algorithm_versions_name ON algorithm_versions (tenant, name, id);
CREATE INDEX algorithm_versions_owner_updated ON algorithm_versions (tenant, owner, updated_at, id);
CREATE INDEX algorithm_versions_owner_created ON algorithm_versions (tenant, owner, created_at, id);
CREATE INDEX algorithm_versions_owner_name ON algorithm_versions (tenant, owner, name, id);
CREATE INDEX algorithm_versions_global_updated ON algorithm_versions (tenant, updated_at, id) WHERE reach = 2;
CREATE INDEX algorithm_versions_global_created ON algorithm_versions (tenant, created_at, id) WHERE reach = 2;
CREATE INDEX algorithm_versions_global_name ON algorithm_versions (tenant, name, id) WHERE reach = 2;
CREATE INDEX algorithm_versions_group_updated ON algorithm_versions (tenant, project, updated_at, id) WHERE reach = 1;
CREATE INDEX algorithm_versions_group_created ON algorithm_versions (tenant, project, created_at, id) WHERE reach = 1;
CREATE INDEX algorithm_versions_group_name ON algorithm_versions (tenant, project, name, id) WHERE reach = 1;
CREATE INDEX algorithm_versions_project ON algorithm_versions (tenant, project, updated_at, id);
CREATE INDEX algorithm_versions_status ON algorithm_versions (tenant, status, updated_at, id);
CREATE INDEX algorithm_versions_source ON algorithm_versions ((settings #>> '{source,script,space}'));

CREATE TABLE algorithm_favorites (
    tenant    uuid NOT NULL,
    user_id   uuid NOT NULL,
    algorithm uuid NOT NULL,
    since     timestamptz NOT NULL,
    PRIMARY KEY (user_id, algorithm)
);
