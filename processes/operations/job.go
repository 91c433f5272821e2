package operations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tallyard/domain/es"
	"tallyard/domain/fault"
	"tallyard/domain/operation"
)

// Causes for which work is interrupted; the end of the worker is none of them.
var (
	errCancelled = errors.New("cancelled by a person")
	errStalled   = errors.New("no progress")
)

// job is one operation that runs here.
type job struct {
	w      *Worker
	ref    Ref
	cancel context.CancelCauseFunc
	logger *slog.Logger

	cause    es.Envelope // the event that put the operation in line
	state    operation.State
	finished bool // the work was done to its end here
}

// run takes the operation to one of its ends, or returns when the worker stops,
// which ends ctx. The context work ends also when this operation alone is
// interrupted; its end is written all the same.
func (j *job) run(ctx, work context.Context) {
	if !j.until(ctx, "start", j.begin) {
		return
	}
	if j.state.Status != operation.Running {
		return
	}
	if j.state.CancelRequested {
		j.undo(ctx)
		return
	}
	track := newTracker(j)
	result, err := j.do(work, track)
	amount := track.end(ctx)

	switch cause := context.Cause(work); {
	case err == nil:
		j.finished = true
		amount.TotalBytes = max(amount.TotalBytes, result.Bytes)
		amount.DoneBytes = amount.TotalBytes
		j.finish(ctx, func(ctx context.Context) (es.Outcome[operation.State], error) {
			return j.w.Operations.Succeed(ctx, j.command("succeedOperation"), j.ref.ID, j.state.Attempt, result, amount)
		})
	case errors.Is(cause, errCancelled):
		j.undo(ctx)
	case errors.Is(cause, errStalled):
		j.fail(ctx, stalled(), amount)
	case ctx.Err() != nil:
		j.logger.InfoContext(ctx, "interrupted; the next worker goes on with it")
	default:
		j.fail(ctx, j.explain(ctx, err), amount)
	}
}

// begin reads the operation and starts it when it waits.
func (j *job) begin(ctx context.Context) error {
	for env, err := range es.Events(ctx, j.w.rt, operation.Aggregate.Stream(j.ref.Tenant, j.ref.ID), 0) {
		if err != nil {
			return err
		}
		switch env.Event.(type) {
		case operation.OperationQueued, operation.OperationRetried:
			j.cause = env
		}
	}
	out, err := j.w.Operations.Start(ctx, j.command("startOperation"), j.ref.ID)
	j.state = out.State
	return err
}

// do calls the work; a panic of it is its error.
func (j *job) do(ctx context.Context, track *tracker) (result operation.Result, err error) {
	doer, ok := j.w.Work[j.state.Work.Kind]
	if !ok {
		return result, fmt.Errorf("nobody does work of kind %q here", j.state.Work.Kind)
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return doer.Do(ctx, j.job(), track.report)
}

func (j *job) job() Job {
	return Job{Ref: j.ref, Subject: j.state.Subject, Owner: j.state.Owner, Work: j.state.Work}
}

func (j *job) fail(ctx context.Context, f operation.Failure, amount operation.Amount) {
	j.finish(ctx, func(ctx context.Context) (es.Outcome[operation.State], error) {
		return j.w.Operations.Fail(ctx, j.command("failOperation"), j.ref.ID, j.state.Attempt, f, amount)
	})
}

// finish writes an end. When the operation still runs afterwards, somebody had
// cancelled it: an accepted cancellation is kept, so the work is undone.
func (j *job) finish(ctx context.Context, end func(context.Context) (es.Outcome[operation.State], error)) {
	var s operation.State
	done := j.until(ctx, "end", func(ctx context.Context) error {
		out, err := end(ctx)
		s = out.State
		return err
	})
	switch {
	case !done:
	case s.Status == operation.Running && s.CancelRequested:
		j.undo(ctx)
	default:
		j.forgetSample(ctx)
	}
}

// undo removes what the work left behind and ends the operation as cancelled.
func (j *job) undo(ctx context.Context) {
	began := time.Now()
	gaveUp := false
	undone := j.until(ctx, "undo", func(ctx context.Context) error {
		work, ok := j.w.Work[j.state.Work.Kind]
		if !ok || work.Undo == nil {
			return nil
		}
		err := work.Undo(ctx, j.job(), j.finished)
		if err != nil && ctx.Err() == nil && time.Since(began) > j.w.GiveUp {
			j.logger.ErrorContext(ctx, "gave up undoing", "error", err)
			gaveUp = true
			return nil
		}
		return err
	})
	if !undone {
		return
	}
	ended := j.until(ctx, "end", func(ctx context.Context) error {
		if gaveUp {
			_, err := j.w.Operations.Abandon(ctx, j.command("abandonOperation"), j.ref.ID, j.state.Attempt, notUndone(), operation.Amount{})
			return err
		}
		_, err := j.w.Operations.EndCancelled(ctx, j.command("cancelOperation"), j.ref.ID)
		return err
	})
	if ended {
		j.forgetSample(ctx)
	}
}

// forgetSample drops the progress of an operation that has ended. A sample that
// stays is harmless: the end is what is shown.
func (j *job) forgetSample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := j.w.Samples.Forget(ctx, j.ref); err != nil {
		j.logger.WarnContext(ctx, "progress of an ended operation not removed", "error", err)
	}
}

// until tries a step until it succeeds; false when ctx ended first.
func (j *job) until(ctx context.Context, what string, step func(context.Context) error) bool {
	for tries := 1; ; tries++ {
		err := step(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		j.w.failed(ctx, what+" operation "+j.ref.ID.String(), err)
		if j.w.Pause.Wait(ctx, tries) != nil {
			return false
		}
	}
}

// command is what the worker does because of the event that put the operation
// in line. Its id is new each time: what it may do goes by the state.
func (j *job) command(action string) es.Command {
	cmd := es.System(j.w.rt.IDs.New(), Name, action, j.ref.Tenant)
	cmd.Project = j.cause.Meta.Project
	cmd.Request = j.cause.Meta.Request
	cmd.Correlation = j.cause.Meta.Correlation
	cmd.Causation = j.cause.ID
	return cmd
}

// explain turns an error into what people are told.
func (j *job) explain(ctx context.Context, err error) operation.Failure {
	if faults, ok := fault.All(err); ok {
		return operation.Failure{Code: faults[0].Code, Message: faults[0].Message}
	}
	j.logger.ErrorContext(ctx, "operation failed", "kind", j.state.Kind, "work", j.state.Work.Kind,
		"requestId", j.cause.Meta.Request, "error", err)
	return operation.Failure{
		Code:    fault.CodeInternal,
		Message: "Something in the platform failed while it worked on the files; retry, and if that fails too give the operation's id to an operator.",
	}
}

func stalled() operation.Failure {
	return operation.Failure{Code: fault.CodeTimeout, Message: "Nothing was copied for a long time, so the operation was ended; retry it."}
}

func notUndone() operation.Failure {
	return operation.Failure{
		Code:    fault.CodeInternal,
		Message: "The operation was cancelled, but what it had copied could not be removed; retry it, or give its id to an operator.",
	}
}
