-- The ways of access.Filter in the order of lists: everything, one's own, what
-- the tenant sees, what one's projects see.
CREATE INDEX models_created ON models (tenant, created_at, id);
CREATE INDEX models_owner_created ON models (tenant, owner, created_at, id);
CREATE INDEX models_global_created ON models (tenant, created_at, id) WHERE reach = 2;
CREATE INDEX models_group_created ON models (tenant, project, created_at, id) WHERE reach = 1;
CREATE INDEX model_versions_space ON model_versions (space);
