package operation

import (
	"testing"

	"tallyard/domain/fault"
	"tallyard/domain/internal/golden"
)

func TestEventsKeepTheirShape(t *testing.T) {
	golden.Check(t, Types,
		OperationQueued(publication()),
		OperationStarted{Attempt: 2},
		OperationSucceeded{
			Result: Result{Fingerprint: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", Files: 3, Bytes: 4096},
			Amount: Amount{DoneBytes: 4096, TotalBytes: 4096},
		},
		OperationFailed{
			Failure: Failure{Code: fault.CodeNotFound, Message: "The directory \"code/train\" is not there any more; put it back and retry."},
			Amount:  Amount{DoneBytes: 1024, TotalBytes: 4096},
		},
		OperationCancelRequested{},
		OperationCancelled{From: Running},
		OperationRetried{From: Failed, Attempt: 2},
		OperationDismissed{},
		OperationWithdrawn{},
	)
}

func TestEventsSayWhatTheyChanged(t *testing.T) {
	queued := OperationQueued(publication()).Changes()
	if len(queued) != 6 || string(queued[1].To) != `"QUEUED"` || string(queued[5].To) != `"code/train"` {
		t.Errorf("queued: %v", queued)
	}
	cancelled := OperationCancelled{From: Running}.Changes()
	if len(cancelled) != 1 || string(cancelled[0].From) != `"RUNNING"` || string(cancelled[0].To) != `"CANCELLED"` {
		t.Errorf("cancelled: %v", cancelled)
	}
}
