CREATE INDEX audit_entries_position ON audit_entries (tenant, position, id);
CREATE INDEX audit_entries_subject ON audit_entries (tenant, subject, position, id);
CREATE INDEX audit_entries_parent ON audit_entries (tenant, subject_parent, position, id) WHERE subject_parent IS NOT NULL;
CREATE INDEX audit_entries_actor ON audit_entries (tenant, actor, position, id);
CREATE INDEX audit_entries_project ON audit_entries (tenant, project, position, id);
CREATE INDEX audit_entries_outcome ON audit_entries (tenant, position, id) WHERE outcome <> 'DONE';
CREATE INDEX audit_entries_action ON audit_entries (tenant, action, position, id);
