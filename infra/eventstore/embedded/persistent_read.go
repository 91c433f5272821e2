package embedded

import (
	"errors"
	"io"
	"strconv"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"
	"github.com/google/uuid"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	logic "tallyard/infra/eventstore/embedded/persistent"
)

// Read serves a consumer: it sends events, and takes what the consumer says to
// them. The first message names the group.
func (svc *persistentService) Read(stream persistent.PersistentSubscriptions_ReadServer) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return invalid("the subscription names no group")
	}
	if err != nil {
		return err
	}
	o := first.GetOptions()
	if o == nil {
		return invalid("the subscription's options must come first")
	}
	name, err := newGroupName(o.GetStreamIdentifier(), o.GetAll() != nil, o.GetGroupName())
	if err != nil {
		return err
	}
	if o.GetBufferSize() < 1 {
		return invalid("the consumer's buffer must have room for one event")
	}
	c := &consumerCall{svc: svc, stream: stream}
	if _, text := o.GetUuidOption().GetContent().(*persistent.ReadReq_Options_UUIDOption_String_); text {
		c.wire.textIDs = true
	}
	if err := c.authorize(name.stream); err != nil {
		return err
	}
	if c.group, err = svc.subs.find(name); err == nil {
		c.session, err = c.group.connect(int(o.GetBufferSize()), c.about())
	}
	if err != nil {
		return c.status(name, err)
	}
	defer c.group.disconnect(c.session)
	return c.status(name, c.serve())
}

// consumerCall is the call of one consumer.
type consumerCall struct {
	svc     *persistentService
	stream  persistent.PersistentSubscriptions_ReadServer
	group   *group
	session *session
	wire    wireOptions
}

func (c *consumerCall) status(name groupName, err error) error {
	if err != nil && c.svc.server.isStopping() {
		return c.svc.server.stopped()
	}
	return groupStatus(streamTrailer(c.stream), name, err)
}

// authorize refuses the call to who may not read the stream.
func (c *consumerCall) authorize(stream string) error {
	return c.svc.server.store.authorize(c.stream.Context(), streamTrailer(c.stream), stream, accessRead)
}

// about tells who the consumer is.
func (c *consumerCall) about() consumerInfo {
	about := consumerInfo{user: principalOf(c.stream.Context()).name, connection: "<unknown>"}
	if p, ok := peer.FromContext(c.stream.Context()); ok && p.Addr != nil {
		about.from = p.Addr.String()
	}
	md, _ := metadata.FromIncomingContext(c.stream.Context())
	if names := md.Get("connection-name"); len(names) > 0 {
		about.connection = names[0]
	}
	return about
}

// serve sends events until the consumer or the group goes. At most as many as
// the consumer has room for are on their way; the rest waits in the group.
func (c *consumerCall) serve() error {
	confirmation := &persistent.ReadResp_SubscriptionConfirmation{SubscriptionId: c.group.name.id()}
	if err := c.stream.Send(&persistent.ReadResp{
		Content: &persistent.ReadResp_SubscriptionConfirmation_{SubscriptionConfirmation: confirmation},
	}); err != nil {
		return err
	}
	// Receiving can't be interrupted but by the end of the call, so it has a
	// goroutine of its own, for which the server waits when it closes.
	said := make(chan error, 1)
	c.svc.subs.receivers.Go(func() { said <- c.receive() })
	server, ctx := c.svc.server, c.stream.Context()
	for {
		select {
		case <-server.stopping:
			return server.stopped()
		case <-c.session.dropped:
			return c.session.cause
		default:
		}
		if d, ok := c.group.take(c.session); ok {
			if err := c.send(d); err != nil {
				return err
			}
			continue
		}
		select {
		case <-c.session.wake:
		case <-c.session.dropped:
		case err := <-said:
			return err
		case <-server.stopping:
		case <-c.group.store.failed():
			return errFailed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// receive takes what the consumer says until it says no more. A consumer that
// can't answer any more has no use for events, so that ends the call.
func (c *consumerCall) receive() error {
	for {
		m, err := c.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch x := m.GetContent().(type) {
		case *persistent.ReadReq_Ack_:
			ids, err := eventIDs(x.Ack.GetIds())
			if err != nil {
				return err
			}
			c.group.ack(c.session, ids)
		case *persistent.ReadReq_Nack_:
			ids, err := eventIDs(x.Nack.GetIds())
			if err != nil {
				return err
			}
			action, ok := nackActions[x.Nack.GetAction()]
			if !ok {
				return invalid("the consumer asks for the unknown action " + strconv.Itoa(int(x.Nack.GetAction())))
			}
			c.group.nack(c.session, action, x.Nack.GetReason(), ids)
		default:
			return invalid("a consumer may only acknowledge")
		}
	}
}

var nackActions = map[persistent.ReadReq_Nack_Action]logic.Action{
	persistent.ReadReq_Nack_Unknown: logic.Unknown,
	persistent.ReadReq_Nack_Park:    logic.Park,
	persistent.ReadReq_Nack_Retry:   logic.Retry,
	persistent.ReadReq_Nack_Skip:    logic.Skip,
	persistent.ReadReq_Nack_Stop:    logic.Stop,
}

func eventIDs(in []*shared.UUID) ([]uuid.UUID, error) {
	out := make([]uuid.UUID, 0, len(in))
	for _, u := range in {
		id, err := eventID(u)
		if err != nil {
			return nil, invalid(err.Error())
		}
		out = append(out, id)
	}
	return out, nil
}

// send sends one event. That the consumer may read what it gets is asked anew
// every time, since lists change; a link is no way around the list of the stream
// that it points at.
func (c *consumerCall) send(d logic.Delivery) error {
	if err := c.authorize(c.group.name.stream); err != nil {
		return err
	}
	body := d.Body.(*handedOut)
	e, link := &body.event, body.link
	if link != nil {
		ctx := c.stream.Context()
		ok, err := c.svc.server.store.permits(ctx, principalOf(ctx), e.stream, accessRead)
		if err != nil {
			return err
		}
		if !ok {
			e, link = link, nil
		}
	}
	return c.stream.Send(c.message(e, link, d.Retries))
}

// message makes the response that carries an event, with the link by which it
// was found, if any.
func (c *consumerCall) message(e, link *event, retries int) *persistent.ReadResp {
	read := &persistent.ReadResp_ReadEvent{
		Event: groupRecorded(c.wire.recorded(e)),
		Count: &persistent.ReadResp_ReadEvent_RetryCount{RetryCount: int32(retries)},
	}
	found := e
	if link != nil {
		read.Link, found = groupRecorded(c.wire.recorded(link)), link
	}
	read.Position = &persistent.ReadResp_ReadEvent_CommitPosition{CommitPosition: found.position}
	return &persistent.ReadResp{Content: &persistent.ReadResp_Event{Event: read}}
}
