package embedded

import (
	"context"
	"math"

	"github.com/EventStore/EventStore-Client-Go/v4/protos/persistent"
	"github.com/EventStore/EventStore-Client-Go/v4/protos/shared"

	logic "tallyard/infra/eventstore/embedded/persistent"
)

// persistentService implements the protocol's persistent subscriptions.
type persistentService struct {
	persistent.UnimplementedPersistentSubscriptionsServer
	server *Server
	subs   *subscriptions
}

// Create makes a group.
func (svc *persistentService) Create(ctx context.Context, req *persistent.CreateReq) (*persistent.CreateResp, error) {
	e, start, err := createEntry(req.GetOptions())
	if err == nil {
		err = svc.subs.create(e, start)
	}
	if err != nil {
		return nil, svc.status(ctx, e.name(), err)
	}
	return &persistent.CreateResp{}, nil
}

// Update gives a group other settings; its consumers are dropped.
func (svc *persistentService) Update(ctx context.Context, req *persistent.UpdateReq) (*persistent.UpdateResp, error) {
	e, start, err := updateEntry(req.GetOptions())
	if err == nil {
		err = svc.subs.update(e, start)
	}
	if err != nil {
		return nil, svc.status(ctx, e.name(), err)
	}
	return &persistent.UpdateResp{}, nil
}

// Delete ends a group for good; its consumers are dropped.
func (svc *persistentService) Delete(ctx context.Context, req *persistent.DeleteReq) (*persistent.DeleteResp, error) {
	o := req.GetOptions()
	name, err := newGroupName(o.GetStreamIdentifier(), o.GetAll() != nil, o.GetGroupName())
	if err == nil {
		err = svc.subs.remove(name)
	}
	if err != nil {
		return nil, svc.status(ctx, name, err)
	}
	return &persistent.DeleteResp{}, nil
}

// GetInfo tells about one group.
func (svc *persistentService) GetInfo(ctx context.Context, req *persistent.GetInfoReq) (*persistent.GetInfoResp, error) {
	o := req.GetOptions()
	name, err := newGroupName(o.GetStreamIdentifier(), o.GetAll() != nil, o.GetGroupName())
	if err != nil {
		return nil, err
	}
	g, err := svc.subs.find(name)
	if err != nil {
		return nil, svc.status(ctx, name, err)
	}
	info, err := g.info(ctx)
	if err != nil {
		return nil, svc.status(ctx, name, err)
	}
	return &persistent.GetInfoResp{SubscriptionInfo: info}, nil
}

// List tells about all groups, or about those of one stream, which must have some.
func (svc *persistentService) List(ctx context.Context, req *persistent.ListReq) (*persistent.ListResp, error) {
	stream := ""
	switch of := req.GetOptions().GetListForStream(); {
	case of.GetAll() != nil:
		stream = allStream
	case of != nil:
		var err error
		if stream, err = streamName(of.GetStream()); err != nil {
			return nil, err
		}
	case req.GetOptions().GetListAllSubscriptions() == nil:
		return nil, invalid("the list names neither a stream nor all subscriptions")
	}
	groups, err := svc.subs.list(stream)
	if err == nil && stream != "" && len(groups) == 0 {
		err = errGroupMissing
	}
	if err != nil {
		return nil, svc.status(ctx, groupName{stream: stream}, err)
	}
	answer := &persistent.ListResp{}
	for _, g := range groups {
		info, err := g.info(ctx)
		if err != nil {
			return nil, svc.status(ctx, g.name, err)
		}
		answer.Subscriptions = append(answer.Subscriptions, info)
	}
	return answer, nil
}

// ReplayParked asks a group to deliver its parked messages again, all of them or
// those before a revision among the parked. It does not wait until they are.
func (svc *persistentService) ReplayParked(ctx context.Context, req *persistent.ReplayParkedReq) (*persistent.ReplayParkedResp, error) {
	o := req.GetOptions()
	name, err := newGroupName(o.GetStreamIdentifier(), o.GetAll() != nil, o.GetGroupName())
	if err != nil {
		return nil, err
	}
	stop := logic.Position(math.MaxInt64)
	if x, ok := o.GetStopAtOption().(*persistent.ReplayParkedReq_Options_StopAt); ok {
		if stop = logic.Position(x.StopAt); stop < 0 {
			return nil, invalid("the revision to stop at must not be negative")
		}
	}
	g, err := svc.subs.find(name)
	if err == nil {
		err = g.replayParked(stop)
	}
	if err != nil {
		return nil, svc.status(ctx, name, err)
	}
	return &persistent.ReplayParkedResp{}, nil
}

// RestartSubsystem ends all groups, drops their consumers, and starts them again.
func (svc *persistentService) RestartSubsystem(ctx context.Context, _ *shared.Empty) (*shared.Empty, error) {
	if err := svc.subs.restart(); err != nil {
		return nil, svc.status(ctx, groupName{}, err)
	}
	return &shared.Empty{}, nil
}

// status gives an error about a group the status of a unary call.
func (svc *persistentService) status(ctx context.Context, name groupName, err error) error {
	if svc.server.isStopping() {
		return svc.server.stopped()
	}
	return groupStatus(unaryTrailer(ctx), name, err)
}
