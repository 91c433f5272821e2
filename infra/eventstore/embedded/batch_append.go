package embedded

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/streams"
	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// maxOpenBatches and maxOpenBytes bound what one call may have begun and not
	// made final.
	maxOpenBatches = 256
	maxOpenBytes   = 32 << 20
	// maxWaiting is how many batches of one call may wait for the disk; then no
	// more is read until some are answered.
	maxWaiting = 256
)

// BatchAppend takes appends one after the other on one call, and answers each
// when it is on disk. Batches are decided in the order in which they became final.
func (svc *streamsService) BatchAppend(out streams.Streams_BatchAppendServer) error {
	ctx, cancel := context.WithCancel(out.Context())
	c := &batchCall{
		svc: svc, out: out, ctx: ctx, now: svc.store.opt.clock,
		open: map[uuid.UUID]*batch{}, results: make(chan batchResult, maxWaiting),
		messages: make(chan *streams.BatchAppendReq), ended: make(chan error, 1),
	}
	// Whatever still waits ends before the call does.
	defer c.waiters.Wait()
	defer cancel()
	go c.receive()
	return c.run()
}

// batchCall is one call of BatchAppend.
type batchCall struct {
	svc *streamsService
	out streams.Streams_BatchAppendServer
	ctx context.Context
	now func() time.Time

	open      map[uuid.UUID]*batch // begun and not final
	openBytes int

	messages chan *streams.BatchAppendReq
	ended    chan error // takes what ended the client's messages
	results  chan batchResult
	waiting  int // batches that wait for the disk
	waiters  sync.WaitGroup
}

// batchResult is what came of a batch.
type batchResult struct {
	batch  *batch
	result appendResult
	err    error
}

// receive hands on the client's messages. It ends when the client has no more
// or the call is over.
func (c *batchCall) receive() {
	for {
		m, err := c.out.Recv()
		if err != nil {
			c.ended <- err
			return
		}
		select {
		case c.messages <- m:
		case <-c.ctx.Done():
			return
		}
	}
}

// run serves the call. Once it has a reason to end it takes no more messages,
// but answers what waits first.
func (c *batchCall) run() error {
	expiry := time.NewTimer(0)
	defer expiry.Stop()
	messages, stopping, ended := c.messages, c.svc.server.stopping, c.ended
	over := false
	var reason error
	end := func(err error) {
		over, reason = true, err
		messages, stopping, ended = nil, nil, nil
	}
	for !over || c.waiting > 0 {
		in := messages
		if c.waiting >= maxWaiting {
			in = nil
		}
		c.arm(expiry)
		var err error
		select {
		case m := <-in:
			err = c.take(m)
		case r := <-c.results:
			c.waiting--
			err = c.reply(r)
		case <-expiry.C:
			err = c.expire()
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				err = nil
			}
			end(err)
		case <-stopping:
			end(c.svc.server.stopped())
		case <-c.ctx.Done():
			return status.FromContextError(c.ctx.Err()).Err()
		}
		if err != nil && !over {
			end(err)
		}
	}
	return reason
}

// take adds a message to its batch and, if it is the last, has the batch written.
func (c *batchCall) take(m *streams.BatchAppendReq) error {
	id, err := correlationID(m.GetCorrelationId())
	if err != nil {
		return invalid(err.Error())
	}
	b, begun := c.open[id]
	switch {
	case !begun:
		b = newBatch(m, c.now())
	case m.GetOptions() != nil && b.bad == nil:
		b.bad = invalid("the batch has options twice")
	}
	before := b.size()
	if !begun {
		before = 0
	}
	b.add(m)
	if !m.GetIsFinal() {
		c.open[id] = b
		if c.openBytes += b.size() - before; len(c.open) > maxOpenBatches || c.openBytes > maxOpenBytes {
			return status.Error(codes.ResourceExhausted, "too many batches are begun and not final")
		}
		return nil
	}
	if begun {
		delete(c.open, id)
		c.openBytes -= before
	}
	if b.answered {
		return nil
	}
	return c.write(b)
}

// write hands a final batch to the commit goroutine.
func (c *batchCall) write(b *batch) error {
	if b.bad != nil {
		return c.reply(batchResult{batch: b, err: b.bad})
	}
	if b.expired(c.now()) {
		return c.reply(batchResult{batch: b, err: context.DeadlineExceeded})
	}
	ok, err := c.svc.store.permits(c.ctx, principalOf(c.ctx), b.request.stream, accessWrite)
	if err == nil && !ok {
		err = errDenied
	}
	if err != nil {
		return c.reply(batchResult{batch: b, err: err})
	}
	ctx, cancel := c.ctx, context.CancelFunc(func() {})
	if !b.deadline.IsZero() {
		ctx, cancel = context.WithTimeout(c.ctx, b.deadline.Sub(c.now()))
	}
	if err := c.svc.store.enqueue(ctx, b.request); err != nil {
		cancel()
		return c.reply(batchResult{batch: b, err: err})
	}
	c.waiting++
	c.waiters.Go(func() {
		defer cancel()
		res, err := c.svc.store.await(b.request)
		c.results <- batchResult{batch: b, result: res, err: err} // has room for all that wait
	})
	return nil
}

// reply sends what came of a batch. An error ends the call.
func (c *batchCall) reply(r batchResult) error {
	r.batch.answered = true
	m, err := r.batch.answer(r.result, r.err)
	if err != nil {
		return err
	}
	return c.out.Send(m)
}

// arm sets the timer to the first deadline of a batch that isn't final.
func (c *batchCall) arm(t *time.Timer) {
	var first time.Time
	for _, b := range c.open {
		if !b.answered && !b.deadline.IsZero() && (first.IsZero() || b.deadline.Before(first)) {
			first = b.deadline
		}
	}
	if first.IsZero() {
		t.Stop()
		return
	}
	t.Reset(max(first.Sub(c.now()), 0))
}

// expire answers the batches that the client no longer waits for. What still
// comes of them is skipped up to their last message.
func (c *batchCall) expire() error {
	now := c.now()
	for _, b := range c.open {
		if b.answered || !b.expired(now) {
			continue
		}
		c.openBytes -= b.size()
		if err := c.reply(batchResult{batch: b, err: context.DeadlineExceeded}); err != nil {
			return err
		}
		if b.request != nil {
			b.request.events = nil
		}
	}
	return nil
}
