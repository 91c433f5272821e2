CREATE INDEX approvals_owner ON approvals (tenant, owner, requested_at, id);
CREATE INDEX approvals_requested ON approvals (tenant, requested_at, id);
CREATE INDEX approvals_pending ON approvals (tenant, requested_at, id) WHERE status = 'PENDING';
CREATE INDEX approvals_subject ON approvals (subject, requested_at, id);
CREATE INDEX approvals_tenant ON approvals (tenant, id);
