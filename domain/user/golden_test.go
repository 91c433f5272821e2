package user

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/internal/golden"
)

var (
	anybody = uuid.MustParse("01900000-0000-7000-8000-000000000001")
	vision  = uuid.MustParse("01900000-0000-7000-8000-000000000002")
	tokenID = uuid.MustParse("01900000-0000-7000-8000-000000000003")
)

func TestGolden(t *testing.T) {
	golden.Check(t, Types,
		Created{Person: anybody},
		RoleGranted{Role: access.Member, Project: vision},
		RoleRevoked{Role: access.TenantAdmin},
		PermissionGranted{access.PublishModels},
		PermissionRevoked{access.SubmitUrgentJobs},
		BusinessScopeSet{access.TrainingAndInference, access.Inference},
		QuotaSet{To: Quota{CPUMillis: new(int64), Accelerators: map[string]int64{"A100": 2}}},
		Suspended{},
		Reinstated{},
		Removed{From: Active},
		TokenIssued{ID: tokenID, Name: "laptop", Digest: bytes.Repeat([]byte{7}, 32), ExpiresAt: time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)},
		TokenRevoked{ID: tokenID},
		PersonalDataErased{Person: anybody},
		Described{User: anybody, Sealed: []byte("sealed")},
		AdminCounted{User: anybody, Seen: 2},
		AdminDiscounted{User: anybody, Seen: 3})
}
