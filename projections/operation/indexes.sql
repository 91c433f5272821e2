CREATE INDEX operations_owner ON operations (tenant, owner, queued_at, id);
CREATE INDEX operations_queued ON operations (tenant, queued_at, id);
CREATE INDEX operations_subject ON operations (subject, queued_at, id);
CREATE INDEX operations_subject_parent ON operations (subject_parent, queued_at, id);
CREATE INDEX operations_pending ON operations (tenant, owner, status, line) WHERE status IN ('QUEUED', 'RUNNING');
CREATE INDEX operations_tenant ON operations (tenant, id);
