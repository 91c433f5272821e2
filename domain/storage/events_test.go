package storage

import (
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/internal/golden"
)

func TestEventsKeepTheirShape(t *testing.T) {
	quota := int64(5_000_000_000)
	golden.Check(t, Types,
		SpaceCreated{Kind: Personal, Owner: uuid.MustParse("0198a000-0000-7000-8000-00000000000a"), Zone: DefaultZone},
		ChangeRequested{Change: DeleteFiles, Path: "code/alt"},
		DirectoryRemovalRequested{Path: "code/alt", Directory: "1:42:1796000000", Operation: uuid.MustParse("0198a000-0000-7000-8000-00000000000c")},
		QuotaSet{To: &quota},
		DirectoryCreated{Path: "code/训练"},
		FilesDeleted{Path: "code/alt", Files: 12, Bytes: 4096},
		FileUploaded{Path: "code/train.py", SizeBytes: 42, SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},
	)
}
