-- When the indexes that only readers need were made; NULL while a generation
-- still catches up without them. Those from before had them from the start.
ALTER TABLE tallyard.generations ADD COLUMN indexed_at timestamptz;
UPDATE tallyard.generations SET indexed_at = created_at;
