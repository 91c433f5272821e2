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
-- The group tab also shows what has another version that the tenant sees.
CREATE INDEX algorithms_both_updated ON algorithms (tenant, project, updated_at, id) WHERE reach = 2 AND grouped;
CREATE INDEX algorithms_both_created ON algorithms (tenant, project, created_at, id) WHERE reach = 2 AND grouped;
CREATE INDEX algorithms_both_name ON algorithms (tenant, project, name, id) WHERE reach = 2 AND grouped;
CREATE INDEX algorithms_project ON algorithms (tenant, project, updated_at, id);
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
CREATE INDEX algorithm_versions_model ON algorithm_versions ((settings ->> 'model'));
-- For what comes into view or goes out of it when a viewer's rights change.
CREATE INDEX algorithm_reaches_tenant ON algorithm_reaches (tenant, algorithm, version) WHERE reach < 2;
CREATE INDEX algorithm_reaches_project ON algorithm_reaches (tenant, project, algorithm) WHERE reach = 1;
