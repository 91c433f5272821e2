package algorithm

import (
	"testing"

	"github.com/google/uuid"

	"tallyard/domain/access"
	"tallyard/domain/es"
	"tallyard/domain/internal/golden"
	"tallyard/domain/patch"
	"tallyard/domain/workload"
)

func TestEventsKeepTheirShape(t *testing.T) {
	of := OfVersion{v1}
	full := settings()
	full.Parameters = []Pair{{"lr", "0.1"}}
	full.Environment = []Pair{{"SEED", "1"}}
	full.Resources = workload.Resources{Workers: 4, CPUMillis: 2000, MemoryBytes: 1 << 30, Accelerator: &workload.Accelerator{Series: "NVIDIA", Type: "A100", Count: 2}}
	full.Deployment, full.Elastic, full.Model = workload.MasterWorker, &workload.Elastic{MinWorkers: 2, MaxWorkers: 4}, &v2
	golden.Check(t, Types,
		AlgorithmCreated{Name: "排序_1", Owner: alice, Project: vision},
		OwnershipTransferred{From: alice, To: bob},
		AlgorithmDeleted{Name: "排序_1", Project: vision},
		VersionAdded{OfVersion: of, Label: "1.0", Settings: full, BasedOn: &Origin{theAlgorithm, v2, "sha256:ab"}, Copy: &Copy{op1, v2}},
		VersionEdited{
			OfVersion: of, From: CreateFailed,
			Set:     Fields{Description: patch.To("new"), Model: patch.Clear[uuid.UUID](), Parameters: patch.To([]Pair{{"lr", "0.2"}})},
			Was:     Fields{Description: patch.To("sorts"), Model: patch.To(v2), Parameters: patch.To([]Pair{{"lr", "0.1"}})},
			BasedOn: &Origin{theAlgorithm, v2, "sha256:ab"}, Copy: &Copy{op1, v2},
		},
		VersionPrepared{of},
		PreparationFailed{of, "The directory is gone; put it back and retry."},
		PreparationRetried{of, 1},
		ApprovalRequested{OfVersion: of, Visibility: access.Global, Request: op2, Digest: "sha256:ef", From: Created},
		ApprovalEnded{OfVersion: of, Request: op2, Problem: "Publishing was rejected: too early"},
		PublicationStarted{OfVersion: of, Visibility: access.Global, Operation: op1, From: Created},
		PublicationRetried{of, 2},
		VersionPublished{OfVersion: of, Visibility: access.Global, Fingerprint: "sha256:ab", Files: &Files{"cd", 3, 4096}, From: Publishing, By: alice},
		PublicationFailed{of, "The directory is gone; put it back and retry."},
		PublicationCancelled{of},
		DeletionStarted{OfVersion: of, Operation: op2, From: Published},
		DeletionFailed{OfVersion: of, Problem: "The disk does not answer; retry.", Back: Published},
		DeletionRetried{of, Published, 1},
		VersionDeleted{OfVersion: of, Label: "1.0", From: Deleting},
		UseRegistered{of, Use{es.Ref{Kind: "workflow", ID: op1}, "nightly"}},
		UseReleased{of, es.Ref{Kind: "workflow", ID: op1}},
		FavoriteAdded{theAlgorithm},
		FavoriteRemoved{theAlgorithm},
	)
}
