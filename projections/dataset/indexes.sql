CREATE INDEX data_sets_updated ON data_sets (tenant, updated_at, id);
CREATE INDEX data_sets_name ON data_sets (tenant, name, id);
CREATE INDEX data_sets_owner ON data_sets (tenant, owner, updated_at, id);
CREATE INDEX data_sets_project ON data_sets (tenant, project, updated_at, id);
