-- What is set, by what it is set for. What holds where nothing is set is for
-- the reader to say.
CREATE TABLE settings (
    tenant uuid  NOT NULL, -- nil: the platform
    target uuid  NOT NULL, -- the tenant, the project, or the platform's own id
    scope  text  NOT NULL,
    key    text  NOT NULL,
    value  jsonb NOT NULL,
    PRIMARY KEY (tenant, target, key)
);
